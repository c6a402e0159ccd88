"""Workers as a Slurm job array, submitted with submitit; RECOMBINE_SLURM_* say what each requests.

All nodes must share the results folder and the Python environment. Workers log to `slurm/` beside
the plan. One that is preempted or reaches its time limit is queued again and goes on."""

import os
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recombine.config import UsageError
from recombine.pipeline.engines import Outcomes, need, settings_from

PREFIX = "RECOMBINE_SLURM_"
GONE = "GONE"
"""The state of a job that Slurm has forgotten."""
ENDED = {
    GONE,
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "TIMEOUT",
}
REQUEUES = 1000
"""How often a worker may reach its time limit."""
FIRST_POLL, LAST_POLL = 0.5, 15.0
"""Seconds between two questions to Slurm: few while something happens, more while nothing does."""
LATE = 3.0
"""Seconds that the result of a worker that ended may take to appear on a shared file system."""
GRACE = 25.0
"""Seconds that workers have to save their state after Ctrl-C."""


@dataclass(frozen=True)
class SlurmSettings:
    """What each worker requests: `partition` is RECOMBINE_SLURM_PARTITION, and so on. Empty or 0:
    the cluster's default. `setup`: a shell line to run before it, e.g. "module load cuda"."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    constraint: str = ""
    minutes: int = 240
    cpus: int = 1
    gpus: int = 0
    memory_gb: float = 0.0
    setup: str = ""

    def parameters(self) -> dict[str, Any]:
        """In submitit's words."""
        wanted = {
            "slurm_partition": self.partition,
            "slurm_account": self.account,
            "slurm_qos": self.qos,
            "slurm_constraint": self.constraint,
            "slurm_setup": [self.setup] if self.setup else None,
            "timeout_min": self.minutes,
            "cpus_per_task": self.cpus,
            "gpus_per_node": self.gpus,
            "mem_gb": self.memory_gb,
        }
        return {"name": "recombine"} | {name: value for name, value in wanted.items() if value}


@dataclass(frozen=True)
class SlurmWorker:
    """The call that submitit stores and a node runs."""

    plan: str
    index: int

    def __call__(self) -> None:
        from recombine.pipeline.worker import run_worker

        run_worker(self.plan, self.index)

    def checkpoint(self) -> Any:
        """What runs after a time limit or preemption: the same, which resumes what is on disk."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


class SlurmEngine:
    """Runs workers as a Slurm job array."""

    def run(self, plan: Path, workers: int, log: Callable[[str], None]) -> None:
        settings = settings_from(SlurmSettings, PREFIX)
        check_cluster()
        array = WorkerArray(plan.resolve(), settings, log)
        with array.stopped_on_exit():
            array.submit(range(workers))
            array.wait()
        array.outcomes.check()


def check_cluster() -> None:
    """UsageError where submitit, Slurm's commands or its controller are missing."""
    need("submitit", "slurm")
    for command in ("sbatch", "srun", "squeue", "scancel", "scontrol"):
        if not shutil.which(command):
            raise UsageError(f"--engine slurm: {command} is not on the PATH; is Slurm installed?")
    try:
        answer = _output("scontrol", "ping", seconds=10.0)
    except subprocess.CalledProcessError as error:
        answer = error.stdout.strip() or _reason(error.stderr)
    except subprocess.TimeoutExpired:
        answer = "no answer within 10 s"
    if " is UP" not in answer:
        says = answer.strip().splitlines()[0]
        raise UsageError(f"--engine slurm: the Slurm controller is not reachable ({says})")


def _output(*command: str, seconds: float = 60.0) -> str:
    """What a command of Slurm prints."""
    given = {"capture_output": True, "text": True, "timeout": seconds}
    return subprocess.run(command, check=True, **given).stdout


