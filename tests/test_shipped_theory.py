"""Exact results in `results/` are what today's code computes: every row of theory, computed again
from the settings of its study, is the row that is shipped."""

import math
from functools import lru_cache
from pathlib import Path

import pytest

from recombine.analysis.table import Table, read_table
from recombine.files import read_json
from recombine.pipeline.job import Job, Work, ancestors
from recombine.runtime import Runtime
from recombine.studies import find

RESULTS = Path(__file__).parents[1] / "results"
THEORY = ("swing-by", "interactions", "missing-labels", "local-scores", "colours")
QUICK, LONG = 30.0, 1300.0
"""Costs: what is less is computed in `make test`, what is more nowhere, the rest in CI alone."""
SOON = ("order of concepts", "one layer, exactly")
"""Of swing-by, whose costs hold for more seeds than these need."""


def jobs(name: str) -> list[Job]:
    """Of the first seed, where there are several; not what needs a trained model."""
    study, shipped = find(name), read_json(RESULTS / name / "study.json")
    made = study.jobs(study.settings(shipped["scale"]), len(shipped["seeds"]))
    exact = [job for job in made if not any(t.weights for t in ancestors([job.task]))]
    return [job for job in exact if not dict(job.labels).get("seed") and job.task.cost <= LONG]


def said(job: Job) -> str:
    return ", ".join([job.title, *(str(v) for k, v in job.labels if k not in ("variant", "seed"))])


def is_quick(name: str, job: Job) -> bool:
    cheap = job.task.cost < QUICK and name != "colours" and "pace" not in job.title
    return cheap or job.title in SOON


@lru_cache
def rows_of(name: str) -> Table:
    return read_table(RESULTS / name / "rows.parquet")


def computed_again(name: str, title: str, folder: Path) -> None:
    (job,) = (job for job in jobs(name) if said(job) == title)
    made = [dict(row) for row in job.task.run(Work(job.task, folder, Runtime(quiet=True)))]
    kinds = {row["kind"] for row in made}
    held = [
        row
        for row in rows_of(name)
        if row["kind"] in kinds and all(row.get(k, v) == v for k, v in job.labels)
    ]
    assert len(made) == len(held) > 0
    for new, old in zip(made, held, strict=True):
        for key, value in new.items():
            then = old.get(key)
            if isinstance(value, float) and then is not None:
                same = math.isclose(value, then, rel_tol=1e-4, abs_tol=1e-7)
                assert same or math.isnan(value), (key, value, then)
            elif not isinstance(value, float):
                assert value == then, (key, value, then)


ALL = [(name, said(job), is_quick(name, job)) for name in THEORY for job in jobs(name)]


@pytest.mark.parametrize(("name", "title"), [(n, t) for n, t, quick in ALL if quick])
def test_exact_rows_are_computed_again(name, title, tmp_path):
    computed_again(name, title, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "title"), [(n, t) for n, t, quick in ALL if not quick])
def test_exact_rows_that_take_long_are_computed_again(name, title, tmp_path):
    computed_again(name, title, tmp_path)
