"""From the rows of scene models to what claims are about: K_max of every run at every checkpoint,
how local the run was there, and what adding scores does."""

import math
from contextlib import suppress
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

from recombine.analysis import estimates
from recombine.analysis.claims import Measured
from recombine.analysis.estimates import Estimate, mean, rate
from recombine.analysis.table import NotMeasured, Table
from recombine.metrics.counting import doubt, k_max, k_mean
from recombine.store import Row

PAPER = {"exp1": 7, "exp1, wide": 7, "exp2": 2, "exp3": 3, "exp2L": 9, "exp3L": 9, "exp2, 1 object": 1,
         "exp2, 1-5 objects": 3, "exp2L, 1 object": 5, "exp2L, 1-5 objects": 10,
         "exp2L, patches": 9, "exp2L, patches, longer": 9, "exp3L, patches": 9}  # fmt: skip
"""K_max in the paper's Table 1, of Exp 1 by its captions, of the others by a third party's public note;
of the control that says only that it fails."""
TRAINED = 3
"""The largest number of objects that most experiments are trained on."""
OTHER_NOISE, OTHER_SIZE, LONGER = ", EDM2 noise", ", wide", ", longer"
"""How variants end that were trained with other noise levels, are larger, or were trained longer,
than the rest."""
DECIDED = 0.4
"""The time from which on locations matter: below, removing one changes next to nothing, and the
share of nothing is noise."""
Seeds = dict[int, float]
"""One number for each seed."""


def require_trusted(rows: Table) -> Table:
    """The rows, if their detector counts well enough. NotMeasured with the reason if not."""
    if why := doubt([*rows.where(kind="detector"), *rows.where(kind="real")]):
        raise NotMeasured(why)
    return rows


def variants_of(rows: Table) -> list[str]:
    return rows.where(kind="variant").column("variant")


def variant_facts_of(rows: Table, variant: str) -> Row:
    """NotMeasured where the variant was not run."""
    known = rows.where(kind="variant")
    if not known.where(variant=variant):
        raise NotMeasured(f"{variant} was not run")
    return known.one(variant=variant)


def criterion(rows: Table, variant: str) -> str:
    """The column that K_max is about: matches. Results from before 17 November 2026 have none:
    there, exact matches, or full recall where training pictures hold unlabelled objects."""
    if any(r.get("matched") is not None for r in rows.where(variant=variant)):
        return "matched"
    return "exact_match" if variant_facts_of(rows, variant)["strict"] else "full_recall"


def checkpoints(rows: Table, variant: str, kind: str = "count") -> dict[tuple[int, int], Table]:
    """(seed, step) -> the rows of one kind, in order."""
    seeds = rows.where(kind=kind, variant=variant).by("seed").items()
    each = (((seed, step), at) for seed, some in seeds for step, at in some.by("step").items())
    return dict(sorted(each, key=lambda item: item[0]))


def last(rows: Table, variant: str, kind: str = "count") -> dict[int, Table]:
    """Seed -> the rows of its last checkpoint. NotMeasured where there are none."""
    ends = {seed: some for (seed, _), some in checkpoints(rows, variant, kind).items()}
    if not ends:
        raise NotMeasured(f"no rows of {variant}")
    return ends


def numbers_of(rows: Table, kind: str = "count") -> list[int]:
    """The numbers of locations that were tried."""
    return sorted(rows.where(kind=kind).unique("locations"))


def reached(
    rows: Table, variant: str, kind: str = "count", means: bool = False, lenient: bool = False
) -> Seeds:
    """K_max at the last checkpoint. `kind`: count, crowded (locations of real scenes) or added.
    `means`: by means over pictures (`k_mean`). `lenient`: further objects are no errors."""
    strict = bool(variant_facts_of(rows, variant)["strict"]) and not lenient
    column = "full_recall" if lenient else criterion(rows, variant)
    ends = last(rows, variant, kind).items()
    return {s: float(k_mean(some, strict) if means else k_max(some, column)) for s, some in ends}


