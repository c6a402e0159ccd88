"""What the claims of `missing-labels` measure. Of the exact model: the agreement of the worst factor
with the prompt. Of trained models: late means at level 2 by the paper's probe, the mean over its
seeds. The regions of B43 were written before its seeds were run; known were seed 0 of MaskGIT (all
labels 0.57, single labels left out 0.15, all at once 0.68) and, with all labels, of DiT (0.41)."""

from itertools import pairwise

import numpy as np

from recombine.analysis.calibrated import SEEN as LEARNED
from recombine.analysis.claims import Check, Finding, Measured, claim
from recombine.analysis.levels import gain_of, has_learned
from recombine.analysis.paper_probe import PAPER, paper_numbers, with_paper_probe
from recombine.analysis.table import NotMeasured, Table

CORRECT = 0.5
"""From where an answer of the exact model counts as correct, as in `interactions`."""
LEVEL2, LEVEL1, SEEN = "111", "110", "100"
"""Small blue, large blue, and large red triangles."""
FAMILIES = ("maskgit", "dit")
Path = list[tuple[float, float]]
"""(time, agreement with the prompt), in order."""


def end(rows: Table, composition: str, **which: float | str | bool) -> float:
    """The agreement with the prompt when training ends."""
    return rows.where(kind="end", **which).one(composition=composition)["agreement"]


def over_time(rows: Table, composition: str, **which: float | str | bool) -> Path:
    """The agreement with the prompt while it is trained."""
    some = rows.where(kind="answer", composition=composition, **which)
    if not len(some):
        raise NotMeasured(f"no answers of {composition}")
    return sorted(zip(some.column("time"), some.column("agreement"), strict=True))


def first_time_below(path: Path, below: float) -> float:
    """When, after its highest value, it first falls below a limit. NotMeasured where it does not."""
    top = max(range(len(path)), key=lambda i: path[i][1])
    for time, value in path[top:]:
        if value < below:
            return time
    raise NotMeasured(f"it never falls below {below}")


def one_in(share: float) -> str:
    return f"1 in {round(1 / share)}"


def shares_of(rows: Table) -> list[float]:
    """How often single labels are left out, from seldom to often. NotMeasured where none was."""
    some = rows.where(kind="end", labels="classes", dropped="null")
    if shares := [p for p in sorted(some.unique("missing")) if p]:
        return shares
    raise NotMeasured("single labels were never left out")


@claim("B36", trained=False)
def lost_however_rarely(rows: Table) -> Finding:
    """Where single labels are left out of training, however rarely, level 2 is learned and lost, and
    later level 1; seen combinations stay.

    Expected: with classes (1 as prompted, -1 the opposite), all labels given: level 2 >= 0.5 at the
    end; at each share of single labels: < 0 at the end, below 0.5 before level 1 is, seen >= 0.95 at
    the end; at the lowest share >= 0.5 at best"""
    rows = rows.where(labels="classes", dropped="null")
    kept, shares = end(rows, LEVEL2, missing=0.0), shares_of(rows)
    parts = [Check(f"all labels: >= {CORRECT}", kept >= CORRECT)]
    shown: Measured = {"all labels": kept}
    for p in shares:
        second, first = (over_time(rows, c, missing=p) for c in (LEVEL2, LEVEL1))
        last, seen = (end(rows, c, missing=p) for c in (LEVEL2, SEEN))
        name = one_in(p)
        parts += [
            Check(f"{name}: < 0 at the end", last < 0),
            Check(f"{name}: seen >= 0.95", seen >= 0.95),
            Check(
                f"{name}: before level 1",
                first_time_below(second, CORRECT) < first_time_below(first, CORRECT),
            ),
        ]
        shown[f"{name}, at best"] = max(value for _, value in second)
        shown |= {f"{name}, level 1, at the end": end(rows, LEVEL1, missing=p)}
    best = max(value for _, value in over_time(rows, LEVEL2, missing=shares[0]))
    parts.append(Check(f"{one_in(shares[0])}: >= {CORRECT} at best", best >= CORRECT))
    return Finding(tuple(parts), shown)


