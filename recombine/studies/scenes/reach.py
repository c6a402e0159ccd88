"""How far should a local network see?

A local network is told of a location in the cells around it. Two things can go wrong. Its patch can be too small for an object:
then pixels of the object do not hear of the location, and draw something of their own, or nothing. And it can be so large that it
holds more locations than any training picture told of: then it is asked what it has never seen, just as a network that sees all of
the picture. So there should be a best reach, as large as objects and no larger, and the world alone should tell which.

Exps 3L and 2L of `length` with one number changed: how many cells a patch reaches in every direction. 3L is told of all objects
in training, up to three, 2L of one only, so its patches are too full much sooner. What the world says of each reach is measured
on its own pictures, without a network: how many objects fit into the patch around their location, and how many patches hold more
locations than training told of.

Run: `recombine run reach --scale laptop` (Exp 3L, four reaches, small plain scenes), `--scale full` (3 seeds, on a GPU).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Literal, get_args

import torch

from recombine.evaluate.counting import k_mean
from recombine.evaluate.patch_fit import fits, overfull
from recombine.evaluate.intervals import student
from recombine.evaluate.ranks import spearman
from recombine.rng import seeded
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import Found, same_seeds
from recombine.studies.scenes import reach_figures
from recombine.studies.scenes.judge import Judge
from recombine.studies.scenes.outcomes import reached, trusted
from recombine.studies.scenes.reach_outcomes import bases, fullness, missed, reaches
from recombine.studies.scenes.recipe import SceneRecipe
from recombine.studies.scenes.runs import compute
from recombine.studies.scenes.settings import SceneSettings
from recombine.studies.scenes.settings import settings as scenes

Base = Literal["exp3L", "exp2L"]
LEAD = 2
"""By how many objects the best reach has to exceed the smallest and the largest."""
FITS = 0.95
"""The share of objects that fit into a patch that is large enough."""
TOGETHER, POINTS = 0.8, 8
"""The rank correlation that is called a law, over so many networks at least."""
SCENES = 96
"""Real scenes on which it is measured what fits."""


@dataclass(frozen=True)
class Reaches:
    """`scenes`: where the experiments come from; `reaches`: how many cells a patch extends in every direction, smallest first;
    `bases`: the experiments whose reach is changed."""

    scenes: SceneSettings = field(default_factory=SceneSettings)
    reaches: tuple[int, ...] = (1, 2, 3, 4, 8)
    bases: tuple[Base, ...] = ("exp3L", "exp2L")

    def __post_init__(self) -> None:
        if len(self.reaches) < 3 or list(self.reaches) != sorted(set(self.reaches)):
            raise ValueError(f"reaches={list(self.reaches)}: three or more, each once, smallest first")
        if not self.bases or len(set(self.bases)) < len(self.bases):
            raise ValueError(f"bases: one or more of {', '.join(get_args(Base))}, each once, in a list")
        self.variants()

    def variants(self) -> dict[str, SceneRecipe]:
        recipes = replace(self.scenes, experiments=self.bases).variants()
        return {
            name(base, r): replace(recipe, net=replace(recipe.net, reach=r))
            for base, recipe in recipes.items()
            for r in self.reaches
        }


def name(base: str, reach: int) -> str:
    return f"{base}, reach {reach}"


def told(recipe: SceneRecipe) -> int:
    """Of how many objects training told at most."""
    return 1 if recipe.layout_encoder.labelled == "one" else max(recipe.world.counts)


def settings(scale: Scale) -> Reaches:
    """A third of the laptop's updates are enough: local networks learn fast."""
    chosen = scenes(scale)
    if scale == "laptop":
        chosen = replace(chosen, recipe=replace(chosen.recipe, train=replace(chosen.recipe.train, steps=1000)))
    if scale == "full":
        return Reaches(chosen)
    return Reaches(chosen, (0, 2, 4)) if scale == "smoke" else Reaches(chosen, (0, 1, 2, 7), ("exp3L",))


def run(settings: Reaches, lab: Lab) -> Iterator[Row]:
    yield from compute(settings.variants(), lab)
    if not lab.ahead:
        yield from world_says(settings, lab)