def k_estimate(values: Seeds, most: float | int = math.inf) -> Estimate:
    """The mean K_max over seeds: a whole number, not negative, and no more than the `most` locations
    that models were prompted for."""
    return mean(list(values.values()), 0, most, resolution=1)


def difference(more: Seeds, less: Seeds, **bounds: float | int) -> Estimate:
    """The mean difference, paired by seed. NotMeasured unless both have the same seeds."""
    if more.keys() != less.keys():
        raise NotMeasured(f"seeds {sorted(more)} beside {sorted(less)}: some runs are missing")
    return mean([more[seed] - less[seed] for seed in more], **bounds)


def share_at(rows: Table, variant: str, locations: int, column: str, kind: str = "count") -> Seeds:
    """One column at one number of locations at the end. NotMeasured where it was not tried."""
    ends = last(rows, variant, kind).items()
    found = {seed: some.one(locations=locations).get(column) for seed, some in ends}
    known = {seed: value for seed, value in found.items() if value is not None}
    if len(known) < len(found):
        raise NotMeasured(f"{column} of {variant} at {locations} locations was not measured")
    return known


def most_prompted(rows: Table, variant: str) -> int:
    """The largest number of locations that a variant was prompted for."""
    return max(numbers_of(rows.where(variant=variant)), default=0)


def require_prompts(rows: Table, number: int, variant: str) -> None:
    """NotMeasured unless a variant was trained on one to three objects and prompted for so many."""
    if variant_facts_of(rows, variant)["trained"] != TRAINED:
        raise NotMeasured(f"{variant} was not trained on one to three objects")
    most = most_prompted(rows, variant)
    if most < number:
        raise NotMeasured(f"{variant} was prompted for {most} objects at most, not for {number}")


def require_one_object(rows: Table, variant: str, kind: str = "count") -> None:
    """NotMeasured where a variant does not even place one object: then it fails for want of
    training, which says nothing of larger numbers."""
    share = fmean(share_at(rows, variant, 1, criterion(rows, variant), kind).values())
    if share < 0.5:
        raise NotMeasured(f"{variant} places a single object in {share:.0%} of pictures only")


def lengths(rows: Table, *variants: str) -> Measured:
    """Numbers beside a claim: K_max of each variant next to the paper's, by other criteria, and
    recall at the largest number of locations next to its chance level."""
    shown: Measured = {}
    for name in variants:
        most = most_prompted(rows, name)
        values = reached(rows, name)
        shown[name] = k_estimate(values).value
        shown |= {f"paper_{name}": PAPER[name]} if name in PAPER else {}
        shown[f"{name}, seeds"] = listed(values)
        shown[f"{name}, by means"] = fmean(reached(rows, name, means=True).values())
        shown[f"{name}, by recall alone"] = fmean(reached(rows, name, lenient=True).values())
        shown[f"{name}, recall at {most}"] = fmean(share_at(rows, name, most, "recall").values())
        with suppress(NotMeasured):
            level = fmean(share_at(rows, name, most, "chance").values())
            shown[f"{name}, chance level at {most}"] = level
            extra = fmean(share_at(rows, name, most, "false_positives").values())
            shown[f"{name}, false positives at {most}"] = extra
        if rows.where(kind="crowded", variant=name):
            crowded = fmean(reached(rows, name, "crowded").values())
            shown[f"{name}, locations as near as in real scenes"] = crowded
    return shown


def listed(values: Seeds) -> str:
    return ", ".join(f"{v:g}" for v in values.values())


def recall_apart(rows: Table, variant: str, numbers: range, far: float) -> Seeds:
    """Recall of locations with no other one nearer than `far`, where so many are prompted for."""
    near = [r for r in rows.where(kind="near", variant=variant) if r["from"] >= far]
    near = [r for r in near if r["locations"] in numbers]
    if not near:
        span = f"{numbers.start} to {numbers.stop - 1}"
        raise NotMeasured(f"{variant}: no locations of {span} that are far from each other")
    seeds = {
        seed: [r for r in near if r["seed"] == seed] for seed in sorted({r["seed"] for r in near})
    }
    return {seed: _weighted(some) for seed, some in seeds.items()}


