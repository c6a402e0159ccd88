"""Is it locality that lets a model place more objects than it has seen?

The models of `length`, the very same runs, are measured twice at every checkpoint and noise level.
Pixels: how much of what other pixels do to a pixel's denoised value comes from nearby? Conditions:
when a location is removed, how much of the change happens near it? Both are shares, 1 for a
denoiser that is exactly local, and are averaged over the higher noise levels, where it is decided
which object is where. Paper B: Exp 1 is local in both, Exp 2 not in conditions, Exp 3 in neither;
and over models and checkpoints, conditional locality correlates with how far a model goes beyond
the numbers it was trained on.

Run: `recombine run length locality --scale laptop`; the runs of `length` are used again."""

from statistics import fmean

from recombine.analysis.claims import Claim, Finding, Measured, Part
from recombine.analysis.estimates import correlation_estimate
from recombine.analysis.scenes import (
    able,
    correlation,
    correlation_by_seed,
    difference,
    last,
    locality,
    locality_points,
    require_trusted,
    rising_together,
    usual,
)
from recombine.analysis.table import NotMeasured, Table
from recombine.pipeline.job import Job
from recombine.plots import locality as plots
from recombine.runs.scenes import scene_facts, scene_jobs
from recombine.store import Row
from recombine.studies.scene_settings import (
    DEVIATIONS,
    LOCAL_DEVIATION,
    RUN_MINUTES,
    SceneSettings,
    settings,
)
from recombine.studies.study import Study, about

ORDER = {
    "condition": (("exp1", "exp2"), ("exp1", "exp3")),
    "pixel": (("exp1", "exp3"), ("exp2", "exp3")),
}
"""Which experiment is more local than which, in each measure."""
MARGIN = 0.05
"""By how much, at least."""
POINTS = 12


def jobs(settings: SceneSettings, seeds: int) -> list[Job]:
    return scene_jobs(settings.variants(), seeds)


def variant_facts(settings: SceneSettings, seeds: int) -> list[Row]:
    return scene_facts(settings.variants())


def locality_order(rows: Table) -> Finding:
    """Every difference of ORDER, paired by seed."""
    measured: Measured = {}
    parts = []
    for column, pairs in ORDER.items():
        values = {v: locality(rows, v, column) for v in dict.fromkeys(sum(pairs, ()))}
        measured |= {f"{v}, {column}": sum(x.values()) / len(x) for v, x in values.items()}
        for more, less in pairs:
            lead = difference(values[more], values[less], low=-1, high=1)
            parts.append(Part(f"{column} locality, {more} - {less}", lead, MARGIN, 1.0))
    for more, less in ORDER["pixel"]:
        measured |= at_the_ends(rows, more, less)
    return Finding(tuple(parts), measured)


def at_the_ends(rows: Table, more: str, less: str) -> Measured:
    """By how much pixel locality differs at the lowest and at the highest noise level."""
    several = [last(rows, name, "locality").values() for name in (more, less)]
    levels = sorted({level for each in several for some in each for level in some.unique("sigma")})
    leads = {}
    for name, level in (("lowest", levels[0]), ("highest", levels[-1])):
        a, b = (fmean(some.one(sigma=level)["pixel"] for some in each) for each in several)
        leads[f"pixel, {more} - {less}, {name} noise"] = a - b
    return leads


def locality_correlates(rows: Table) -> Finding:
    """Over the experiments trained on one to three objects, as the paper's, from the checkpoint on
    at which a run places one object; other choices of points stand beside it."""
    some = able(usual(require_trusted(rows)))
    if len(some) < POINTS:
        raise NotMeasured(f"{len(some)} points; {POINTS} are needed")
    by_seed = correlation_by_seed(some)
    if not by_seed:
        raise NotMeasured("nothing to correlate within a seed")
    ends = {(p.variant, p.seed): p for p in some}
    measured: Measured = {"points": len(some)}
    chosen = {
        "all seeds together": some,
        "at the end alone": list(ends.values()),
        "locality learned, not built in": [p for p in some if "L" not in p.variant],
        "all checkpoints": usual(rows),
        "all checkpoints and training sets": locality_points(rows),
    }
    for name, each in chosen.items():
        try:
            measured[f"rank correlation, {name}"] = correlation(each)
        except NotMeasured:
            measured[f"rank correlation, {name}"] = "not defined"
    measured["runs in which both grow together"] = f"{rising_together(some)} of {len(ends)}"
    part = Part("rank correlation within a seed", correlation_estimate(by_seed), 0.7, 1.0)
    return Finding((part,), measured)


STUDY = Study(
    name="locality",
    question="Is it locality that lets a model place more objects than it has seen?",
    paper="B, Fig 2",
    about=about(__doc__),
    cost={
        "smoke": "25 s, one core; nothing after length",
        "laptop": "10 min on one core; nothing after length",
        "full": "0 min after length, whose runs it measures",
    },
    settings=settings,
    jobs=jobs,
    facts=variant_facts,
    claims=(
        Claim(
            id="S7",
            paper="B, Fig 2",
            statement="Exp 1 is local in pixels and conditions, Exp 2 not in conditions, Exp 3 in "
            "neither.",
            expected="at the end, paired by seed: conditional locality of Exp 1 exceeds that of 2 "
            "and 3, pixel locality of Exps 1 and 2 that of 3, each by >= 0.05",
            measure=locality_order,
            trained=True,
            faithful=False,
            deviations=DEVIATIONS,
        ),
        Claim(
            id="S8",
            paper="B, Fig 2",
            statement="Over models and checkpoints, conditional locality correlates with length "
            "generalization.",
            expected="rank correlation of conditional locality and K_max - 3 >= 0.7 within each "
            "seed, over the experiments trained on 1-3 objects, from the checkpoint on at which "
            "K_max >= 1; 12 points or more",
            measure=locality_correlates,
            trained=True,
            faithful=False,
            deviations=(*DEVIATIONS, LOCAL_DEVIATION),
        ),
    ),
    figures=plots.figures,
    run_minutes=RUN_MINUTES,
)