class WorkerArray:
    """The workers of one plan: the Slurm job of each, and what became of it."""

    def __init__(self, plan: Path, settings: SlurmSettings, log: Callable[[str], None]):
        from submitit import AutoExecutor

        self.plan, self.log, self.outcomes = plan, log, Outcomes(plan, log)
        self.folder, self.parameters = plan.parent / "slurm", settings.parameters()
        options = {"cluster": "slurm", "slurm_max_num_timeout": REQUEUES}
        self.executor = AutoExecutor(self.folder, **options)
        self.jobs: dict[int, Any] = {}
        self.ended: dict[int, float] = {}
        self.said = ""

    def submit(self, indices: Iterable[int]) -> None:
        """One array of workers with these indices."""
        workers = [SlurmWorker(str(self.plan), index) for index in indices]
        self.executor.update_parameters(**self.parameters, slurm_array_parallelism=len(workers))
        try:
            with _outside_of_a_job(), self.executor.batch():
                jobs = [self.executor.submit(worker) for worker in workers]
        except Exception as error:
            raise UsageError(f"--engine slurm: {_reason(str(error))}") from None
        self.jobs |= {worker.index: job for worker, job in zip(workers, jobs, strict=True)}
        name = jobs[0].job_id.split("_")[0]
        number = "1 worker" if len(jobs) == 1 else f"{len(jobs)} workers"
        self.log(f"Slurm job {name}: {number}, logs in {self.folder}")

    def wait(self) -> None:
        """Until all workers have ended; those that died are replaced, those in excess cancelled."""
        pause = FIRST_POLL
        while self.jobs:
            time.sleep(pause)
            before = self.said, len(self.jobs), len(self.ended)
            states = self.states()
            dead = self.collect(states)
            if dead:
                self.replace(dead)
            if self.outcomes.done:
                self.cancel_pending(states)
            idle = not self.ended and before == (self.said, len(self.jobs), len(self.ended))
            pause = min(pause * 1.2, LAST_POLL) if idle else FIRST_POLL

    def replace(self, dead: list[int]) -> None:
        """New workers for those that died. Where Slurm takes none, the others go on alone."""
        try:
            self.submit(dead)
        except UsageError as error:
            for index in dead:
                self.outcomes.died(index, str(error), replace=False)

    def cancel_pending(self, states: dict[str, str]) -> None:
        """Nothing is left to do, so workers that wait for a node are not needed."""
        for index, job in list(self.jobs.items()):
            if states.get(job.job_id) == "PENDING":
                _try("scancel", job.job_id)
                self.forget(index)

    def states(self) -> dict[str, str]:
        """The state of every worker's Slurm job by its id; without those that Slurm forgot."""
        arrays = ",".join(sorted({job.job_id.split("_")[0] for job in self.jobs.values()}))
        show = ("--noheader", "--array", "--states=all", "--format=%i %T")
        try:
            answer = _output("squeue", *show, f"--jobs={arrays}")
            return dict(line.split() for line in answer.splitlines())
        except subprocess.CalledProcessError as error:
            if "Invalid job id" in error.stderr:
                return {}
            self.report(f"Slurm does not answer: {_reason(error.stderr)}")
        except subprocess.TimeoutExpired:
            self.report("Slurm does not answer")
        return {job.job_id: "UNKNOWN" for job in self.jobs.values()}

    def collect(self, states: dict[str, str]) -> list[int]:
        """Take the workers that ended off the list; the indices of those to replace."""
        now = {index: states.get(job.job_id, GONE) for index, job in self.jobs.items()}
        self.report(_summary(now.values()))
        dead = []
        for index, job in list(self.jobs.items()):
            if job.paths.result_pickle.exists():
                self.settle(index)
            elif self.is_lost(index, now[index]):
                self.forget(index)
                why = f"Slurm job {job.job_id} is {now[index]}, see {job.paths.stderr}"
                if self.outcomes.died(index, why, replace=now[index] != "CANCELLED"):
                    dead.append(index)
        return dead

    def is_lost(self, index: int, state: str) -> bool:
        """Whether a worker has ended for some time and left no result."""
        if state not in ENDED:
            self.ended.pop(index, None)
            return False
        return time.monotonic() - self.ended.setdefault(index, time.monotonic()) > LATE

    def settle(self, index: int) -> None:
        """A worker that left a result: it returned or raised."""
        job = self.forget(index)
        error = job.exception()
        if error is None:
            self.outcomes.returned(index)
        else:
            self.outcomes.raised(index, f"{_raised(str(error))}, see {job.paths.stderr}")

    def forget(self, index: int) -> Any:
        """Take a worker off the list; its job."""
        self.ended.pop(index, None)
        return self.jobs.pop(index)

    def report(self, text: str) -> None:
        """A line for whoever watches, where it is news."""
        if text and text != self.said:
            self.log(text)
        self.said = text

    @contextmanager
    def stopped_on_exit(self) -> Iterator[None]:
        """Workers that are left when the block is interrupted are stopped."""
        try:
            yield
        finally:
            if self.jobs:
                self.stop()

    def stop(self) -> None:
        """Ctrl-C for all workers, and some time to save; then they are cancelled."""
        jobs = [job.job_id for job in self.jobs.values()]
        self.log(f"stopping {len(jobs)} Slurm workers")
        try:
            _try("scancel", "--state=PENDING", *jobs)
            _try("scancel", "--signal=INT", *jobs)
            until = time.monotonic() + GRACE
            while self.is_running() and time.monotonic() < until:
                time.sleep(FIRST_POLL)
        finally:
            _try("scancel", *jobs)

    def is_running(self) -> bool:
        states = self.states()
        return any(states.get(job.job_id, GONE) not in ENDED for job in self.jobs.values())


def _try(*command: str) -> None:
    with suppress(subprocess.CalledProcessError, subprocess.TimeoutExpired):
        _output(*command)


def _summary(states: Iterable[str]) -> str:
    """For example "Slurm workers: 2 running, 1 pending"."""
    counts = Counter(states).most_common()
    return "Slurm workers: " + ", ".join(f"{n} {state.lower()}" for state, n in counts)


def _reason(text: str) -> str:
    """What Slurm's commands complain about, in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    complaints = [line.split("error:", 1)[1].strip() for line in lines if "error:" in line]
    return "; ".join(complaints or lines[-1:]) or "no reason given"


def _raised(report: str) -> str:
    """The exception below the traceback that submitit frames by dashes, in one line."""
    lines = report.split("-" * 22)[1].strip().splitlines()
    last_frame = max((i for i, line in enumerate(lines) if line.startswith(" ")), default=-1)
    return " ".join(" ".join(lines[last_frame + 1 :]).split())


@contextmanager
def _outside_of_a_job() -> Iterator[None]:
    """Inside of a Slurm job (salloc), its variables would change what new jobs get."""
    from submitit.helpers import clean_env

    kept = {name: os.environ[name] for name in ("SLURM_CONF",) if name in os.environ}
    with clean_env():
        os.environ.update(kept)
        yield
