"""Workers as Ray tasks, spread over a cluster's nodes; RECOMBINE_RAY_* say what each requests.

The cluster is the one that RAY_ADDRESS names, else the one that `ray start` began on this machine,
else a local one for the length of the command. All nodes must share the results folder, and have
the package installed."""

import logging
import math
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from recombine.config import UsageError
from recombine.pipeline.engines import Outcomes, need, settings_from

PREFIX = "RECOMBINE_RAY_"
ENVIRONMENT = {
    "RAY_DEDUP_LOGS": "0",  # else workers' lines that differ in numbers only are left out
    "RAY_USAGE_STATS_ENABLED": "0",
}
PASSED_ON = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "RECOMBINE_")
"""Variables that workers get from here, so that they compute as local processes do."""
LAST = 3.0
"""Seconds that workers have to find that nothing is left to do; those without a node never do."""
GRACE = 25.0
"""Seconds that workers have to save their state after Ctrl-C."""


@dataclass(frozen=True)
class RaySettings:
    """What each worker requests: `cpus` is RECOMBINE_RAY_CPUS, and so on. `gpus` may be a fraction;
    -1 shares the cluster's GPUs, if it has any, evenly among the workers."""

    cpus: float = 1.0
    gpus: float = -1.0


class RayEngine:
    """Runs workers as Ray tasks."""

    def run(self, plan: Path, workers: int, log: Callable[[str], None]) -> None:
        settings = settings_from(RaySettings, PREFIX)
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        need("ray", "ray")
        with connected(workers, log):
            tasks = WorkerTasks(plan.resolve(), settings, workers, log)
            with tasks.stopped_on_exit():
                tasks.submit(range(workers))
                tasks.wait()
        tasks.outcomes.check()


@contextmanager
def connected(workers: int, log: Callable[[str], None]) -> Iterator[None]:
    """A cluster for the length of the block; a connection that the caller has is left alone."""
    import ray

    if ray.is_initialized():
        yield
        return
    address = find_address(log)
    where = f"the Ray cluster at {address}" if address else "a local Ray cluster"
    cores = max(workers, os.cpu_count() or 1)
    options = {} if address else {"num_cpus": cores, "include_dashboard": False}
    try:
        ray.init(address=address or "local", logging_level=logging.ERROR, **options)
    except Exception as error:
        raise UsageError(f"--engine ray: cannot use {where}: {_first_line(error)}") from None
    log(f"{workers} workers on {where}, nodes: {len(ray.nodes())}")
    try:
        yield
    finally:
        ray.shutdown()


def find_address(log: Callable[[str], None]) -> str:
    """The address of the cluster to use; empty if there is none. Ray itself tries for minutes."""
    given = os.environ.get("RAY_ADDRESS", "")
    if given == "local":
        return ""
    if given and given != "auto":
        if problem := _unreachable(given):
            raise UsageError(f"--engine ray: no Ray cluster at RAY_ADDRESS={given}: {problem}")
        return given
    running = _started_here()
    if running and not _unreachable(running):
        return running
    if given:
        hint = "start one with `ray start --head`"
        raise UsageError(f"--engine ray: no Ray cluster for RAY_ADDRESS=auto; {hint}")
    if running:
        log(f"the Ray cluster at {running} is gone")
    return ""


def _started_here() -> str:
    """The address that `ray start` left on this machine."""
    folder = Path(os.environ.get("RAY_TMPDIR", "/tmp")) / "ray"
    with suppress(OSError):
        return (folder / "ray_current_cluster").read_text().strip()
    return ""


def _unreachable(address: str) -> str:
    """Why nothing answers at HOST:PORT or ray://HOST:PORT; empty where something does."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        if not parts.hostname or not parts.port:
            return "it must be HOST:PORT"
        socket.create_connection((parts.hostname, parts.port), timeout=5).close()
        return ""
    except (OSError, ValueError) as error:
        return getattr(error, "strerror", None) or str(error)


class WorkerTasks:
    """The workers of one plan: the Ray task of each, and what became of it."""

    def __init__(
        self,
        plan: Path,
        settings: RaySettings,
        workers: int,
        log: Callable[[str], None],
    ):
        import ray

        self.plan, self.log, self.outcomes = plan, log, Outcomes(plan, log)
        self.variables = {k: v for k, v in os.environ.items() if k.startswith(PASSED_ON)}
        gpus = settings.gpus
        if gpus < 0:
            gpus = gpu_share(ray.cluster_resources().get("GPU", 0.0), workers)
        # One process per worker; no retries by Ray itself, which would not be seen nor counted.
        self.remote = ray.remote(
            num_cpus=settings.cpus,
            num_gpus=gpus,
            max_calls=1,
            max_retries=0,
            scheduling_strategy="SPREAD",
        )(run_on_node)
        self.tasks: dict[Any, int] = {}

    def submit(self, indices: Iterable[int]) -> None:
        for index in indices:
            remote = self.remote.options(name=f"recombine worker {index}")
            task = remote.remote(str(self.plan), index, os.getcwd(), self.variables)
            self.tasks[task] = index

    def wait(self) -> None:
        """Until all workers have ended, or one has found nothing left to do and the others had time
        to; those that died are replaced."""
        import ray

        until = math.inf
        while self.tasks and time.monotonic() < until:
            ended, _ = ray.wait(list(self.tasks), num_returns=1, timeout=1.0)
            for task in ended:
                self.settle(task, self.tasks.pop(task))
            if self.outcomes.done:
                until = min(until, time.monotonic() + LAST)

    def settle(self, task: Any, index: int) -> None:
        """A worker that returned, raised or died."""
        import ray

        try:
            ray.get(task)
            self.outcomes.returned(index)
        except ray.exceptions.RayTaskError as error:
            self.outcomes.raised(index, _named(error.cause or error))
        except ray.exceptions.RayError as error:
            if self.outcomes.died(index, _first_line(error)):
                self.submit([index])

    @contextmanager
    def stopped_on_exit(self) -> Iterator[None]:
        """Workers that are left when the block is interrupted are stopped."""
        try:
            yield
        finally:
            if self.tasks:
                self.stop()

    def stop(self) -> None:
        """Ctrl-C for all workers, and some time to save; then they are killed."""
        import ray

        self.log(f"stopping {len(self.tasks)} Ray workers")
        tasks = list(self.tasks)
        try:
            for task in tasks:
                ray.cancel(task)
            ray.wait(tasks, num_returns=len(tasks), timeout=GRACE)
        finally:
            for task in tasks:
                ray.cancel(task, force=True)


def run_on_node(plan: str, index: int, folder: str, variables: dict[str, str]) -> None:
    """What a node runs: the worker, where and with the variables that the command was started."""
    with suppress(OSError):
        os.chdir(folder)
    os.environ.update(variables)
    from recombine.pipeline.worker import run_worker

    run_worker(plan, index)


def gpu_share(gpus: float, workers: int) -> float:
    """The part of a GPU for each worker, so that all run at once: none is split over two GPUs."""
    if not gpus:
        return 0.0
    return math.floor(10_000 / math.ceil(workers / gpus)) / 10_000


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def _named(error: BaseException) -> str:
    """What a worker raised, in one line."""
    return " ".join([f"{type(error).__name__}:", *str(error).split()])
