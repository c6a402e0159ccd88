"""When does a score have to be local, and when is composing scores right?

Exact answers on Gaussian mixtures. Small pictures whose pixel sets M_j each belong to one
condition; every law is a mixture, so density, score and denoiser are known at every noise level,
and the solvers sample from them. Conditional projective compositions (CPC) have local conditional
scores (LCS), and only they do (L1, L2). A law near a CPC comes nearer with noise, by exactly the
score error spent (L3). Mean directions are orthogonal under a CPC, which is a hint, not a proof,
and depends on coordinates (L4). Composing scores needs the right background (L5); in feature space
it is safe for rotations alone (L6).

Run: `recombine run local-scores --scale laptop` (40 s a seed on one core, no GPU)."""

from pathlib import Path
from typing import get_args

from recombine.analysis.table import Table
from recombine.pipeline.job import Job
from recombine.plots import local_scores, local_scores_composed
from recombine.plots.style import Figure
from recombine.runs.exact_laws import LocalScores
from recombine.runs.local_scores import LocalScoresRun, PartName
from recombine.studies.local_scores_claims import CLAIMS
from recombine.studies.study import Scale, Study, described


def settings(scale: Scale) -> LocalScores:
    if scale == "smoke":
        return LocalScores(
            pictures=8,
            sobol_points=16,
            levels=13,
            samples=200,
            steps=10,
            fit_steps=60,
            lamp_samples=20,
            grid=5,
        )
    if scale == "full":
        return LocalScores(
            pictures=256,
            sobol_points=2048,
            levels=33,
            samples=10_000,
            steps=60,
            fit_steps=4000,
            lamp_samples=1000,
            grid=11,
        )
    return LocalScores()


def jobs(settings: LocalScores, seeds: int) -> list[Job]:
    """Every part, once a seed."""
    pairs = [(part, seed) for seed in range(seeds) for part in get_args(PartName)]
    return [Job.of(LocalScoresRun.of(part, settings, seed), seed=seed) for part, seed in pairs]


def figures(rows: Table, folder: Path) -> list[Figure]:
    return local_scores.figures(rows, folder) + local_scores_composed.figures(rows, folder)


STUDY = Study(
    name="local-scores",
    **described(__doc__),
    paper="B, sections 2 and 5",
    cost={
        "smoke": "10 s, one core",
        "laptop": "40 s a seed, one core",
        "full": "5 min (estimate), one core",
    },
    settings=settings,
    jobs=jobs,
    claims=CLAIMS,
    figures=figures,
)
