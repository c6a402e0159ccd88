"""A command carried out: plan, run what is missing, and hand each study on as soon as all its jobs
are done."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

from recombine.config import UsageError
from recombine.files import is_gone
from recombine.pipeline.executor import is_finished
from recombine.pipeline.job import ancestors, described, digest_of, folder_of
from recombine.pipeline.lease import hold_lease, sweep_leases
from recombine.pipeline.plan import Command, StudyPlan, first_seeds, make_plans, missing, titles
from recombine.pipeline.worker import PAGE_COST, TaskFailed, known_failures, raise_first, run_tasks
from recombine.runtime import Runtime
from recombine.store import Row

WAIT = 1.0
"""Seconds that --fresh waits for runs that others hold: some are only looked at."""
LONG_WORK = 5000.0
"""The cost of tasks from which on a second worker pays for its start: a few hundred updates."""


def run_studies(
    command: Command,
    engine: str,
    fresh: bool,
    runtime: Runtime,
    plans: list[StudyPlan] | None = None,
) -> Iterator[StudyPlan]:
    """Each study of the command, when its jobs are done. TaskFailed at the end where some could not
    be."""
    plans, out = plans or make_plans(command), Path(command.out)
    if fresh:
        erase(plans, out, runtime)
    command = replace(command, workers=command.workers or _suitable(command, plans, runtime))
    try:
        if engine == "local" and command.workers == 1:
            yield from _in_this_process(plans, out, runtime)
        else:
            yield from _by_workers(command, plans, engine, runtime)
    finally:
        if runtime.rank == 0:
            sweep_leases(out)
            _sweep_plans(out)


def _suitable(command: Command, plans: list[StudyPlan], runtime: Runtime) -> int:
    """How many workers where nobody says: two on a CPU for long work at laptop scale, for small
    networks gain little from a second core; else one."""
    todo = missing([t for plan in plans for t in plan.tasks], Path(command.out))
    long = command.scale == "laptop" and sum(t.cost for t in todo) > LONG_WORK
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    alone = int(os.environ.get("WORLD_SIZE", 1)) == 1 and runtime.device.type == "cpu"
    return 2 if long and alone and (cores or 1) > 1 else 1


def _in_this_process(plans: list[StudyPlan], out: Path, runtime: Runtime) -> Iterator[StudyPlan]:
    failed = None
    for i, plan in enumerate(plans):
        later = [t for p in plans[i + 1 :] for t in missing(p.tasks, out)]
        runtime.pace.after = PAGE_COST * (len(plans) - i)
        try:
            seeds = first_seeds([plan])
            run_tasks(plan.tasks, out, runtime, titles(plans), after=later, seeds=seeds)
        except (TaskFailed, UsageError) as error:
            failed = failed or error
            continue
        yield plan
    if failed:
        raise failed


def _by_workers(
    command: Command, plans: list[StudyPlan], engine: str, runtime: Runtime
) -> Iterator[StudyPlan]:
    from recombine.pipeline.engines import find_engine

    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise UsageError(
            "workers give each run to one process, torchrun gives one run to all; use either"
        )
    chosen, out = find_engine(engine), Path(command.out).resolve()
    todo = missing([t for plan in plans for t in plan.tasks], out)
    name = f"{engine}.{socket.gethostname()}.{os.getpid()}.{uuid4().hex[:12]}"
    folder = out / ".plans" / name
    if todo:
        path = replace(command, out=str(out)).write(folder / "plan.json")
        chosen.run(path, min(command.workers, len(todo)), runtime.log)
    failures = known_failures(folder / "failed")
    if engine == "local" or not failures:  # a cluster's logs say more of what failed
        rmtree(folder, ignore_errors=True)
    for plan in plans:
        if not missing(plan.tasks, out):
            yield plan
    raise_first(failures)
    if left := missing([t for plan in plans for t in plan.tasks], out):
        raise TaskFailed(f"{len(left)} tasks were not done; the same command goes on from here")


def _sweep_plans(out: Path) -> None:
    """Remove the plans of this command and of those on this machine that are gone, with their
    workers; a cluster's workers may outlive the command that started them."""
    gone = f"local.{socket.gethostname()}."
    for folder in (out / ".plans").glob(f"{gone}*"):
        pid = folder.name.removeprefix(gone).partition(".")[0]
        if pid == str(os.getpid()) or not pid.isdigit() or is_gone(int(pid)):
            rmtree(folder, ignore_errors=True)
    with suppress(OSError):
        (out / ".plans").rmdir()


def erase(plans: list[StudyPlan], out: Path, runtime: Runtime) -> None:
    """--fresh: forget the runs of a command, now and once; whoever works in one of them must finish
    first. All of them are held before the first is erased."""
    runtime.barrier()
    if runtime.rank == 0:
        tasks, began = list(ancestors(t for plan in plans for t in plan.tasks)), time.monotonic()

        def patient() -> bool:
            return time.monotonic() - began < WAIT

        with ExitStack() as stack:
            for task in tasks:
                name = digest_of(task)
                if stack.enter_context(hold_lease(out, name, wait=patient)) is None:
                    raise UsageError(
                        f"--fresh: another command is working on run {name}; wait for it"
                    )
            for task in tasks:
                folder_of(task, out).erase()
    runtime.barrier()


def collect(
    plan: StudyPlan, out: Path, keep: Callable[[Row], bool] = lambda row: row["kind"] != "train"
) -> list[Row]:
    """The rows of a study's jobs, each with its labels and the digest of its run."""
    rows = []
    for job in plan.jobs:
        if not is_finished(job.task, out):
            raise UsageError(f"run {digest_of(job.task)} ({job.title}) is not finished")
        folder = folder_of(job.task, out)
        folder.begin(described(job.task))  # refuses a folder that holds another config
        about = {**dict(job.labels), "run": folder.digest}
        rows += [row | about for row in folder.rows() if keep(row)]
    return rows
