"""How a model depends on its conditions against how well it composes: from rows to points and a
correlation."""

from contextlib import suppress
from statistics import fmean
from typing import NamedTuple

from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.estimates import Estimate, correlation, correlation_estimate, mean
from recombine.analysis.levels import LEARNED, Curve, curve, late_mean, seeds_of
from recombine.analysis.table import NotMeasured, Table

MEASURES = {
    "sparse": "share of the strongest condition at each place",
    "additive": "1 - interactions / effects",
}


class Point(NamedTuple):
    """One run at one checkpoint; means over how much was noised or masked."""

    variant: str
    seed: int
    step: int
    sparse: float
    additive: float
    level2: float


def dependence_points(rows: Table) -> list[Point]:
    """All checkpoints at which the seen compositions are known (LEARNED): a network that has
    learned nothing yet depends on nothing, and that is as additive as can be."""
    found = []
    for variant in rows.where(kind="dependence").unique("variant"):
        for seed in seeds_of(rows, variant):
            some, seen = (
                rows.where(kind="dependence", variant=variant, seed=seed),
                dict(curve(rows, variant, seed, 0)),
            )
            for step, accuracy in curve(rows, variant, seed, 2):
                here = some.where(step=step)
                if here and seen[step] >= LEARNED:
                    means = {name: fmean(here.column(name)) for name in MEASURES}
                    found.append(Point(variant, seed, step, level2=accuracy, **means))
    return found


def at_the_end(found: list[Point]) -> list[Point]:
    last = max((p.step for p in found), default=0)
    return [p for p in found if p.step == last]


def rank_correlation(found: list[Point], name: str) -> float:
    """Spearman's, of a measure with level 2. NotMeasured where there is nothing to compare."""
    pairs = [(getattr(p, name), p.level2) for p in found]
    if len(pairs) < 4 or len({y for _, y in pairs}) < 2 or len({x for x, _ in pairs}) < 2:
        raise NotMeasured(f"too few different points to correlate {name} with level 2")
    return correlation(*zip(*pairs, strict=True))


def within(found: list[Point], name: str) -> dict[str, float]:
    """The rank correlation inside each family, over its seeds and checkpoints; those in which level
    2 never varies left out."""
    values = {}
    for variant in dict.fromkeys(p.variant for p in found):
        with suppress(NotMeasured):
            values[variant] = rank_correlation([p for p in found if p.variant == variant], name)
    return values


def late_measure(rows: Table, variant: str, name: str) -> dict[int, float]:
    """One late mean of a measure per seed. NotMeasured where there are no such rows."""
    curves: dict[int, Curve] = {}
    for p in dependence_points(rows):
        if p.variant == variant:
            curves.setdefault(p.seed, []).append((p.step, getattr(p, name)))
    if not curves:
        raise NotMeasured(f"no dependence rows of {variant}")
    return {seed: late_mean(mine) for seed, mine in curves.items()}


def late_gain(rows: Table, more: str, less: str, name: str) -> Estimate:
    """How much larger a measure is in one variant than in another, paired by seed. NotMeasured
    where no seed has both."""
    a, b = (late_measure(rows, v, name) for v in (more, less))
    if not (both := sorted(a.keys() & b.keys())):
        raise NotMeasured(f"no seed has dependence rows of both {more} and {less}")
    return mean([a[s] - b[s] for s in both], -1.0, 1.0)


@claim("B1")
def predicts_composition(rows: Table) -> Finding:
    """The more local a model's dependence on its conditions, the better it composes, across
    objectives and checkpoints.

    Expected: rank correlation of sparse or additive dependence with level 2 >= 0.5, over all
    checkpoints and at the end, and the other not <= -0.5"""
    # The rank correlation of each measure with level 2 over all checkpoints, seed by seed.
    # Within a family it is shown beside: families differ in more than how they depend on their
    # conditions.
    found, parts = dependence_points(rows), []
    measured: Measured = {}
    for name in MEASURES:
        for words, some in (("all checkpoints", found), ("at the end", at_the_end(found))):
            measured[f"{name}, {words}"] = rank_correlation(some, name)
        by_seed = []
        for seed in sorted({p.seed for p in found}):
            with suppress(NotMeasured):
                by_seed.append(rank_correlation([p for p in found if p.seed == seed], name))
        if not by_seed:
            raise NotMeasured(
                f"in no seed are there enough points to correlate {name} with level 2"
            )
        parts.append(
            Part(
                f"rank correlation of {name} dependence with level 2",
                correlation_estimate(by_seed),
                0.5,
                1.0,
            )
        )
        measured |= {f"{name}, within {v}": r for v, r in within(found, name).items()}
    return Finding(tuple(parts), measured | {"points": len(found)})
