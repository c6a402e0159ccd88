"""Tests on a faulty copy of the project, for `scripts/mutants.py`: in a forked child with limits on
time and memory, in a process that has the package loaded already where only functions differ."""

import gc
import inspect
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
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
MEMORY = 24 << 30
"""Bytes of addresses that a child may use: a fault may take all there is."""
LEAST, TIMES = 20.0, 5.0
"""Seconds for one test: so many, and so many times what it takes without a fault. What takes longer
hangs, and is caught."""
FAILED = ".failed"
"""A file that names the test that failed."""
Tests = dict[str, float]
"""Tests in the order in which they are tried, each with its seconds."""


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


def load_all() -> None:
    for path in sorted(Path("recombine").rglob("*.py")):
        name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
        with suppress(Exception):
            import_module(name) if path.stem != "__main__" else None


class Everything:
    """A pytest plugin: loads the whole package, as tests have it, with types checked."""

    def pytest_collection_finish(self, session: Any) -> None:
        load_all()


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
