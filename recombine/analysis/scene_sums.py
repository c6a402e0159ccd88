"""From the rows of added scores to claims: K_max by background, and what leakage predicts."""

from statistics import fmean

from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.estimates import mean
from recombine.analysis.levels import same_seeds
from recombine.analysis.scenes import (
    Seeds,
    difference,
    k_estimate,
    listed,
    numbers_of,
    rate_at,
    reached,
    require_one_object,
    require_trusted,
    variant_facts_of,
)
from recombine.analysis.table import NotMeasured, Table

PAPER = {"empty": 4, "unconditional": 1, "cluttered": 8}
"""K_max read off the predecessor's figure 3 by eye."""
SWAPPED, MISMATCHED = "swapped", "mismatched"


def background_decides(rows: Table) -> Finding:
    """The order of the three, also where further objects are no errors, and the numbers that the
    words stand for."""
    trained = trained_clutter(require_trusted(rows))
    require_one_object(rows, "unconditional", "added")
    k = {name: reached(rows, name, "added") for name in PAPER}
    mild = {name: reached(rows, name, "added", lenient=True) for name in PAPER}
    pairs = (("cluttered", "empty"), ("empty", "unconditional"))
    parts = [Part(f"K_max, {a} - {b}", difference(k[a], k[b], resolution=1), 0.0) for a, b in pairs]
    seen = dict.fromkeys(k["cluttered"], float(trained))
    beyond = difference(k["cluttered"], seen, resolution=1)
    parts += [
        Part(f"K_max, cluttered beyond the {trained} in training", beyond, 0.0),
        Part(
            "unconditional, exact match at 2", rate_at(rows, "unconditional", 2, "added"), 0.0, 0.5
        ),
    ]
    for a, b in pairs:
        lead = difference(mild[a], mild[b], resolution=1)
        parts.append(Part(f"K_max by recall alone, {a} - {b}", lead, 0.0))
    return Finding(tuple(parts), background_numbers(rows))


def background_numbers(rows: Table) -> Measured:
    shown: Measured = {}
    for name, paper in PAPER.items():
        values = reached(rows, name, "added")
        shown |= {name: k_estimate(values).value, f"paper_{name}": paper}
        shown[f"{name}, seeds"] = listed(values)
        mild = reached(rows, name, "added", lenient=True)
        shown[f"{name}, by recall alone"] = fmean(mild.values())
        shown[f"{name}, at once"] = fmean(reached(rows, name).values())
    for name in (SWAPPED, MISMATCHED):
        if rows.where(kind="added", variant=name):
            shown[name] = fmean(reached(rows, name, "added").values())
    return shown


def trained_clutter(rows: Table) -> int:
    """How many objects the cluttered model saw at most. NotMeasured unless models were prompted for
    one, two and more than that."""
    trained, tried = variant_facts_of(rows, "cluttered")["trained"], numbers_of(rows, "added")
    if not {1, 2} <= set(tried) or max(tried) <= trained:
        raise NotMeasured(f"1, 2 and more than {trained} locations are needed, not {tried}")
    return trained


@claim("B17")
def leakage_predicts(rows: Table) -> Finding:
    """The leakage, known before anything is sampled, predicts what adding scores does: below zero
    objects vanish, above it they grow with every part, near zero they stay.

    Expected: the leakage at the noise level where it is largest, mean over seeds: unconditional <=
    -0.15, empty >= 0.05, cluttered at most half as far from zero as empty and between the two,
    swapped above empty"""
    leak = {v: strongest_leakage(rows, v) for v in ("unconditional", "cluttered", "empty", SWAPPED)}
    same_seeds(*leak.values())
    measured: Measured = {f"{v}, leakage": fmean(x.values()) for v, x in leak.items()}
    if rows.where(kind="leakage", variant=MISMATCHED):
        values = strongest_leakage(rows, MISMATCHED)
        measured[f"{MISMATCHED}, leakage"] = fmean(values.values())
    bayes, clutter, empty, swapped = leak.values()
    room = [empty[seed] / 2 - abs(clutter[seed]) for seed in empty]
    parts = (
        Part("leakage, unconditional", mean(list(bayes.values())), high=-0.15),
        Part("leakage, empty", mean(list(empty.values())), 0.05),
        Part("half of |empty| less |cluttered|", mean(room), 0.0),
        Part("leakage, swapped - empty", difference(swapped, empty), 0.0),
        Part("leakage, cluttered - unconditional", difference(clutter, bayes), 0.0),
        Part("leakage, empty - cluttered", difference(empty, clutter), 0.0),
    )
    return Finding(parts, measured)


def strongest_leakage(rows: Table, variant: str) -> Seeds:
    """Of each seed, the leakage that is farthest from zero. NotMeasured where none was measured."""
    some = rows.where(kind="leakage", variant=variant)
    if not some:
        raise NotMeasured(f"no leakage of {variant} was measured")
    seeds = some.by("seed")
    return {seed: max(seeds[seed].column("leakage"), key=abs) for seed in sorted(seeds)}
