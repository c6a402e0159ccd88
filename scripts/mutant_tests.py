"""Which tests run which lines: for `scripts/mutants.py`, so that a fault is tried on the tests that
can notice it, the quickest first. Every block of the package (a function's body, a branch, a loop)
notes in a copy of the source that it was run; nothing else is slowed down."""

import ast
import builtins
import gc
import inspect
import json
import os
import signal
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from multiprocessing import Pipe
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
OPTIONS += ["--hypothesis-seed=0"]
APART = {"docs", "readme", "house", "supply", "notebooks", "own_tour", "report_browser"}
APART |= {"kill", "ddp", "mps", "words"}
"""Files whose tests read texts, or start processes of their own: no fault is tried on them."""
REACHED = "_recombine_hits"
PREPARED = f"import builtins as _b; {REACHED} = _b.__dict__.setdefault({REACHED!r}, set())"


def enter(root: Path) -> None:
    """Work in a copy of the project, silently."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.chdir(root)
    sys.path[:0] = [str(root), str(root / "tests"), str(root / "scripts")]
    os.environ["PYTHONPATH"] = str(root)


def in_child(act: Callable[[], int], seconds: float) -> int | None:
    """The exit status of something done in a forked child; None where it took too long."""
    child = os.fork()
    if child == 0:
        os.setsid()
        os._exit(act())
    deadline, status = time.monotonic() + seconds, None
    while status is None and time.monotonic() < deadline:
        done, code = os.waitpid(child, os.WNOHANG)
        status = os.waitstatus_to_exitcode(code) if done else None
        time.sleep(0.02)
    if status is None:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return status


def blocks(tree: ast.Module, module: str) -> Iterator[tuple[list[ast.stmt], str]]:
    """Every list of statements inside a function, with its name: the function's, and how many lines
    below its first it begins, so that changes elsewhere in the file leave it as it is."""

    def inside(node: ast.AST, path: str, first: int) -> Iterator[tuple[list[ast.stmt], str]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            path, first = f"{path}.{node.name}", node.lineno
            first = first if not isinstance(node, ast.ClassDef) else 0
        for name in ("body", "orelse", "finalbody"):
            held = getattr(node, name, None)
            if isinstance(held, list) and held and isinstance(held[0], ast.stmt):
                if first:
                    yield held, f"{module}:{path}+{held[0].lineno - first}"
                for one in held:
                    yield from inside(one, path, first)
        for one in [*getattr(node, "handlers", []), *getattr(node, "cases", [])]:
            yield from inside(one, path, first)

    yield from inside(tree, "", 0)


def with_notes(source: str, module: str) -> str:
    """A module that notes which of its blocks are run."""
    tree = ast.parse(source)
    for held, name in list(blocks(tree, module)):
        said = ast.parse(f"{REACHED}.add({name!r})").body
        texts = isinstance(held[0], ast.Expr) and isinstance(held[0].value, ast.Constant)
        held[texts:texts] = said
    at = 1 if ast.get_docstring(tree) is not None else 0
    while at < len(tree.body) and getattr(tree.body[at], "module", "") == "__future__":
        at += 1
    tree.body[at:at] = ast.parse(PREPARED).body
    return ast.unparse(ast.fix_missing_locations(tree))


def block_at(tree: ast.Module, module: str, line: int) -> str | None:
    """The innermost block around a line; None outside of all functions."""
    around = [
        (held[0].lineno, name)
        for held, name in blocks(tree, module)
        if held[0].lineno <= line <= (held[-1].end_lineno or 0)
    ]
    return max(around)[1] if around else None


class Tracer:
    """A pytest plugin: notes the blocks that each test runs, also in fixtures that it shares with
    others, how long it took, and whether it passed."""

    def __init__(self) -> None:
        self.hits: set[str] = builtins.__dict__.setdefault(REACHED, set())
        self.tests: dict[str, Any] = {}
        self.shared: dict[str, set[str]] = {}
        self.costs: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[Any]:
        before, began = set(self.hits), time.monotonic()
        self.hits.clear()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                name = fixturedef.argname
                self.shared[name] = self.shared.get(name, set()) | self.hits
                self.costs[name] = time.monotonic() - began
            self.hits |= before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Iterator[Any]:
        self.hits.clear()
        began = time.monotonic()
        held = self.tests.setdefault(item.nodeid, {"passed": True})
        result = yield
        held["seconds"] = time.monotonic() - began
        held["hits"], held["names"] = set(self.hits), list(item.fixturenames)
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        held = self.tests[report.nodeid]
        held["passed"] = held["passed"] and report.outcome == "passed"

    def passed(self) -> dict[str, Any]:
        """The tests that passed, with what they run and how long they take alone."""
        found = {}
        for name, held in self.tests.items():
            if held["passed"]:
                names = [n for n in held["names"] if n in self.shared]
                lines = held["hits"].union(*(self.shared[n] for n in names))
                least = sum(self.costs[n] for n in names)
                found[name] = {"seconds": round(max(held["seconds"], least), 3)}
                found[name]["hits"] = sorted(lines)
        return found


def traced(root: Path, file: str, kept: Path, seconds: float = 900.0) -> dict[str, Any]:
    """The tests of a file that pass in a folder whose modules note what is run, and what they run;
    kept for the next time."""
    text = (root / "tests" / f"{file}.py").read_bytes()
    path = kept / f"{file}-{zlib.crc32(text):08x}.json"
    if not path.exists():

        def act() -> int:
            enter(root)
            tracer = Tracer()
            pytest.main([*OPTIONS, f"tests/{file}.py"], plugins=[tracer])
            path.write_text(json.dumps(tracer.passed()))
            return 0

        kept.mkdir(parents=True, exist_ok=True)
        if in_child(act, seconds) != 0:
            path.write_text("{}")
    return json.loads(path.read_text())


def files(root: Path) -> list[str]:
    return sorted(
        p.stem
        for p in (root / "tests").glob("test_*.py")
        if p.stem.removeprefix("test_") not in APART
    )


FAILED = ".failed"
"""A file that names the test that failed."""


class InOrder:
    """A pytest plugin: tests in the order in which they are named; says which of them failed."""

    def __init__(self, tests: list[str]) -> None:
        self.place = {name: i for i, name in enumerate(tests)}
        self.path = Path(FAILED).absolute()
        self.path.unlink(missing_ok=True)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.path.write_text(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list) -> None:
        items.sort(key=lambda item: self.place.get(item.nodeid, 0))


def said(status: int | None) -> str:
    return "timed out" if status is None else "failed" if status else "passed"


def verdict(root: Path, tests: list[str], seconds: float) -> str:
    """How tests end, in a process that imports everything anew: passed, failed, or timed out."""

    def act() -> int:
        enter(root)
        return int(pytest.main([*OPTIONS, "-x", *tests], plugins=[InOrder(tests)]))

    return said(in_child(act, seconds))


class Everything:
    """A pytest plugin: loads the whole package, as tests have it, with types checked."""

    def pytest_collection_finish(self, session: Any) -> None:
        for path in sorted(Path("recombine").rglob("*.py")):
            name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
            with suppress(Exception):
                import_module(name) if path.stem != "__main__" else None


class Warm:
    """A process that has the package loaded. For each fault it is forked, and the function with the
    fault takes the place of the one that is there. It loads no tests: some use polars at once, whose
    threads no fork survives."""

    def __init__(self, root: Path) -> None:
        self.root, (self.pipe, inner) = root, Pipe()
        self.process = os.fork()
        if self.process == 0:
            enter(root)
            pytest.main([*OPTIONS, "--collect-only", "tests/test_rng.py"], plugins=[Everything()])
            while given := inner.recv():
                inner.send(self.tried(*given))
            os._exit(0)

    def verdict(self, module: str, text: str, tests: list[str], seconds: float) -> str:
        self.pipe.send((module, text, tests, seconds))
        return self.pipe.recv()

    def tried(self, module: str, text: str, tests: list[str], seconds: float) -> str:
        def act() -> int:
            exchange(self.root / "recombine" / f"{module}.py", text)
            plain = [*OPTIONS, "-o", "addopts=", "-x", *tests]
            return int(pytest.main(plain, plugins=[InOrder(tests)]))

        return said(in_child(act, seconds))

    def end(self) -> None:
        self.pipe.send(None)
        os.waitpid(self.process, 0)


def exchange(path: Path, text: str) -> None:
    """Give the functions of a loaded module the code that another text has for them."""
    new = dict(functions(compile(text, str(path), "exec")))
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename == str(path):
            code = new.get(one.__code__.co_qualname)
            if code is not None and code.co_freevars == one.__code__.co_freevars:
                one.__code__ = code


def functions(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """The functions and methods of a module; not those inside of others."""
    for one in code.co_consts:
        if isinstance(one, CodeType):
            if one.co_flags & inspect.CO_OPTIMIZED:
                yield one.co_qualname, one
            else:
                yield from functions(one)


def tests_at(
    tests: dict[str, Any], module: str, block: str | None, most: float
) -> tuple[list[str], float]:
    """The tests that run a block, the quickest first, as many as take `most` seconds, and how long
    they take; of a module's or class's own lines, those that run anything in it."""

    def runs(held: dict[str, Any]) -> bool:
        if block is not None:
            return block in held["hits"]
        return any(h.startswith(f"{module}:") for h in held["hits"])

    found, total = [], 0.0
    for name in sorted((t for t in tests if runs(tests[t])), key=lambda t: tests[t]["seconds"]):
        total += tests[name]["seconds"]
        if found and total > most:
            break
        found.append(name)
    return found, total
