"""Tasks measure what they measured: trained anew at the smallest scale, a task of each kind gives the
rows that `earlier_rows.npz` holds. A change of the numbers is a change of what a run's name stands
for: raise the task's VERSION, and `python tests/test_earlier_rows.py` stores the new numbers."""

import platform
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from recombine.pipeline.job import Job, folder_of
from recombine.pipeline.worker import run_tasks
from recombine.runtime import Runtime
from recombine.store import Row
from recombine.studies import NAMES, find

STORED = Path(__file__).with_name("earlier_rows.npz")
MOST = 2
"""Tasks of one kind in one study; other ones in the next study."""
LONG = ("patches",)
"""Parts of the names of variants that take longer than a few seconds."""
SAME, ELSEWHERE = 0.99, 0.95
"""The share of numbers that must be the same where networks are trained, on the kind of processor that
stored them and on others: what is counted may change where processors round differently. Seen: 0.97 on
ARM, 0.98 on another x86."""
EXACT = ("interactions", "swing-by", "local-scores")
"""Studies of exact theory, all of whose numbers must be the same."""


def chosen() -> dict[str, Job]:
    """By study, kind and title: tasks that differ, spread over the variants of each study."""
    jobs: dict[str, Job] = {}
    known = set()
    for number, study in enumerate(map(find, NAMES)):
        kinds: dict[str, list[Job]] = {}
        for job in study.jobs(study.settings("smoke"), 1):
            if job.task not in known and not any(part in job.title for part in LONG):
                known.add(job.task)
                kinds.setdefault(job.task.noun, []).append(job)
        for noun, some in kinds.items():
            apart = -(-len(some) // MOST)
            for job in some[number % apart :: apart]:
                jobs[f"{study.name}: {noun}: {job.title}"] = job
    return jobs


def numbers(rows: list[Row]) -> np.ndarray:
    """All that rows hold, in order; words as numbers that tell them apart."""
    return np.array([value for row in rows for key in sorted(row) for value in flat(row[key])])


def flat(value: object) -> Iterator[float]:
    match value:
        case list() | tuple():
            for one in value:
                yield from flat(one)
        case bool() | int() | float():
            yield float(value)
        case _:
            yield float(zlib.crc32(str(value).encode()))


def measured(job: Job, out: Path) -> np.ndarray:
    run_tasks([job.task], out, Runtime(quiet=True), {})
    return numbers(list(folder_of(job.task, out).rows()))


def processor() -> str:
    """Its kind: machine, model and instructions, where Linux says so."""
    with suppress(OSError):
        first = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
        said = {k.strip(): v.strip() for k, _, v in (x.partition(":") for x in first.splitlines())}
        return " ".join(
            [platform.machine(), *(said.get(k, "") for k in ("cpu family", "model", "flags"))]
        )
    return platform.machine()


JOBS = chosen()


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("rows")


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_a_task_measures_what_it_measured(name, out):
    held = np.load(STORED)
    assert name in held, __doc__
    now, then = measured(JOBS[name], out), held[name]
    assert now.shape == then.shape, __doc__
    same = np.isclose(now, then, rtol=1e-3, atol=1e-5, equal_nan=True)
    here = str(held["processor"]) == processor() if "processor" in held else False
    least = 1.0 if name.startswith(EXACT) else SAME if here else ELSEWHERE
    assert same.mean() >= least, f"{name}: {same.mean():.3f} of the numbers are the same; {__doc__}"


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        kept = {name: measured(job, Path(folder)) for name, job in JOBS.items()}
    np.savez_compressed(STORED, processor=processor(), **kept)
