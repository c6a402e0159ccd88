"""One task carried out: under a lease, in its folder, with provenance. What is on disk and valid is
not done again."""

import json
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from recombine.config import UsageError
from recombine.pipeline.job import Task, Work, described, digest_of, folder_of
from recombine.pipeline.lease import Lease, Watcher, hold_lease
from recombine.runtime import Runtime
from recombine.store import Row, RunFolder

_LOADED: dict[tuple[Path, str], dict[str, Any]] = {}
"""What this process has loaded of finished tasks, by folder and device."""


def parent_weights(task: Task, out: Path) -> dict[str, str]:
    """The checksums of the parents' weights as they are on disk."""
    folders = [folder_of(p, out) for p in task.parents()]
    return {f.digest: f.weights for f in folders if f.done and f.weights}


def is_finished(task: Task, out: Path) -> bool:
    """Whether its rows are on disk and its parents' weights, where they are there too, are those it
    was made with."""
    facts = folder_of(task, out).facts()
    if not facts:
        return False
    made_with, now = facts.get("parents", {}), parent_weights(task, out)
    return all(made_with.get(name, weights) == weights for name, weights in now.items())


def is_usable(task: Task, out: Path) -> bool:
    """Whether it is finished and its weights, if it leaves any, are there to be opened."""
    return is_finished(task, out) and not (task.weights and folder_of(task, out).weights_missing)


def execute(
    task: Task,
    out: Path,
    runtime: Runtime,
    title: str = "",
    watcher: Watcher | None = None,
    wait: Callable[[], bool] | None = None,
) -> bool:
    """Run a task whose parents are usable. False where another worker holds it; `wait` says
    whether to wait for that one."""
    with _leased(task, out, runtime, watcher, wait) as lease:
        if lease is None:
            return False
        check = lease.check if isinstance(lease, Lease) else None
        folder = replace(folder_of(task, out), check=check)
        if prepare_run(task, out, runtime, folder):
            began = time.perf_counter()
            given = task.run(Work(task, out, runtime, title, check, opened(out, runtime)))
            rows = None if given is None else _checked(task, given)
            _finish(task, out, runtime, folder, rows, time.perf_counter() - began)
    return True


@contextmanager
def _leased(
    task: Task,
    out: Path,
    runtime: Runtime,
    watcher: Watcher | None,
    wait: Callable[[], bool] | None,
) -> Iterator[Lease | bool | None]:
    """Of the processes that torchrun starts, the first one holds the lease for all."""
    if runtime.rank > 0:
        yield runtime.agreed(True) or None
        return
    with hold_lease(out, digest_of(task), watcher, wait) as lease:
        yield lease if runtime.agreed(lease is not None) else None


def prepare_run(task: Task, out: Path, runtime: Runtime, folder: RunFolder) -> bool:
    """Whether there is something to do, with the folder made ready for it."""
    runtime.barrier()
    if folder.done and runtime.rank == 0 and not is_usable(task, out):
        folder.erase()  # its weights are gone, or it was made with other parents
    runtime.barrier()
    if folder.done:
        return False
    if runtime.rank == 0:
        folder.begin(described(task))
        folder.sweep()
    runtime.barrier()
    return True


def _finish(
    task: Task,
    out: Path,
    runtime: Runtime,
    folder: RunFolder,
    rows: list[Row] | None,
    seconds: float,
) -> None:
    if runtime.rank == 0:
        if rows is not None:
            folder.write_rows(rows)
        facts = {"seconds": round(seconds, 2), **folder.spent()}
        folder.finish({**facts, "parents": parent_weights(task, out), **runtime.facts()})
    runtime.barrier()


def _checked(task: Task, given: Iterable[Any]) -> list[Row]:
    """Rows that a study can collect, which a task may also yield one by one; others are refused
    before the run counts as done."""
    rows = list(given)
    for row in rows:
        if not isinstance(row, dict) or "kind" not in row:
            raise UsageError(f"{type(task).__name__}.run: a row without a 'kind': {row!r}")
        try:
            json.dumps(row)
        except TypeError as error:
            raise UsageError(f"{type(task).__name__}.run: {error} in {row}") from None
    return rows


def opened(out: Path, runtime: Runtime) -> dict[str, Any]:
    return _LOADED.setdefault((out.resolve(), str(runtime.device)), {})


def obtain(task: Task, out: Path, runtime: Runtime) -> Any:
    """What a task leaves, made now with all it needs if it is not on disk; for use outside of
    studies."""
    for parent in task.parents():
        _make(parent, out, runtime)
    _make(task, out, runtime)
    return Work(task, out, runtime, opened=opened(out, runtime)).open(task)


def _make(task: Task, out: Path, runtime: Runtime) -> None:
    if is_usable(task, out):
        return
    for parent in task.parents():
        _make(parent, out, runtime)
    execute(task, out, replace(runtime), title=task.noun, wait=lambda: not is_usable(task, out))
    if not is_usable(task, out):
        raise UsageError(f"run {digest_of(task)} was not finished")