def world_says(settings: Reaches, lab: Lab) -> Iterator[Row]:
    """What the world alone says of each reach: on scenes as in training, and on the locations that models are asked for."""
    recipe, cells = settings.scenes.recipe, settings.scenes.local.cells
    counts = torch.full((SCENES,), max(recipe.world.counts), device=lab.device)
    scene, judge = recipe.world.place(counts, seeded("fit", device=lab.device)), Judge(recipe, lab)
    locations = {k: judge.locations(asked) for k, asked in judge.scenes.items()}
    held = dict(zip(settings.reaches, fits(recipe.world, scene, cells, settings.reaches), strict=True))
    for variant, changed in settings.variants().items():
        reach, most = changed.net.reach, told(changed)
        same = {"variant": variant, "base": variant.partition(",")[0], "reach": reach}
        yield {"kind": "fit", **same, "told": most, **{k: round(v, 4) for k, v in held[reach]._asdict().items()}}
        for k, asked in locations.items():
            yield {"kind": "overfull", **same, "locations": k, "share": round(overfull(asked, cells, reach, most), 4)}


def judge_reach(rows: Rows) -> Judgement:
    """Exp 3L: seed by seed, the reach in between that is best on average against the better one of the two ends."""
    each, measured = by_reach(trusted(rows), "exp3L")
    smallest, *between, largest = each
    best = max(between, key=lambda r: each[r].mean)
    seeds = zip(each[best].values, each[smallest].values, each[largest].values, strict=True)
    leads = [top - max(ends) for top, *ends in seeds]
    inside = rows.where(kind="fit", base="exp3L").one(reach=best)["inside"]
    large_enough = inside >= FITS
    measured |= {"best reach": best, "objects that fit at the best": inside}
    holds = min(leads) >= LEAD and large_enough
    partly = "partly" if fmean(leads) >= LEAD or (fmean(leads) >= 1 and large_enough) else False
    return Judgement(holds or partly, measured, student(leads))


def by_reach(rows: Rows, base: Base) -> tuple[dict[int, Found], dict[str, float | int | str]]:
    """K_max of every reach over seeds. LookupError where some have fewer seeds than others."""
    each = {r: reached(rows, v) for r, v in reaches(rows, base).items()}
    if len(each) < 3:
        raise LookupError(f"{base}: three reaches or more are needed")
    same_seeds(*each.values())
    measured: dict[str, float | int | str] = {}
    for r, found in each.items():
        measured[f"reach {r}"] = found.mean
        measured[f"reach {r}, by means"] = reached(rows, name(base, r), by=k_mean).mean
        measured[f"reach {r}, objects that fit"] = rows.where(kind="fit", base=base).one(reach=r)["inside"]
    return each, measured


def judge_full(rows: Rows) -> Judgement:
    """Over the reaches of both experiments: the share of many locations that a network misses against the share of its patches that
    hold more of them than training told of; seed by seed."""
    lost, many = missed(trusted(rows))
    if len(bases(rows)) < 2 or len(lost) < POINTS:
        raise LookupError(f"{POINTS} networks or more are needed, of both experiments")
    same_seeds(*lost.values())
    full = {v: share for v, share in fullness(rows).items() if v in lost}
    seeds = [list(seed) for seed in zip(*(lost[v].values for v in full), strict=True)]
    if any(len(set(values)) == 1 for values in (full.values(), *seeds)):
        raise LookupError("nothing to correlate: all networks are the same")
    by_seed = [spearman(list(full.values()), seed) for seed in seeds]
    measured = {"rank correlation": fmean(by_seed), "networks": len(lost), "locations": many}
    for variant, found in lost.items():
        measured |= {f"{variant}: missed": found.mean, f"{variant}: patches too full": full[variant]}
    holds = min(by_seed) >= TOGETHER or ("partly" if fmean(by_seed) >= TOGETHER / 2 else False)
    return Judgement(holds, measured, student(by_seed))


STUDY = Study(
    name="reach",
    question="How far should a local network see?",
    paper="a question of our own, after B",
    about=about(__doc__),
    cost={
        "smoke": "12 s, one core",
        "laptop": "10 min (estimate), two cores",
        "full": "30 min (estimate) after length, three at a time on one H200, 3 seeds",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="B13",
            paper="beyond the papers",
            statement="A local network's patch must hold an object and no more locations than training told: as it grows, K_max "
            "rises and falls again.",
            expected="in every seed, K_max at the reach in between that is best on average exceeds those of the smallest and "
            "of the largest reach by 2 or more, and at that reach 95 % of objects fit into the patch",
            judge=judge_reach,
            trained=True,
        ),
        Claim(
            id="B15",
            paper="beyond the papers",
            statement="Local networks miss locations where their patches hold more of them than training told of: how full patches "
            "are, told by the world alone, foretells the misses of every reach, told one object or all.",
            expected="rank correlation of the share of nine locations missed and the share of patches too full >= 0.8 in every "
            "seed, over 8 networks or more, of Exps 2L and 3L",
            judge=judge_full,
            trained=True,
        ),
    ),
    draw=reach_figures.draw,
)
