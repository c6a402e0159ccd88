"""From the rows of `operator` to its claims: how far each background goes, and what its leakage foretold."""

from typing import Any

from recombine.evaluate.counting import k_max
from recombine.studies.base import Judgement, Rows
from recombine.studies.levels import Found, gain, same_seeds
from recombine.studies.scenes.outcomes import facts, last, trusted

PAPER = {"empty": 4, "unconditional": 1, "cluttered": 8}
"""K_max read off the predecessor's figure 3 by eye."""
SWAPPED, MISMATCHED = "swapped", "mismatched"


def reach(rows: Rows, variant: str, kind: str = "added", lenient: bool = False) -> Found:
    """K_max of each seed: by adding, or told at once (`count`). Lenient: objects that no location names are forgiven to all."""
    strict = bool(facts(rows, variant)["strict"]) and not lenient
    return Found.of({seed: float(k_max(some, strict)) for seed, some in last(rows, variant, kind).items()})


def judge_operator(rows: Rows) -> Judgement:
    """In every seed: the order of the three, also by the lenient measure, and the numbers that the words stand for. A model
    that cannot draw one object fails for want of training, which says nothing."""
    trained = enough(trusted(rows))
    measured: dict[str, Any] = {}
    for name, paper in PAPER.items():
        found = reach(rows, name)
        measured |= {name: found.mean, f"paper_{name}": paper, f"{name}, seeds": listed(found)}
        measured[f"{name}, lenient"] = reach(rows, name, lenient=True).mean
        measured[f"{name}, at once"] = reach(rows, name, "count").mean
    for name in (SWAPPED, MISMATCHED):
        measured |= {name: reach(rows, name).mean} if rows.where(kind="added", variant=name) else {}
    empty, bayes, cluttered = (reach(rows, name) for name in PAPER)
    fails, few, beyond = set(bayes.values) == {1}, min(empty.values) > 1, min(cluttered.values) > trained
    holds = fails and few and beyond and ordered(rows) and ordered(rows, lenient=True)
    gap = gain(cluttered, empty).interval
    return Judgement(holds or ("partly" if fails and (few or beyond) else False), measured, gap)


def judge_echo(rows: Rows) -> Judgement:
    """By the noise level at which each leakage is largest."""
    names = ("unconditional", "cluttered", "empty", SWAPPED)
    found = {name: loudest(rows, name) for name in names}
    measured = {f"{name}, leakage": each.mean for name, each in found.items()}
    if rows.where(kind="leakage", variant=MISMATCHED):
        measured[f"{MISMATCHED}, leakage"] = loudest(rows, MISMATCHED).mean
    each = list(zip(*(f.values for f in same_seeds(*found.values())), strict=True))
    order = all(bayes < clutter < empty for bayes, clutter, empty, _ in each)
    holds = all(
        bayes <= -0.15 and empty >= 0.05 and abs(clutter) <= empty / 2 and swapped > empty
        for bayes, clutter, empty, swapped in each
    )
    return Judgement((order and holds) or ("partly" if order else False), measured)


def loudest(rows: Rows, variant: str) -> Found:
    """Of each seed, the leakage that is farthest from zero. LookupError where none was measured."""
    heard = rows.where(kind="leakage", variant=variant)
    if not heard:
        raise LookupError(f"no leakage of {variant} was measured")
    return Found.of({seed: max(heard.where(seed=seed).column("leakage"), key=abs) for seed in {*heard.column("seed")}})


def enough(rows: Rows) -> int:
    """How many objects the cluttered model saw at most. LookupError unless one, two and more than that were asked for."""
    trained, tried = facts(rows, "cluttered")["trained"], set(rows.where(kind="added").column("locations"))
    if not {1, 2} <= tried or max(tried) <= trained:
        raise LookupError(f"1, 2 and more than {trained} locations are needed, not {sorted(tried)}")
    return trained


def ordered(rows: Rows, lenient: bool = False) -> bool:
    """Whether in every seed the unconditional background reaches least and the cluttered one most."""
    found = same_seeds(*(reach(rows, name, lenient=lenient) for name in PAPER))
    return all(b < e < c for e, b, c in zip(*(f.values for f in found), strict=True))


def listed(found: Found) -> str:
    return ", ".join(f"{v:g}" for v in found.values)