def _weighted(some: list[Row]) -> float:
    return sum(r["recall"] * r["n"] for r in some) / sum(r["n"] for r in some)


class Point(NamedTuple):
    """One run at one checkpoint. `gain`: K_max less the largest number of objects in training."""

    variant: str
    seed: int
    step: int
    k_max: int
    gain: int
    pixel: float
    condition: float


def mean_locality(some: Table, column: str) -> float:
    """The mean over the noise levels at which it is decided which object is where (all, if none is
    so high); those at which nothing could be measured are left out. NotMeasured if none is left."""
    known = [r for r in some if r.get(column) is not None]
    high = [r[column] for r in known if r["t"] >= DECIDED] or [r[column] for r in known]
    if not high:
        raise NotMeasured(f"{column} locality could not be measured")
    return fmean(high)


def locality(rows: Table, variant: str, column: str) -> Seeds:
    """Locality at the last checkpoint: `pixel` or `condition`."""
    ends = last(rows, variant, "locality").items()
    return {seed: mean_locality(some, column) for seed, some in ends}


def locality_points(rows: Table) -> list[Point]:
    """All runs at all checkpoints at which locality could be measured."""
    made = []
    for variant in variants_of(rows):
        about, measured = variant_facts_of(rows, variant), checkpoints(rows, variant, "locality")
        column = criterion(rows, variant)
        for (seed, step), some in checkpoints(rows, variant).items():
            k, levels = k_max(some, column), measured.get((seed, step), Table())
            with suppress(NotMeasured):
                both = (mean_locality(levels, "pixel"), mean_locality(levels, "condition"))
                made.append(Point(variant, seed, step, k, k - about["trained"], *both))
    return made


def able(some: list[Point]) -> list[Point]:
    """From the checkpoint on at which a run places one object. Before, it fails for want of
    training."""
    first: dict[tuple[str, int], int] = {}
    for p in some:
        if p.k_max >= 1:
            first[p.variant, p.seed] = min(p.step, first.get((p.variant, p.seed), p.step))
    return [p for p in some if p.step >= first.get((p.variant, p.seed), p.step + 1)]


def usual(rows: Table) -> list[Point]:
    """The points of the experiments trained on one to three objects, as the paper's are, all with
    the same noise levels."""
    shown = (
        p
        for p in locality_points(rows)
        if not p.variant.endswith((OTHER_NOISE, OTHER_SIZE, LONGER))
    )
    return [p for p in shown if variant_facts_of(rows, p.variant)["trained"] == TRAINED]


def correlation(some: list[Point]) -> float:
    """Spearman's, of conditional locality and by how much K_max exceeds the trained number.
    NotMeasured where one does not vary."""
    x, y = [p.condition for p in some], [p.gain for p in some]
    if len(some) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
        raise NotMeasured("nothing to correlate: all points are the same")
    return estimates.correlation(x, y)


def correlation_by_seed(some: list[Point]) -> list[float]:
    """The correlation within each seed, where there is one."""
    values = []
    for seed in sorted({p.seed for p in some}):
        with suppress(NotMeasured):
            values.append(correlation([p for p in some if p.seed == seed]))
    return values


def rising_together(some: list[Point]) -> int:
    """In how many runs K_max grows over the checkpoints and conditional locality does too."""
    runs: dict[tuple[str, int], list[Point]] = {}
    for p in some:
        runs.setdefault((p.variant, p.seed), []).append(p)
    return sum(_rises(r) and r[-1].condition > r[0].condition for r in runs.values())


def _rises(run: list[Point]) -> bool:
    return run[-1].gain > run[0].gain and all(b.gain >= a.gain for a, b in pairwise(run))


def rate_at(rows: Table, variant: str, locations: int, kind: str = "count") -> Estimate:
    """The share of pictures that K_max is about, at one number of locations."""
    return rate(list(share_at(rows, variant, locations, criterion(rows, variant), kind).values()))
