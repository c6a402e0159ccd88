"""Is it locality that lets a model draw more objects than it has seen?

The models of `length`, the very same runs, are asked two things at every checkpoint and noise level. Pixels: how much of what
other pixels do to a pixel's denoised value comes from nearby? Conditions: when a location is taken away, how much of the change
happens near it? Both are shares, 1 for a denoiser that is exactly local, and are averaged over the higher noise levels, where
it is decided what is drawn where. Paper B: Exp 1 is local in both, Exp 2 not in conditions, Exp 3 in neither; and over models
and checkpoints, how local a model is in its conditions goes with how far it goes beyond the numbers it was trained on.

Run: `recombine run length locality --scale laptop`; the runs of `length` are used again.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from recombine.plots.style import Figure
from recombine.evaluate.intervals import student
from recombine.studies.base import Claim, Judgement, Row, Rows, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import clear, gain
from recombine.studies.scenes import locality_figures
from recombine.studies.scenes.outcomes import Point, able, correlation, local, points, trusted, usual
from recombine.studies.scenes.runs import compute
from recombine.studies.scenes.settings import SceneSettings, settings

ORDER = {"condition": (("exp1", "exp2"), ("exp1", "exp3")), "pixel": (("exp1", "exp3"), ("exp2", "exp3"))}
"""Which experiment is more local than which, in each measure."""
MARGIN = 0.05
"""By how much, at least."""
POINTS = 12


def run(settings: SceneSettings, lab: Lab) -> Iterator[Row]:
    yield from compute(settings.variants(), lab)


def judge_order(rows: Rows) -> Judgement:
    """Every difference of ORDER has to be clear: by the margin on average, and above 0 by its interval over seeds."""
    kinds = {column: sorted({v for pair in pairs for v in pair}) for column, pairs in ORDER.items()}
    found = {(c, v): local(rows, v, c) for c, variants in kinds.items() for v in variants}
    measured = {f"{v}, {c}": found[c, v].mean for c, v in found}
    held, smallest = [], None
    for column, pairs in ORDER.items():
        for more, less in pairs:
            lead = gain(found[column, more], found[column, less])
            measured[f"{column}, {more} - {less}"] = lead.mean
            held.append(clear(lead, MARGIN))
            smallest = lead if smallest is None or lead.mean < smallest.mean else smallest
    return Judgement(all(held) or ("partly" if any(held) else False), measured, smallest.interval)


def judge_scatter(rows: Rows) -> Judgement:
    """Over the experiments trained on one to three objects, as the paper's: then K_max alone says how far a model goes. From
    the look on at which a run draws one object where it is told; all other ways of choosing points stand beside it."""
    found = able(usual(trusted(rows)))
    if len(found) < POINTS:
        raise LookupError(f"{len(found)} points; {POINTS} are needed")
    rho = correlation(found)
    measured: dict[str, float | int | str] = {"rank correlation": rho, "points": len(found)}
    ends = {(p.variant, p.seed): p for p in found}
    learned = [p for p in found if "L" not in p.variant]
    other = {"at the end alone": list(ends.values()), "locality learned, not built in": learned}
    for name, some in (other | {"all looks": usual(rows), "all looks and training sets": points(rows)}).items():
        try:
            measured[f"rank correlation, {name}"] = correlation(some)
        except LookupError:
            measured[f"rank correlation, {name}"] = "not defined"
    measured["runs in which both grow together"] = f"{together(found)} of {len(ends)}"
    return Judgement(rho >= 0.7 or ("partly" if rho >= 0.4 else False), measured, student(by_seed(found)))


def by_seed(found: list[Point]) -> list[float]:
    """The correlation within each seed, where there is one."""
    values = []
    for seed in sorted({p.seed for p in found}):
        try:
            values.append(correlation([p for p in found if p.seed == seed]))
        except LookupError:
            continue
    return values


def together(found: list[Point]) -> int:
    """In how many runs K_max grows over the checkpoints and conditional locality does too."""
    runs: dict[tuple[str, int], list[Point]] = {}
    for p in found:
        runs.setdefault((p.variant, p.seed), []).append(p)
    rises = lambda values: values[-1] > values[0] and all(b >= a for a, b in pairwise(values))  # noqa: E731
    return sum(rises([p.gain for p in r]) and r[-1].condition > r[0].condition for r in runs.values())


def draw(rows: Rows, folder: Path) -> list[Figure]:
    return locality_figures.draw(rows, folder)


STUDY = Study(
    name="locality",
    question="Is it locality that lets a model draw more objects than it has seen?",
    paper="B, Fig 2",
    about=about(__doc__),
    cost={
        "smoke": "25 s, one core; nothing after length",
        "laptop": "10 min on one core; nothing after length",
        "full": "45 min, three at a time on one H200, 3 seeds; nothing after length",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="S7",
            paper="B, Fig 2",
            statement="Exp 1 is local in pixels and conditions, Exp 2 not in conditions, Exp 3 in neither.",
            expected="conditions: Exp 1 above 2 and 3; pixels: Exps 1 and 2 above 3; each by 0.05 and clearly over seeds",
            judge=judge_order,
            trained=True,
        ),
        Claim(
            id="S8",
            paper="B, Fig 2",
            statement="Over models and checkpoints, conditional locality goes with length generalization.",
            expected="rank correlation of locality and K_max - 3 >= 0.7, over the experiments trained on 1-3 objects, from the "
            "look on at which K_max >= 1; 12 points or more",
            judge=judge_scatter,
            trained=True,
        ),
    ),
    draw=draw,
)
