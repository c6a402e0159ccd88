"""From rows to what is judged: K_max of every run at every checkpoint, and how local the run was there."""

from collections.abc import Callable
from statistics import fmean
from typing import NamedTuple

from recombine.evaluate.counting import k_max
from recombine.evaluate.ranks import spearman
from recombine.studies.base import Row, Rows
from recombine.studies.levels import Found
from recombine.studies.scenes.judge import doubt

NAMES = {
    "exp1": "Exp 1: grid, all told",
    "exp2": "Exp 2: grid, one told",
    "exp3": "Exp 3: list, all told",
    "exp2L": "Exp 2L: local, one told",
    "exp3L": "Exp 3L: local, list",
    "exp2L, whole": "Exp 2L, whole picture",
}
PAPER = {"exp1": 7, "exp2": 2, "exp3": 3, "exp2L": 9, "exp3L": 9, "exp2, 1 object": 1, "exp2, 1-5 objects": 3,
         "exp2L, 1 object": 5, "exp2L, 1-5 objects": 10}  # fmt: skip
"""K_max in the paper's table 1; of the control it says only that it fails."""

USUAL = 3
"""The largest number of objects that most experiments are trained on."""
DECIDED = 0.4
"""The time from which on locations matter: below, taking one away changes next to nothing, and the share of nothing is noise."""


class Point(NamedTuple):
    """One run at one checkpoint. `gain`: K_max less the largest number of objects in training."""

    variant: str
    seed: int
    step: int
    k_max: int
    gain: int
    pixel: float
    condition: float


def trusted(rows: Rows) -> Rows:
    """The rows, if the detector behind them may judge. LookupError with the reason if not."""
    if why := doubt(rows):
        raise LookupError(why)
    return rows


def title(variant: str) -> str:
    """How a variant is called in figures."""
    if variant in NAMES:
        return NAMES[variant]
    base, _, counts = variant.partition(", ")
    return f"{NAMES[base].partition(':')[0]}, trained on {counts}"


def variants_of(rows: Rows) -> list[str]:
    return rows.where(kind="variant").column("variant")


def facts(rows: Rows, variant: str) -> Row:
    """LookupError where the variant was not run."""
    return rows.where(kind="variant").one(variant=variant)


def judged_by(rows: Rows, variant: str) -> str:
    """The column that is judged: right pictures, or complete ones where training pictures hold objects that no location names."""
    return "right" if facts(rows, variant)["strict"] else "complete"


def looks(rows: Rows, variant: str, kind: str = "count") -> dict[tuple[int, int], Rows]:
    """(seed, step) -> the rows of one kind, in order."""
    seeds = rows.where(kind=kind, variant=variant).by("seed").items()
    return dict(sorted(((seed, step), look) for seed, some in seeds for step, look in some.by("step").items()))


def last(rows: Rows, variant: str, kind: str = "count") -> dict[int, Rows]:
    """Seed -> the rows of its last checkpoint. LookupError where there are none."""
    found = {seed: some for (seed, _), some in looks(rows, variant, kind).items()}
    if not found:
        raise LookupError(f"no rows of {variant}")
    return found


def marks_of(rows: Rows, kind: str = "count") -> list[int]:
    """The numbers of locations that were tried."""
    return sorted({r["locations"] for r in rows.where(kind=kind)})


def reached(rows: Rows, variant: str, kind: str = "count", by: Callable[..., int] = k_max) -> Found:
    """K_max at the last checkpoint, seed by seed; `crowded`: at the locations of real scenes. `by`: which way to count."""
    strict = bool(facts(rows, variant)["strict"])
    return Found.of({seed: float(by(some, strict)) for seed, some in last(rows, variant, kind).items()})


def marks_alone(rows: Rows, variant: str) -> Found:
    """K_max if objects besides those asked for were no error: every location is located."""
    return Found.of({seed: float(k_max(some, total=False)) for seed, some in last(rows, variant).items()})


def mean_local(some: Rows, column: str) -> float:
    """The mean over the noise levels at which it is decided what is drawn where (all, if none is so high); those at which
    nothing could be measured are left out. LookupError where that leaves none."""
    known = Rows(r for r in some if r[column] is not None)
    high = [r[column] for r in known if r["t"] >= DECIDED] or known.column(column)
    if not high:
        raise LookupError(f"{column} locality could not be measured")
    return fmean(high)


def local(rows: Rows, variant: str, column: str) -> Found:
    """Locality at the last checkpoint, seed by seed: `pixel` or `condition`."""
    return Found.of({seed: mean_local(some, column) for seed, some in last(rows, variant, "locality").items()})


def points(rows: Rows) -> list[Point]:
    """All runs at all checkpoints at which locality could be measured."""
    found = []
    for variant in variants_of(rows):
        about, measured = facts(rows, variant), looks(rows, variant, "locality")
        for (seed, step), some in looks(rows, variant).items():
            k, levels = k_max(some, bool(about["strict"])), measured.get((seed, step), Rows())
            try:
                both = (mean_local(levels, "pixel"), mean_local(levels, "condition"))
            except LookupError:
                continue
            found.append(Point(variant, seed, step, k, k - about["trained"], *both))
    return found


def able(found: list[Point]) -> list[Point]:
    """From the look on at which a run can draw one object where it is told. Before, it fails for want of training."""
    first: dict[tuple[str, int], int] = {}
    for p in found:
        if p.k_max >= 1:
            first[p.variant, p.seed] = min(p.step, first.get((p.variant, p.seed), p.step))
    return [p for p in found if p.step >= first.get((p.variant, p.seed), p.step + 1)]


def usual(rows: Rows) -> list[Point]:
    """Those of the experiments trained on one to three objects, as the paper's are."""
    return [p for p in points(rows) if facts(rows, p.variant)["trained"] == USUAL]


def correlation(found: list[Point]) -> float:
    """Spearman's, of conditional locality and what K_max exceeds the training by. LookupError where one does not vary."""
    x, y = [p.condition for p in found], [p.gain for p in found]
    if len(found) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
        raise LookupError("nothing to correlate: all points are the same")
    return spearman(x, y)
