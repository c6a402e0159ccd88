"""The rows of the study `circuits`, back as arrays: what its claims and its figures share."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.evaluate.circuits import rank_correlation
from recombine.evaluate.attention_heads import polysemantic, threshold_for
from recombine.studies.base import Rows

VARIANTS = ("maskgit", "jepa")
WORDS = {"maskgit": "without JEPA", "jepa": "with JEPA"}
PAPER_HEADS = {
    "maskgit": (0.92, 0.81, 0.78, 0.65, 0.52, 0.65, 0.74, 0.63, 0.62, 0.40, 0.28, 0.70),
    "jepa": (0.65, 0.61, 0.68, 0.55, 0.39, 0.51, 0.66, 0.58, 0.50, 0.20, 0.28, 0.67),
}
"""Share of polysemantic heads in each of the paper's 12 layers, figure 6c, read off a picture (+- 0.01)."""
PAPER_PAIRS = {
    "red circle, blue circle": (0.85, 0.73),
    "red circle, red square": (0.77, 0.69),
    "blue circle, blue square": (0.77, 0.54),
    "red square, blue square": (0.60, 0.48),
    "red square, blue circle": (0.43, 0.21),
    "red circle, blue square": (0.42, 0.30),
}
"""Jaccard overlap without and with the auxiliary loss, figure 6d, read off a picture; the last two pairs share no factor."""
JUDGED_SHARE = 0.05
"""The share of units that makes up the circuits that are judged."""
THRESHOLDS = tuple(10 ** (-3 + i / 10) for i in range(31))
"""From 0.001 to 1, evenly in the logarithm."""


def paper_mean(variant: str) -> float:
    return sum(PAPER_HEADS[variant]) / len(PAPER_HEADS[variant])


def tidy(x: Tensor | float) -> float:
    """A number as it is judged and told: nine digits, so that another runtime's order of summation changes nothing."""
    return round(float(x), 9)


def seeds_of(rows: Rows) -> list[int]:
    """The seeds that were measured with and without."""
    found = [{r["seed"] for r in rows.where(kind="head", variant=v)} for v in VARIANTS]
    if not (both := sorted(set.intersection(*found))):
        raise LookupError("no seed was measured both with and without the auxiliary loss")
    return both


def factors_of(rows: Rows) -> list[str]:
    return list(dict.fromkeys(rows.where(kind="head").column("factor")))


def head_table(rows: Rows, variant: str, column: str = "sensitivity") -> Float[Tensor, "k seeds layers heads"]:
    """One number of every head, factor by factor."""
    factors, seeds, some = factors_of(rows), seeds_of(rows), rows.where(kind="head", variant=variant)
    size = (len(factors), len(seeds), 1 + max(some.column("layer")), 1 + max(some.column("head")))
    table = torch.full(size, torch.nan, dtype=torch.float64)
    for r in some:
        if r["seed"] in seeds:
            table[factors.index(r["factor"]), seeds.index(r["seed"]), r["layer"], r["head"]] = r[column]
    return table


def falls(rows: Rows, variant: str) -> Float[Tensor, "k seeds layers heads"]:
    """How much each factor's accuracy falls when a head is cut."""
    return head_table(rows, variant, "before") - head_table(rows, variant, "after")


def shares(rows: Rows, variant: str, threshold: float) -> Float[Tensor, "seeds layers"]:
    """The share of polysemantic heads."""
    return polysemantic(head_table(rows, variant), threshold).double().mean(-1)


def threshold(rows: Rows) -> float:
    """The one at which the models without the auxiliary loss have the paper's mean share of polysemantic heads."""
    return threshold_for(head_table(rows, "maskgit"), paper_mean("maskgit"))


def sweep(rows: Rows, variant: str) -> Float[Tensor, "seeds thresholds"]:
    """The share of polysemantic heads over all layers, at every threshold."""
    table = head_table(rows, variant)
    return torch.stack([polysemantic(table, t).double().mean((1, 2)) for t in THRESHOLDS], 1)


def causal(rows: Rows, variant: str) -> list[float]:
    """Whether the factors that turn a head are those that suffer when it is cut: the rank correlation over heads and factors,
    one number a seed."""
    both = zip(head_table(rows, variant).unbind(1), falls(rows, variant).unbind(1), strict=True)
    return [rank_correlation(turned.flatten().tolist(), fall.flatten().tolist()) for turned, fall in both]


class Pair(NamedTuple):
    """Two compositions, the number of factors in which they agree, and their levels."""

    first: str
    second: str
    shared: int
    levels: tuple[int, int]


def pairs_of(rows: Rows, same: bool = False) -> list[Pair]:
    """Every pair of different compositions, or every composition with itself; those that agree in fewer factors first.
    LookupError where there is none."""
    found = {
        Pair(r["first"], r["second"], r["shared"], (r["first_level"], r["second_level"]))
        for r in rows.where(kind="overlap")
        if (r["first"] == r["second"]) == same
    }
    if not found:
        raise LookupError("no overlaps of circuits")
    return sorted(found, key=lambda p: (p.shared, p))


def overlap_table(
    rows: Rows, variant: str, pairs: Sequence[Pair], share: float = JUDGED_SHARE, column: str = "jaccard"
) -> Float[Tensor, "seeds pairs"]:
    """How much the circuits of each pair overlap; LookupError where that was not measured."""
    found = rows.where(kind="overlap", variant=variant, share=share)
    known = {(r["first"], r["second"], r["seed"]): r[column] for r in found}
    return torch.tensor([[known[p.first, p.second, s] for p in pairs] for s in seeds_of(rows)], dtype=torch.float64)


def by_shared(pairs: Sequence[Pair], values: Float[Tensor, "pairs"]) -> dict[int, float]:
    """The mean over the pairs that agree in as many factors, from few to many."""
    count = torch.tensor([p.shared for p in pairs])
    return {k: float(values[count == k].mean()) for k in sorted(set(count.tolist()))}


def agreement(rows: Rows, variant: str, rest: str = "") -> list[float]:
    """The rank correlation over units between attribution and true ablation, one number a seed."""
    some = [rows.where(kind="unit", variant=variant, seed=s) for s in seeds_of(rows)]
    return [rank_correlation(u.column(f"attribution{rest}"), u.column(f"ablation{rest}")) for u in some]
