"""How a model listens to its conditions against how well it composes: from rows to points, a correlation and a figure."""

from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from recombine.figures import CYCLE, Figure, canvas
from recombine.measure.ranks import spearman
from recombine.studies.base import Rows
from recombine.studies.levels import Curve, Found, curve, late, seeds_of

MEASURES = {"sparse": "share of the strongest condition at each place", "additive": "1 - interactions / effects"}


LEARNED = 0.8
"""The joint accuracy on seen compositions from which on a network counts as trained."""


class Point(NamedTuple):
    """One run at one checkpoint; means over how much was gone."""

    variant: str
    seed: int
    step: int
    sparse: float
    additive: float
    level2: float


def points(rows: Rows) -> list[Point]:
    """All checkpoints at which the seen compositions are known (LEARNED): a network that has learned nothing yet listens to
    nothing, and that is as additive as can be."""
    found = []
    for variant in dict.fromkeys(rows.where(kind="dependence").column("variant")):
        for seed in seeds_of(rows, variant):
            some, seen = rows.where(kind="dependence", variant=variant, seed=seed), dict(curve(rows, variant, seed, 0))
            for step, accuracy in curve(rows, variant, seed, 2):
                here = some.where(step=step)
                if here and seen[step] >= LEARNED:
                    mean = {name: fmean(here.column(name)) for name in MEASURES}
                    found.append(Point(variant, seed, step, level2=accuracy, **mean))
    return found


def at_the_end(found: list[Point]) -> list[Point]:
    last = max((p.step for p in found), default=0)
    return [p for p in found if p.step == last]


def rank_correlation(found: list[Point], name: str) -> float:
    """Spearman's, of a measure with level 2. LookupError where there is nothing to compare."""
    pairs = [(getattr(p, name), p.level2) for p in found]
    if len(pairs) < 4 or len({y for _, y in pairs}) < 2 or len({x for x, _ in pairs}) < 2:
        raise LookupError(f"too few different points to correlate {name} with level 2")
    return spearman(*zip(*pairs, strict=True))


def within(found: list[Point], name: str) -> dict[str, float]:
    """The rank correlation inside each family, over its seeds and checkpoints; those in which level 2 never varies left out."""
    values = {}
    for variant in dict.fromkeys(p.variant for p in found):
        with suppress(LookupError):
            values[variant] = rank_correlation([p for p in found if p.variant == variant], name)
    return values


def late_measure(rows: Rows, variant: str, name: str) -> Found:
    """One late mean of a measure per seed, their mean and its interval. LookupError where there are no such rows."""
    curves: dict[int, Curve] = {}
    for p in points(rows):
        if p.variant == variant:
            curves.setdefault(p.seed, []).append((p.step, getattr(p, name)))
    if not curves:
        raise LookupError(f"no dependence rows of {variant}")
    return Found.of({seed: late(mine) for seed, mine in curves.items()})


def draw(rows: Rows, folder: Path) -> list[Figure]:
    """Nothing where it was not measured."""
    found = points(rows)
    return [scatter(found, folder)] if found else []


def scatter(found: list[Point], folder: Path) -> Figure:
    figure = Figure(
        "listening",
        "How a model listens, and whether it composes",
        "Each point is a run at a checkpoint at which it knows what it has seen, the large ones at the end. Left: how far "
        "every place listens to one condition alone. Right: how little the effect of one condition depends on the others. "
        "Up: level 2, by the probe that judges.",
    )
    variants, last = list(dict.fromkeys(p.variant for p in found)), {id(p) for p in at_the_end(found)}
    with canvas(folder, figure, 1, 2, size=(9.4, 3.6), sharey=True) as axes:
        for axis, (name, label) in zip(axes, MEASURES.items(), strict=True):
            for variant, color in zip(variants, CYCLE * 3, strict=False):
                mine = [p for p in found if p.variant == variant]
                x, y, size = zip(
                    *((getattr(p, name), p.level2, 60 if id(p) in last else 12) for p in mine), strict=True
                )
                axis.scatter(x, y, s=size, color=color, alpha=0.65, lw=0, label=variant)
            axis.set(xlabel=f"{name}: {label}", ylim=(-0.03, 1.03))
        axes[0].set_ylabel("level 2, joint accuracy")
        for handle in axes[1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0)).legend_handles:
            handle.set_sizes([40])
    return figure
