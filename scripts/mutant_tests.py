"""Which tests run which lines: for `scripts/mutants.py`, so that a fault is tried on the tests that
can notice it, the quickest first. Every block of the package (a function's body, a branch, a loop)
notes in a copy of the source that it was run; nothing else is slowed down."""

import ast
import builtins
import gc
import inspect
import json
import os
import resource
import signal
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from multiprocessing import Pipe
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from hypothesis import Phase, settings

OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
OPTIONS += ["--hypothesis-seed=0", "-m", ""]
COLLECTED = [*OPTIONS, "--collect-only", "tests/test_rng.py"]
APART = {"docs", "readme", "house", "supply", "notebooks", "own_tour", "report_browser"}
APART |= {"kill", "ddp", "mps", "words"}
"""Files whose tests read texts, or start processes of their own: no fault is tried on them."""
MEMORY = 24 << 30
"""Bytes of addresses that a child may use: a fault may ask for all there is."""
LEAST, TIMES = 20.0, 5.0
"""Seconds for one test: so many, and so many times what it takes without a fault. What takes longer
hangs, and is caught."""
REACHED = "_recombine_hits"
PREPARED = f"import builtins as _b; {REACHED} = _b.__dict__.setdefault({REACHED!r}, set())"


def enter(root: Path) -> None:
    """Work in a copy of the project, silently; examples that fail are not made shorter."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("quick", phases=phases, database=None)
    settings.load_profile("quick")
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
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os._exit(act())
    deadline, status = time.monotonic() + seconds, None
    while status is None and time.monotonic() < deadline:
        done, code = os.waitpid(child, os.WNOHANG)
        status = os.waitstatus_to_exitcode(code) if done else None
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    if status is None:
        os.waitpid(child, 0)
    return None if status == -signal.SIGALRM else status


def blocks(tree: ast.Module, module: str) -> Iterator[tuple[list[ast.stmt], str]]:
    """Every list of statements inside a function, with its name: the function's, and how many lines
    below its first it begins, so that changes elsewhere in the file leave it as it is."""

    def inside(node: ast.AST, path: str, first: int) -> Iterator[tuple[list[ast.stmt], str]]:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            path = f"{path}.{node.name}"
            first = 0 if isinstance(node, ast.ClassDef) else node.lineno
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            held = getattr(node, name, None)
            if not isinstance(held, list):
                continue
            if first and held and isinstance(held[0], ast.stmt):
                yield held, f"{module}:{path}+{held[0].lineno - first}"
            for one in held:
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


def worked() -> float:
    """Seconds of processors that this process and its children have used."""
    return sum(os.times()[:4])


class Tracer:
    """A pytest plugin: notes the blocks that each test runs, also in fixtures that it shares with
    others, how long it kept a core busy, and whether it passed."""

    def __init__(self) -> None:
        self.hits: set[str] = builtins.__dict__.setdefault(REACHED, set())
        self.tests: dict[str, Any] = {}
        self.shared: dict[str, set[str]] = {}
        self.costs: dict[str, float] = {}
        self.spent = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[Any]:
        before, began, spent = set(self.hits), worked(), self.spent
        self.hits.clear()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                name = fixturedef.argname
                self.shared[name] = self.shared.get(name, set()) | self.hits
                self.costs[name] = worked() - began - (self.spent - spent)
                self.spent += self.costs[name]
            self.hits |= before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Iterator[Any]:
        self.hits.clear()
        began, spent = worked(), self.spent
        held = self.tests.setdefault(item.nodeid, {"passed": True})
        result = yield
        held["seconds"] = worked() - began - (self.spent - spent)
        held["hits"], held["names"] = set(self.hits), list(item.fixturenames)
        return result

    def pytest_runtest_logreport(self, report: Any) -> None:
        held = self.tests[report.nodeid]
        held["passed"] = held["passed"] and report.outcome == "passed"

    def passed(self) -> dict[str, Any]:
        """The tests that passed: what they run, how long they take, and their shared fixtures."""
        found = {}
        for name, held in self.tests.items():
            if held["passed"]:
                names = [n for n in held["names"] if n in self.shared]
                lines = held["hits"].union(*(self.shared[n] for n in names))
                found[name] = {"seconds": round(held["seconds"], 3), "hits": sorted(lines)}
                found[name]["shared"] = {n: round(self.costs[n], 3) for n in names}
        return found


def imported(root: Path, kept: Path) -> set[str]:
    """The blocks that are run where modules are loaded, in a folder whose modules note what is run.
    Leaves all of them compiled, as tests load them too: a test that fills the disk would leave half
    a file."""
    path = kept / "imported.json"

    def act() -> int:
        enter(root)
        load_all()
        path.write_text(json.dumps(sorted(builtins.__dict__.get(REACHED, ()))))
        return 0

    def compiled() -> int:
        enter(root)
        return int(pytest.main(COLLECTED, plugins=[Everything()]))

    kept.mkdir(parents=True, exist_ok=True)
    in_child(compiled, 300.0)
    return set(json.loads(path.read_text())) if in_child(act, 300.0) == 0 else set()


def at_load(block: str, loaded: set[str]) -> bool:
    """Whether a block is run where modules are loaded, or is inside a function that is."""
    path = block.rpartition("+")[0]
    within = {one.rpartition("+")[0] for one in loaded}
    return path in within or any(path.startswith(f"{one}.") for one in within)


def load_all() -> None:
    for path in sorted(Path("recombine").rglob("*.py")):
        name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        with suppress(Exception):
            import_module(name) if path.stem != "__main__" else None


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
    names = (path.stem for path in (root / "tests").glob("test_*.py"))
    return sorted(name for name in names if name.removeprefix("test_") not in APART)


Tests = dict[str, float]
"""Tests in the order in which they are tried, each with its seconds."""
FAILED = ".failed"
"""A file that names the test that failed."""


class InOrder:
    """A pytest plugin: of the files of some tests these alone, in the order in which they are named,
    and those that a fault has given other parameters, so other names; says which of them failed,
    and ends the process where one of them hangs."""

    def __init__(self, tests: Tests) -> None:
        self.tests, self.place = tests, {name: i for i, name in enumerate(tests)}
        self.path = Path(FAILED).absolute()
        self.path.unlink(missing_ok=True)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        signal.setitimer(signal.ITIMER_REAL, LEAST + TIMES * self.tests.get(nodeid, 60.0))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.path.write_text(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list) -> None:
        lost = tuple(t.partition("[")[0] for t in self.tests.keys() - {i.nodeid for i in items})
        items[:] = [i for i in items if i.nodeid in self.tests or i.nodeid.startswith(lost)]
        items.sort(key=lambda item: self.place.get(item.nodeid, 0))


def tried(tests: Tests, prepare: Callable[[], None], *options: str) -> str:
    """How tests end in a child, after what it does first: passed, failed, or timed out."""
    named = dict.fromkeys(test.partition("::")[0] for test in tests)

    def act() -> int:
        prepare()
        return int(pytest.main([*OPTIONS, *options, "-x", *named], plugins=[InOrder(tests)]))

    status = in_child(act, 60.0 + LEAST + TIMES * sum(tests.values()))
    return "timed out" if status is None else "failed" if status else "passed"


def verdict(root: Path, tests: Tests) -> str:
    """How tests end in a process that imports everything anew."""
    return tried(tests, partial(enter, root))


class Everything:
    """A pytest plugin: loads the whole package, as tests have it, with types checked."""

    def pytest_collection_finish(self, session: Any) -> None:
        load_all()


class Warm:
    """A process that has the package loaded. For each fault it is forked, and the function with the
    fault takes the place of the one that is there. It loads no tests: some use polars at once, whose
    threads no fork survives."""

    def __init__(self, root: Path) -> None:
        self.pipe, inner = Pipe()
        self.process = os.fork()
        if self.process == 0:
            enter(root)
            pytest.main(COLLECTED, plugins=[Everything()])
            inner.send("ready")
            while given := inner.recv():
                module, text, tests = given
                changed = partial(exchange, root / "recombine" / f"{module}.py", text)
                inner.send(tried(tests, changed, "-o", "addopts="))
            os._exit(0)
        self.pipe.recv()  # a fault that is written before would be loaded

    def verdict(self, module: str, text: str, tests: Tests) -> str:
        self.pipe.send((module, text, tests))
        return self.pipe.recv()

    def end(self) -> None:
        self.pipe.send(None)
        os.waitpid(self.process, 0)


def exchange(path: Path, text: str) -> None:
    """Give the functions of a loaded module the code that another text has for them."""
    new = functions(compile(text, str(path), "exec"))
    for one in gc.get_objects():
        if type(one) is FunctionType and one.__code__.co_filename == str(path):
            code = new.get(one.__code__.co_qualname)
            if code is not None and code.co_freevars == one.__code__.co_freevars:
                one.__code__ = code


def is_exchangeable(old: str, new: str) -> bool:
    """Whether all functions still use the same names from around them: one that no longer says
    `super()` cannot take the place of one that did."""
    before, after = (functions(compile(text, "", "exec")) for text in (old, new))
    return before.keys() == after.keys() and all(
        before[name].co_freevars == after[name].co_freevars for name in before
    )


def functions(code: CodeType) -> dict[str, CodeType]:
    """The functions and methods of a module, by name; not those inside of others."""
    found = {}
    for one in (c for c in code.co_consts if isinstance(c, CodeType)):
        found |= {one.co_qualname: one} if one.co_flags & inspect.CO_OPTIMIZED else functions(one)
    return found


def tests_at(tests: dict[str, Any], module: str, block: str | None, most: float) -> Tests:
    """The tests that run a block, the quickest first, as many as take `most` seconds, fixtures that
    they share counted once; of a module's or class's own lines, those that run anything in it."""

    def runs(held: dict[str, Any]) -> bool:
        if block is not None:
            return block in held["hits"]
        return any(h.startswith(f"{module}:") for h in held["hits"])

    def alone(test: str) -> float:
        return tests[test]["seconds"] + sum(tests[test]["shared"].values())

    found, paid, total = {}, set(), 0.0
    for name in sorted((t for t in tests if runs(tests[t])), key=alone):
        file = name.partition("::")[0]
        new = {(file, n): cost for n, cost in tests[name]["shared"].items()}
        total += tests[name]["seconds"] + sum(c for n, c in new.items() if n not in paid)
        if found and total > most:
            break
        found[name] = alone(name)
        paid |= new.keys()
    return found
