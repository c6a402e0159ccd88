"""How far should a local network see?

A local network is told of a mark in the cells around it. Two things can go wrong. Its patch can be too small for an object:
then pixels of the object do not hear of the mark, and draw something of their own, or nothing. And it can be so large that it
holds more marks than any training picture had: then it is asked what it has never seen, just as a network that sees all of the
picture. So there should be a best reach, as large as objects and no larger, and the world alone should tell which.

Exp 3L of `length` (all objects told, as a list) with one number changed: how many cells a patch reaches in every direction.
What the world says of each reach is measured on its own pictures, without a network: how many objects fit into the patch
around their mark, and how many patches hold more marks than training showed.

Run: `recombine run reach --scale laptop` (four reaches on small plain scenes), `--scale full` (3 seeds, on a GPU).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import fmean

import torch

from recombine.measure.counting import k_mean
from recombine.measure.fitting import fits, overfull
from recombine.measure.intervals import student
from recombine.rng import seeded
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import Found
from recombine.studies.scenes import reach_figures
from recombine.studies.scenes.judge import Judge
from recombine.studies.scenes.outcomes import reached, trusted
from recombine.studies.scenes.recipe import SceneRecipe
from recombine.studies.scenes.runs import compute
from recombine.studies.scenes.settings import SceneSettings
from recombine.studies.scenes.settings import settings as scenes

BASE = "exp3L"
LEAD = 2
"""By how many objects the best reach has to exceed the smallest and the largest."""
FITS = 0.95
"""The share of objects that fit into a patch that is large enough."""
SCENES = 96
"""Real scenes on which it is measured what fits."""


@dataclass(frozen=True)
class Reaches:
    """`scenes`: where Exp 3L comes from; `reaches`: how many cells a patch extends in every direction, smallest first."""

    scenes: SceneSettings = field(default_factory=SceneSettings)
    reaches: tuple[int, ...] = (1, 2, 3, 4, 8, 15)

    def __post_init__(self) -> None:
        if len(self.reaches) < 3 or list(self.reaches) != sorted(set(self.reaches)):
            raise ValueError(f"reaches={list(self.reaches)}: three or more, each once, smallest first")
        self.variants()

    def variants(self) -> dict[str, SceneRecipe]:
        recipe = replace(self.scenes, experiments=(BASE,)).variants()[BASE]
        return {name(r): replace(recipe, net=replace(recipe.net, reach=r)) for r in self.reaches}


def name(reach: int) -> str:
    return f"reach {reach}"


def settings(scale: Scale) -> Reaches:
    """A third of the laptop's updates are enough: local networks learn fast."""
    chosen = scenes(scale)
    if scale == "laptop":
        chosen = replace(chosen, recipe=replace(chosen.recipe, train=replace(chosen.recipe.train, steps=1000)))
    return Reaches(chosen, {"smoke": (0, 2, 4), "laptop": (0, 1, 2, 7), "full": (1, 2, 3, 4, 8, 15)}[scale])


def run(settings: Reaches, lab: Lab) -> Iterator[Row]:
    yield from compute(settings.variants(), lab)
    if not lab.ahead:
        yield from world_says(settings, lab)


def world_says(settings: Reaches, lab: Lab) -> Iterator[Row]:
    """What the world alone says of each reach: on scenes as in training, and on the marks that models are asked for."""
    recipe, cells = settings.scenes.recipe, settings.scenes.local.cells
    counts = torch.full((SCENES,), max(recipe.world.counts), device=lab.device)
    scene, judge = recipe.world.place(counts, seeded("fit", device=lab.device)), Judge(recipe, lab)
    for r, found in zip(settings.reaches, fits(recipe.world, scene, cells, settings.reaches), strict=True):
        yield {"kind": "fit", "variant": name(r), "reach": r, **{k: round(v, 4) for k, v in found._asdict().items()}}
        for k, asked in judge.scenes.items():
            over = overfull(judge.marks(asked), cells, r, max(recipe.world.counts))
            yield {"kind": "overfull", "variant": name(r), "reach": r, "marks": k, "share": round(over, 4)}


def judge_reach(rows: Rows) -> Judgement:
    """Seed by seed, the reach in between that is best on average against the better one of the two ends."""
    each, measured = by_reach(trusted(rows))
    smallest, *between, largest = each
    best = max(between, key=lambda r: each[r].mean)
    seeds = zip(each[best].values, each[smallest].values, each[largest].values, strict=True)
    leads = [top - max(ends) for top, *ends in seeds]
    inside = rows.where(kind="fit").one(reach=best)["inside"]
    large_enough = inside >= FITS
    measured |= {"best reach": best, "objects that fit at the best": inside}
    holds = min(leads) >= LEAD and large_enough
    partly = "partly" if fmean(leads) >= LEAD or (fmean(leads) >= 1 and large_enough) else False
    return Judgement(holds or partly, measured, student(leads))


def by_reach(rows: Rows) -> tuple[dict[int, Found], dict[str, float | int | str]]:
    """K_max of every reach over seeds. LookupError where some have fewer seeds than others."""
    each = {r: reached(rows, name(r)) for r in reach_figures.reaches(rows)}
    if len(each) < 3 or len({len(found.values) for found in each.values()}) > 1:
        raise LookupError("three reaches or more are needed, all with the same seeds")
    measured: dict[str, float | int | str] = {}
    for r, found in each.items():
        measured[name(r)] = found.mean
        measured[f"{name(r)}, by means"] = reached(rows, name(r), by=k_mean).mean
        measured[f"{name(r)}, objects that fit"] = rows.where(kind="fit").one(reach=r)["inside"]
    return each, measured


STUDY = Study(
    name="reach",
    question="How far should a local network see?",
    paper="a question of our own, after B",
    about=about(__doc__),
    cost={
        "smoke": "12 s, one core",
        "laptop": "10 min (estimate), two cores",
        "full": "25 min (estimate), one H200, 3 seeds",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="B13",
            paper="ours",
            statement="A local network's patch must hold an object and no more marks than training told: as it grows, K_max "
            "rises and falls again.",
            expected="in every seed, K_max at the reach in between that is best on average exceeds those of the smallest and "
            "of the largest reach by 2 or more, and at that reach 95 % of objects fit into the patch",
            judge=judge_reach,
            trained=True,
        ),
    ),
    draw=reach_figures.draw,
)
