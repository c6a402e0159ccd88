"""A worker: takes tasks of a plan that are ready and that nobody holds, until none is left. All
engines start this loop.

    python -m recombine.pipeline.worker PLAN INDEX

Workers know of each other only through the results folder: leases say who holds what, done.json
says what is finished, and `failed/` beside the plan what cannot be done. So it does not matter
where they run or how many there are. Exit status: 0 nothing is left to do, 1 a task failed, 75 the
GPU failed, 130 interrupted."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from recombine.config import RunFailed, UsageError
from recombine.pipeline.executor import execute
from recombine.pipeline.job import Task, digest_of
from recombine.pipeline.lease import LeaseLost, Watcher
from recombine.pipeline.plan import (
    Command,
    first_seeds,
    make_plans,
    missing,
    ready,
    title_of,
    titles,
)
from recombine.runtime import Pace, Runtime
from recombine.store import read_json, write_json

IDLE = 0.2
"""Seconds between two looks for work while others hold all there is."""
SILENCE = 10.0
"""Seconds without work after which a line says what is waited for."""


PAGE_COST = 400.0
"""The cost of a study's figures and page."""
HELD_BACK = (signal.SIGINT, signal.SIGTERM)
"""Signals that are blocked while a worker is loading."""


GPU_FAILED = 75
"""The status of a worker that dies of its GPU. Another process may do better, so engines replace it
as any that died: a fault of one process ends all that share a GPU."""


class TaskFailed(RunFailed):
    """A task cannot be done; the message is one line."""


class Failure(NamedTuple):
    """Why a task cannot be done, in one line, and whether it was refused for what it was given."""

    line: str
    refused: bool


Failures = dict[str, Failure]
"""By the digests of tasks."""


def run_tasks(
    tasks: Iterable[Task],
    out: Path,
    runtime: Runtime,
    named: dict[Task, str],
    failures: Path | None = None,
    after: Iterable[Task] = (),
    seeds: dict[Task, int] | None = None,
) -> None:
    """Run all tasks and what they need. TaskFailed where some cannot be done; the others are done
    first. `after`: what this process has to do when they are done; `seeds`: tasks of the lowest run
    first."""
    tasks, after, watcher, failed = list(tasks), list(after), Watcher(), {}
    idle = 0.0
    while True:
        runtime.barrier()
        todo = missing(tasks, out)
        runtime.barrier()
        failed |= known_failures(failures)
        free = [t for t in ready(_possible(todo, failed), seeds) if digest_of(t) not in failed]
        if not free and not _held_by_others(todo, failed):
            break
        costs = costs_by_kind([*todo, *after])
        for task in free:
            title, taken = title_of(task, named), True  # also where it fails
            runtime.pace.start(task.noun, task.cost, costs)
            with _failure_noted(task, title, runtime, failures, failed):
                taken = execute(task, out, runtime, title, watcher)
            if taken:
                runtime.pace.finish()
                break
        else:
            idle += IDLE
            if idle - IDLE < SILENCE <= idle:
                runtime.log("waiting for runs that other processes are working on")
            time.sleep(IDLE)
    raise_first(failed)


def costs_by_kind(tasks: Iterable[Task]) -> dict[str, float]:
    costs: dict[str, float] = {}
    for task in tasks:
        costs[task.noun] = costs.get(task.noun, 0.0) + task.cost
    return costs


def _possible(todo: list[Task], failed: Failures) -> list[Task]:
    """Without what needs a task that failed."""
    lost: set[Task] = {t for t in todo if digest_of(t) in failed}
    for task in todo:  # parents come first
        if any(p in lost for p in task.parents()):
            lost.add(task)
    return [t for t in todo if t not in lost or digest_of(t) in failed]


def _held_by_others(todo: list[Task], failed: Failures) -> bool:
    return any(digest_of(t) not in failed for t in _possible(todo, failed))


@contextmanager
def _failure_noted(
    task: Task, title: str, runtime: Runtime, failures: Path | None, failed: Failures
) -> Iterator[None]:
    """A task that cannot be done is noted for all workers; a lost lease is left to who took it."""
    try:
        yield
    except LeaseLost as lost:
        runtime.log(f"{title}: {lost}")
    except Exception as error:
        if not is_expected(error):
            raise
        line = f"{title}: {' '.join(str(error).split())}"
        failure = Failure(line, isinstance(error, UsageError))
        failed[digest_of(task)] = failure
        if failures:
            write_json(failures / f"{digest_of(task)}.json", failure._asdict())
        runtime.log(line)


def is_expected(error: Exception) -> bool:
    """Whether one line says it all: bad settings, a training that diverged, memory that is not
    there."""
    said = str(error)
    full = isinstance(error, MemoryError) or "allocate memory" in said or "out of memory" in said
    return isinstance(error, UsageError | RunFailed) or full


def known_failures(folder: Path | None) -> Failures:
    if folder is None or not folder.is_dir():
        return {}
    return {path.stem: Failure(**read_json(path)) for path in sorted(folder.glob("*.json"))}


def raise_first(failed: Failures) -> None:
    """UsageError where the first task that failed was refused (bad input), TaskFailed where its run
    failed."""
    for line, refused in failed.values():
        raise UsageError(line) if refused else TaskFailed(line)


def run_worker(plan: str, index: int = 0) -> None:
    """One worker of a plan. TaskFailed where some tasks cannot be done."""
    path, command = Path(plan), Command.read(Path(plan))
    plans = make_plans(command)
    with _dies_of_its_gpu(index):
        runtime = _runtime(command, index)
        tasks = [task for one in plans for task in one.tasks]
        failed = path.parent / "failed"
        seeds = first_seeds(plans)
        run_tasks(tasks, Path(command.out), runtime, titles(plans), failed, seeds=seeds)


@contextmanager
def _dies_of_its_gpu(index: int) -> Iterator[None]:
    """In place of a traceback one line, and the end of this process, which cannot use the GPU any
    more."""
    try:
        yield
    except Exception as error:
        if not is_gpu_fault(error):
            raise
        print(f"[{index}] {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
        leave(GPU_FAILED)


def is_gpu_fault(error: Exception) -> bool:
    """Whether CUDA itself failed. A task that lacks memory has been noted before."""
    said = str(error)
    return "CUDA error" in said or "cudaGetDeviceCount" in said


def _runtime(command: Command, index: int) -> Runtime:
    import torch

    torch.set_num_threads(max(1, torch.get_num_threads() // max(1, command.workers)))
    gpus = torch.cuda.device_count()
    spread = command.device in ("auto", "cuda") and gpus > 1
    device = f"cuda:{index % gpus}" if spread else command.device
    board = str(Path(command.out) / "tensorboard")
    pace = Pace(command.workers, PAGE_COST * len(command.studies))
    return Runtime.find(device, label=f"[{index}] ", tensorboard=board, pace=pace)


def stop_with_parent() -> None:
    """End this process when the one that started it is gone."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(arguments: list[str]) -> int:
    plan, index = arguments[0], int(arguments[1])
    if "--with-parent" in arguments:
        stop_with_parent()
    try:
        for number in HELD_BACK:  # shells start background commands with SIGINT ignored
            signal.signal(number, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
        run_worker(plan, index)
    except KeyboardInterrupt:
        return 130
    except (TaskFailed, UsageError) as error:
        print(f"[{index}] {' '.join(str(error).split())}", file=sys.stderr, flush=True)
        return 1
    return 0


def leave(status: Any) -> None:
    """Without waiting for what libraries do at exit: a worker's results are on disk."""
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
