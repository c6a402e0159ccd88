"""Made-up rows of scene models, and a scene study carried out at smoke scale."""

from pathlib import Path
from typing import Any

from tiny import QUIET

from recombine.analysis.claims import Claim, assess
from recombine.analysis.table import Table
from recombine.pipeline.plan import StudyPlan
from recombine.pipeline.worker import run_tasks
from recombine.studies.study import Study
from recombine.studies.summary import summarise


def carried_out(study: Study, settings: Any, out: Path, seeds: int = 1) -> Path:
    """The folder of a study that was run."""
    plan = StudyPlan(study, settings, tuple(study.jobs(settings, seeds)))
    for job in plan.jobs:
        job.task.check()
    run_tasks(plan.tasks, out, QUIET, {})
    return summarise(plan, out, "smoke", range(seeds), {})


def verdict(claim: Claim, rows: Table) -> str:
    """At full scale, in a study whose runs are long: three seeds are enough."""
    return assess(claim, rows, "full", 6.0).verdict


def note(claim: Claim, rows: Table) -> str:
    return assess(claim, rows, "full", 6.0).note


def detector_rows(exact: dict[int, float], most: int = 12) -> list[dict]:
    """A detector that is perfect but for some numbers of objects."""
    names = ("exact_count", "exact_match", "full_recall", "matched", "recall")
    share = {k: dict.fromkeys(names, exact.get(k, 1.0)) for k in range(most + 1)}
    rows = [{"kind": "detector", "objects": k, **share[k]} for k in share]
    return rows + [{"kind": "real", "locations": k, "n": 128, **share[k]} for k in share if k]