@claim("B37", trained=False)
def rare_dropout_takes_longer(rows: Table) -> Finding:
    """The more rarely single labels are left out, the later level 2 is lost: the time goes with the
    inverse of the share.

    Expected: with classes, slope of the logarithm of the time at which the answer turns to the
    opposite, over that of the share: -1 +- 0.15"""
    rows = rows.where(labels="classes", dropped="null")
    shares = shares_of(rows)
    lost = [first_time_below(over_time(rows, LEVEL2, missing=p), 0.0) for p in shares]
    slope = float(np.polyfit(np.log(shares), np.log(lost), 1)[0])
    shown: Measured = {"slope": slope}
    shown |= {f"{one_in(p)}, time": when for p, when in zip(shares, lost, strict=True)}
    return Finding((Check("slope: -1 +- 0.15", abs(slope + 1) <= 0.15),), shown)


@claim("B38", trained=False)
def all_at_once_is_harmless(rows: Table) -> Finding:
    """Leaving out all labels of a picture at once, as guided models are trained, hardly changes what
    a model composes.

    Expected: with classes, level 2 at the end >= 0.5 and at most 0.1 lower than with all labels, at
    each share"""
    rows = rows.where(labels="classes")
    kept, parts = end(rows, LEVEL2, missing=0.0), []
    shown: Measured = {"all labels": kept}
    for p in sorted(rows.where(kind="end", dropped="together").unique("missing")):
        last = end(rows, LEVEL2, missing=p, dropped="together")
        parts.append(Check(f"{one_in(p)}: >= {CORRECT}", last >= CORRECT))
        parts.append(Check(f"{one_in(p)}: at most 0.1 lower", kept - last <= 0.1))
        shown[f"{one_in(p)} without any label"] = last
    return Finding(tuple(parts), shown)


@claim("B39", trained=False)
def values_come_back(rows: Table) -> Finding:
    """Where labels are true values that vary within a class, level 2 falls when single labels are
    left out and comes back; with classes it does not.

    Expected: at the largest share, with values: below 0.5 after its first maximum, >= 0.99 at the
    end; with classes < 0 at the end"""
    most = shares_of(rows)[-1]
    single = rows.where(missing=most, dropped="null")
    path = over_time(single, LEVEL2, labels="values")
    top = next(i for i, (a, b) in enumerate(pairwise(path)) if b[1] < a[1] and a[1] > 0)
    low = min(value for _, value in path[top:])
    last = {name: end(single, LEVEL2, labels=name) for name in ("values", "classes")}
    parts = (
        Check(f"values: falls below {CORRECT}", low < CORRECT),
        Check("values: >= 0.99 at the end", last["values"] >= 0.99),
        Check("classes: < 0 at the end", last["classes"] < 0),
    )
    shown: Measured = {"values, first maximum": path[top][1], "values, lowest after it": low}
    return Finding(parts, shown | {f"{name}, at the end": x for name, x in last.items()})


@claim("B44", trained=False)
def a_false_label_harms_less(rows: Table) -> Finding:
    """The first class in place of a missing label, as where code sets labels to zero, harms less
    than a null.

    Expected: with classes, level 2 at the end at the largest share: null + 0.1 < zero < all labels -
    0.1"""
    rows, most = rows.where(labels="classes"), shares_of(rows)[-1]
    null, zero = (end(rows, LEVEL2, missing=most, dropped=how) for how in ("null", "zero"))
    kept = end(rows, LEVEL2, missing=0.0)
    parts = (
        Check("null + 0.1 < zero", null + 0.1 < zero),
        Check("zero < all labels - 0.1", zero < kept - 0.1),
    )
    return Finding(parts, {"all labels": kept, "zero": zero, "null": null})


@claim("B43")
def trained_models_agree(rows: Table) -> Finding:
    """Small trained models agree with the exact one: single labels left out of training lower level
    2, all labels of a picture left out at once do not, whether a model predicts categories or
    denoises.

    Expected: MaskGIT and DiT: level 2 with all labels left out at once - with single ones >= 0.2,
    and at most 0.15 lower than with all given; seen >= 0.7; late means, paper's linear probe (mean
    over its seeds)"""
    rows = with_paper_probe(rows)
    names = [[f + ending for ending in ("", ", dropout", ", guidance")] for f in FAMILIES]
    parts = []
    for given, single, at_once in names:
        parts.append(gain_of(rows, at_once, single, 0.2, probe=PAPER))
        parts.append(gain_of(rows, at_once, given, -0.15, probe=PAPER))
        parts += [has_learned(rows, v, LEARNED, PAPER) for v in (given, single, at_once)]
    return Finding(
        tuple(parts), paper_numbers(rows, dict.fromkeys(v for some in names for v in some))
    )


CLAIMS = (
    lost_however_rarely,
    rare_dropout_takes_longer,
    all_at_once_is_harmless,
    values_come_back,
    a_false_label_harms_less,
    trained_models_agree,
)
