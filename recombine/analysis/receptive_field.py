"""From the rows of local networks of different reach to claims: K_max over the reach, and misses
against how full patches are."""

from contextlib import suppress
from statistics import fmean

from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.estimates import correlation, correlation_estimate, mean
from recombine.analysis.levels import same_seeds
from recombine.analysis.scenes import Seeds, numbers_of, reached, require_trusted, share_at
from recombine.analysis.table import NotMeasured, Table

LEAD = 2.0
"""By how many objects the best reach has to exceed the smallest and the largest."""
TOGETHER, NETWORKS = 0.8, 8
"""The rank correlation that is expected, over so many networks at least."""
ONE_EXPERIMENT = (
    "Exp 2L alone was run at full scale, as tokens and as U-Nets on patches, in seeds 2 and 3",
    "U-Nets on patches as large as the picture: a quarter of the updates, prompted for up to five locations",
)
B13_DEVIATIONS = (
    *ONE_EXPERIMENT,
    "the region was first written for Exp 3L, and for Exp 2L too when its K_max at reaches of 2 and 8 cells "
    "was known (S4, S6)",
    "a second condition, that 95 % of objects fit at the best reach, was dropped after the runs, in which no "
    "reach leads; 90 % fit at reach 2",
)
B15_DEVIATIONS = (
    *ONE_EXPERIMENT,
    "the region was written for Exps 2L and 3L; after the runs two forms of Exp 2L count as well",
)
MANY = 9
"""Locations at which misses of the reaches are compared, or as many as were tried."""


def bases_of(rows: Table) -> list[str]:
    """The experiments whose reach was changed."""
    return rows.where(kind="fit").unique("base")


def reaches_of(rows: Table, base: str) -> dict[int, str]:
    """Each reach of an experiment and its variant, smallest first."""
    fit = rows.where(kind="fit", base=base)
    return dict(sorted((r["reach"], r["variant"]) for r in fit))


def many(rows: Table) -> int:
    return max(k for k in numbers_of(rows) if k <= MANY)


def missed(rows: Table) -> dict[str, Seeds]:
    """The share of many locations that the network of each reach misses at the end, of those that
    were prompted for so many."""
    number, made = many(rows), {}
    prompted = rows.where(kind="count", locations=number).unique("variant")
    for variant in (v for v in rows.where(kind="fit").column("variant") if v in prompted):
        recall = share_at(rows, variant, number, "recall")
        made[variant] = {seed: 1 - share for seed, share in recall.items()}
    return made


def fullness(rows: Table) -> dict[str, float]:
    """The share of each network's patches that hold more of these locations than training
    conditions on."""
    return {r["variant"]: r["share"] for r in rows.where(kind="overfull", locations=many(rows))}


@claim("B13", deviations=B13_DEVIATIONS)
def best_reach_lies_between(rows: Table) -> Finding:
    """A local network's patch must hold an object and no more locations than training conditions
    on: as it grows, K_max rises and falls again.

    Expected: in every experiment K_max at the reach in between that is best on average exceeds those
    of the smallest and of the largest reach by >= 2 (mean over seeds)"""
    rows = require_trusted(rows)
    parts: list[Part] = []
    measured: Measured = {}
    for base in bases_of(rows):
        each = by_reach(rows, base)
        best = best_between(each)
        lead = mean(leads_over_ends(each, best), resolution=1)
        parts.append(Part(f"{base}, K_max of the best reach less the better end", lead, LEAD))
        measured |= reach_numbers(rows, base) | {f"{base}, best reach": best}
    return Finding(tuple(parts), measured)


def best_between(each: dict[int, Seeds]) -> int:
    """The reach, neither the smallest nor the largest, whose K_max is best on average."""
    return max(sorted(each)[1:-1], key=lambda r: fmean(each[r].values()))


def leads_over_ends(each: dict[int, Seeds], best: int) -> list[float]:
    """By how much K_max of a reach exceeds the better of the two ends, seed by seed."""
    ends = (each[min(each)], each[max(each)])
    return [top - max(end[seed] for end in ends) for seed, top in each[best].items()]


def by_reach(rows: Table, base: str) -> dict[int, Seeds]:
    """K_max of every reach. NotMeasured where some have fewer seeds than others."""
    each = {r: reached(rows, v) for r, v in reaches_of(rows, base).items()}
    if len(each) < 3:
        raise NotMeasured(f"{base}: three reaches or more are needed")
    same_seeds(*each.values())
    return each


def reach_numbers(rows: Table, base: str) -> Measured:
    shown: Measured = {}
    for r, variant in reaches_of(rows, base).items():
        shown[variant] = fmean(reached(rows, variant).values())
        shown[f"{variant}, by means"] = fmean(reached(rows, variant, means=True).values())
        inside = rows.where(kind="fit", base=base).one(reach=r)["inside"]
        shown[f"{variant}, objects that fit"] = inside
        with suppress(NotMeasured):
            matched = share_at(rows, variant, 1, "matched").values()
            shown[f"{variant}, matches at one location"] = fmean(matched)
    return shown


@claim("B15", deviations=B15_DEVIATIONS)
def fullness_predicts_misses(rows: Table) -> Finding:
    """Local networks miss locations where their patches hold more of them than training conditions
    on: how full patches are, known from the world alone, predicts the misses of every reach,
    conditioned on one object or on all.

    Expected: rank correlation of the share of nine locations missed and the share of patches too
    full >= 0.8 within each seed, over 8 networks or more, of two experiments or of two forms of one"""
    # Over the reaches of all experiments: the share of many locations that a network misses
    # against the share of its patches that hold more of them than training conditions on.
    lost, share = missed(require_trusted(rows)), fullness(rows)
    if len(bases_of(rows)) < 2 or len(lost) < NETWORKS:
        raise NotMeasured(f"{NETWORKS} networks or more are needed, of two experiments or forms")
    same_seeds(*lost.values())
    full = [share[variant] for variant in lost]
    seeds = [[values[seed] for values in lost.values()] for seed in next(iter(lost.values()))]
    if any(len(set(values)) == 1 for values in (full, *seeds)):
        raise NotMeasured("nothing to correlate: all networks are the same")
    by_seed = [correlation(full, values) for values in seeds]
    measured: Measured = {"networks": len(lost), "locations": many(rows)}
    for variant, values in lost.items():
        measured[f"{variant}: missed"] = fmean(values.values())
        measured[f"{variant}: patches too full"] = share[variant]
    estimate = correlation_estimate(by_seed)
    part = Part("rank correlation of misses and full patches", estimate, TOGETHER, 1.0)
    return Finding((part,), measured)
