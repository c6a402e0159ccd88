"""Which tests call which functions: for `scripts/mutants.py`, so that a fault is tried on the tests
that can notice it, the quickest first."""

import ast
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:randomly"]
FILES = 3
"""How many test files a module is tried on at most."""
NAMED = {
    "store": ["test_store", "test_robust"],
    "files": ["test_store", "test_robust"],
    "limits": ["test_robust", "test_folder"],
    "config": ["test_config_values", "test_config"],
    "overrides": ["test_config_values", "test_config"],
    "analysis/estimates": ["test_estimates"],
    "metrics/intervals": ["test_intervals"],
    "analysis/claims": ["test_claims"],
}
"""Modules that nearly every test imports, or that another file tests."""


def in_child(root: Path, act: Callable[[], int], seconds: float) -> int | None:
    """The exit status of something done in a forked child, in `root`; None where it took too
    long."""
    child = os.fork()
    if child == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.chdir(root)
        sys.path[:0] = [str(root), str(root / "tests"), str(root / "scripts")]
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


class Tracer:
    """A pytest plugin: notes the functions of the package that each test calls, how long it took,
    and whether it passed. Only calls are traced, not lines."""

    def __init__(self, root: Path) -> None:
        self.prefix, self.calls = str(root / "recombine") + os.sep, set()
        self.tests: dict[str, Any] = {}

    def trace(self, frame: Any, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if name.startswith(self.prefix):
            module = name[len(self.prefix) :].removesuffix(".py")
            self.calls.add(f"{module}:{frame.f_code.co_firstlineno}")

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        self.calls = set()
        self.began = time.monotonic()
        sys.settrace(self.trace)

    def pytest_runtest_logreport(self, report: Any) -> None:
        held = self.tests.setdefault(report.nodeid, {"passed": True})
        held["passed"] = held["passed"] and report.outcome == "passed"

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        sys.settrace(None)
        seconds = round(time.monotonic() - self.began, 3)
        self.tests[nodeid] |= {"seconds": seconds, "calls": sorted(self.calls)}


def traced(root: Path, file: str, kept: Path, seconds: float = 900.0) -> dict[str, Any]:
    """The tests of a file that pass, and what they call; kept for the next time."""
    path = kept / f"{file}.json"
    if not path.exists():

        def act() -> int:
            import pytest

            tracer = Tracer(root)
            pytest.main([*OPTIONS, f"tests/{file}.py"], plugins=[tracer])
            path.write_text(json.dumps({k: v for k, v in tracer.tests.items() if v["passed"]}))
            return 0

        kept.mkdir(parents=True, exist_ok=True)
        if in_child(root, act, seconds) != 0:
            path.write_text("{}")
    return json.loads(path.read_text())


def verdict(root: Path, tests: list[str], seconds: float) -> str:
    """How tests end, in a child process: passed, failed, or timed out."""

    def act() -> int:
        import pytest

        return int(pytest.main([*OPTIONS, "-x", *tests]))

    status = in_child(root, act, seconds)
    return "timed out" if status is None else "failed" if status else "passed"


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, as paths."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("recombine"):
            base = node.module.removeprefix("recombine").removeprefix(".").replace(".", "/")
            found |= {base, *(f"{base}/{a.name}".removeprefix("/") for a in node.names)}
    return found


def files_of(root: Path, module: str) -> list[str]:
    """Test files to try a module on: those that import it, or import what imports it; files that
    carry its name first, then those that import little else."""
    if module in NAMED:
        return NAMED[module]
    tests = {p.stem: imports(p) for p in sorted((root / "tests").glob("test_*.py"))}
    package = root / "recombine"
    sources = {str(p.relative_to(package).with_suffix("")): p for p in package.rglob("*.py")}
    wanted, found = {module}, []
    for _ in range(4):
        found = [name for name, held in tests.items() if held & wanted]
        if found:
            break
        wanted |= {name for name, path in sources.items() if imports(path) & wanted}
    last = module.rpartition("/")[2]
    found.sort(key=lambda name: (name != f"test_{last}", last not in name, len(tests[name])))
    return found[:FILES]


def function_at(tree: ast.Module, line: int) -> int | None:
    """The first line of the innermost function around a line, as code objects say it."""
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body[0].lineno <= line <= node.end_lineno
    ]
    if not around:
        return None
    inner = max(around, key=lambda node: node.lineno)
    return min([inner.lineno, *(d.lineno for d in inner.decorator_list)])


def tests_at(tests: dict[str, Any], module: str, first_line: int | None) -> list[str]:
    """The tests that call a function, the quickest first; of a module's or class's own lines, all
    that call anything in it."""
    key = f"{module}:" if first_line is None else f"{module}:{first_line}"

    def calls(held: dict[str, Any]) -> bool:
        return any(c == key or (first_line is None and c.startswith(key)) for c in held["calls"])

    return sorted(
        (t for t, held in tests.items() if calls(held)), key=lambda t: tests[t]["seconds"]
    )
