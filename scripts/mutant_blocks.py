"""Which tests run which blocks (a function's body, a branch, a loop), for `scripts/mutants.py`: a
fault is tried on the tests that can notice it, the quickest first. Every block of the package notes
in a copy of the source that it was run; nothing else is slowed down."""

import ast
import builtins
import json
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mutant_tests import COLLECTED, OPTIONS, Everything, Tests, enter, in_child, load_all

APART = {"docs", "readme", "house", "supply", "notebooks", "own_tour", "report_browser"}
APART |= {"kill", "ddp", "mps", "words"}
"""Files whose tests read texts, or start processes of their own: no fault is tried on them."""
REACHED = "_recombine_reached"
PREPARED = f"import builtins as _b; {REACHED} = _b.__dict__.setdefault({REACHED!r}, set())"


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
        self.reached: set[str] = builtins.__dict__.setdefault(REACHED, set())
        self.tests: dict[str, Any] = {}
        self.shared: dict[str, set[str]] = {}
        self.costs: dict[str, float] = {}
        self.spent = 0.0

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[Any]:
        before, began, spent = set(self.reached), worked(), self.spent
        self.reached.clear()
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                name = fixturedef.argname
                self.shared[name] = self.shared.get(name, set()) | self.reached
                self.costs[name] = worked() - began - (self.spent - spent)
                self.spent += self.costs[name]
            self.reached |= before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> Iterator[Any]:
        self.reached.clear()
        began, spent = worked(), self.spent
        held = self.tests.setdefault(item.nodeid, {"passed": True})
        result = yield
        held["seconds"] = worked() - began - (self.spent - spent)
        held["reached"], held["names"] = set(self.reached), list(item.fixturenames)
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
                lines = held["reached"].union(*(self.shared[n] for n in names))
                found[name] = {"seconds": round(held["seconds"], 3), "reached": sorted(lines)}
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


def tests_at(tests: dict[str, Any], module: str, block: str | None, most: float) -> Tests:
    """The tests that run a block, the quickest first, as many as take `most` seconds, fixtures that
    they share counted once; of a module's or class's own lines, those that run anything in it."""

    def runs(held: dict[str, Any]) -> bool:
        if block is not None:
            return block in held["reached"]
        return any(h.startswith(f"{module}:") for h in held["reached"])

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
