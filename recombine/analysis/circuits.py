"""Rows of opened models as arrays: what the claims and the figures of `circuits` share."""

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.analysis.estimates import correlation
from recombine.analysis.table import NotMeasured, Table
from recombine.metrics.attention_heads import polysemantic, threshold_for

VARIANTS = ("maskgit", "jepa")
WORDS = {"maskgit": "without JEPA", "jepa": "with JEPA"}
PAPER_HEADS = {
    "maskgit": (0.92, 0.81, 0.78, 0.65, 0.52, 0.65, 0.74, 0.63, 0.62, 0.40, 0.28, 0.70),
    "jepa": (0.65, 0.61, 0.68, 0.55, 0.39, 0.51, 0.66, 0.58, 0.50, 0.20, 0.28, 0.67),
}
"""Share of polysemantic heads in the paper's 12 layers, figure 6c, read off a picture (+- 0.01)."""
PAPER_PAIRS = {
    "red circle, blue circle": (0.85, 0.73),
    "red circle, red square": (0.77, 0.69),
    "blue circle, blue square": (0.77, 0.54),
    "red square, blue square": (0.60, 0.48),
    "red square, blue circle": (0.43, 0.21),
    "red circle, blue square": (0.42, 0.30),
}
"""Jaccard overlap without and with the auxiliary loss, figure 6d, read off a picture; the last two
pairs share no factor."""
THRESHOLDS = tuple(10 ** (-3 + i / 10) for i in range(31))
"""From 0.001 to 1, evenly in the logarithm."""
OVERLAP = fmean(without for without, _ in PAPER_PAIRS.values())
"""The paper's mean overlap without the auxiliary loss."""


def paper_mean(variant: str) -> float:
    return sum(PAPER_HEADS[variant]) / len(PAPER_HEADS[variant])


def tidy(x: Tensor | float) -> float:
    """Nine digits, so that another machine's order of summation changes no verdict."""
    return round(float(x), 9)


def paired_seeds(rows: Table) -> list[int]:
    """The seeds that were measured with and without. NotMeasured where there is none."""
    each = [set(rows.where(kind="head", variant=v).unique("seed")) for v in VARIANTS]
    if not (both := sorted(set.intersection(*each))):
        raise NotMeasured("no seed was measured both with and without the auxiliary loss")
    return both


def factors_of(rows: Table) -> list[str]:
    return rows.where(kind="head").unique("factor")


def head_table(
    rows: Table, variant: str, column: str = "sensitivity"
) -> Float[Tensor, "k seeds layers heads"]:
    """One number of every head, factor by factor."""
    factors, seeds = factors_of(rows), paired_seeds(rows)
    some = rows.where(kind="head", variant=variant)
    size = (len(factors), len(seeds), 1 + max(some.column("layer")), 1 + max(some.column("head")))
    table = torch.full(size, torch.nan, dtype=torch.float64)
    for r in some:
        if r["seed"] in seeds:
            at = factors.index(r["factor"]), seeds.index(r["seed"]), r["layer"], r["head"]
            table[at] = r[column]
    return table


def accuracy_drops(rows: Table, variant: str) -> Float[Tensor, "k seeds layers heads"]:
    """How much each factor's accuracy falls when a head is cut."""
    return head_table(rows, variant, "before") - head_table(rows, variant, "after")


def shares(rows: Table, variant: str, threshold: float) -> Float[Tensor, "seeds layers"]:
    """The share of polysemantic heads."""
    return polysemantic(head_table(rows, variant), threshold).double().mean(-1)


def threshold(rows: Table) -> float:
    """Where the models without the auxiliary loss have the paper's mean share of polysemantic
    heads."""
    return threshold_for(head_table(rows, "maskgit"), paper_mean("maskgit"))


def sweep(rows: Table, variant: str) -> Float[Tensor, "seeds thresholds"]:
    """The share of polysemantic heads over all layers, at every threshold."""
    table = head_table(rows, variant)
    each = [polysemantic(table, t).double().mean((1, 2)) for t in THRESHOLDS]
    return torch.stack(each, 1)


def causal(rows: Table, variant: str) -> list[float]:
    """Whether the factors to which a head is sensitive are those that suffer when it is cut: the
    rank correlation over heads and factors, one number a seed."""
    sensitivities, effects = head_table(rows, variant), accuracy_drops(rows, variant)
    pairs = zip(sensitivities.unbind(1), effects.unbind(1), strict=True)
    return [_rank_correlation(a.flatten().tolist(), b.flatten().tolist()) for a, b in pairs]


class Pair(NamedTuple):
    """Two compositions, the number of factors in which they agree, and their levels."""

    first: str
    second: str
    shared: int
    levels: tuple[int, int]


def pairs_of(rows: Table, same: bool = False) -> list[Pair]:
    """Every pair of different compositions, or every composition with itself; those that agree in
    fewer factors first. NotMeasured where there is none."""
    pairs = {
        Pair(r["first"], r["second"], r["shared"], (r["first_level"], r["second_level"]))
        for r in rows.where(kind="overlap")
        if (r["first"] == r["second"]) == same
    }
    if not pairs:
        raise NotMeasured("no overlaps of circuits")
    return sorted(pairs, key=lambda p: (p.shared, p))


def papers(pairs: Sequence[Pair]) -> list[Pair]:
    """The paper's six: they differ in shape or colour, and all else has its first value."""
    return [p for p in pairs if not any(int(x) for code in p[:2] for x in code[2:])]


def circuit_size(rows: Table) -> float:
    """The share of units with which circuits of the models without the auxiliary loss overlap most
    nearly as the paper's, in its pairs."""
    shares, pairs = sorted(rows.where(kind="overlap").unique("share")), papers(pairs_of(rows))

    def off(share: float) -> float:
        return abs(float(overlap_table(rows, "maskgit", pairs, share).mean()) - OVERLAP)

    return min(shares, key=off)


def overlap_table(
    rows: Table,
    variant: str,
    pairs: Sequence[Pair],
    share: float | None = None,
    column: str = "jaccard",
) -> Float[Tensor, "seeds pairs"]:
    """How much the circuits of each pair overlap, of `circuit_size` if no share is given; NotMeasured
    where that was not measured."""
    share = circuit_size(rows) if share is None else share
    some = rows.where(kind="overlap", variant=variant, share=share)
    known = {(r["first"], r["second"], r["seed"]): r[column] for r in some}
    lines = [[known[p.first, p.second, s] for p in pairs] for s in paired_seeds(rows)]
    return torch.tensor(lines, dtype=torch.float64)


def by_shared(pairs: Sequence[Pair], values: Float[Tensor, "pairs"]) -> dict[int, float]:
    """The mean over the pairs that agree in as many factors, from few to many."""
    count = torch.tensor([p.shared for p in pairs])
    return {k: float(values[count == k].mean()) for k in sorted(set(count.tolist()))}


def least_rise(pairs: Sequence[Pair], overlap: Float[Tensor, "seeds pairs"]) -> list[float]:
    """For each seed, the smallest step of the mean overlap from one number of shared factors to the
    next: positive where overlap rises with every shared factor. NotMeasured with one group only."""
    groups = [list(by_shared(pairs, one).values()) for one in overlap]
    if len(groups[0]) < 2:
        raise NotMeasured("all pairs share as many factors")
    return [tidy(torch.tensor(g, dtype=torch.float64).diff().min()) for g in groups]


def agreement(rows: Table, variant: str, rest: str = "") -> list[float]:
    """The rank correlation over units between attribution and ablation, one number a seed."""
    some = [rows.where(kind="unit", variant=variant, seed=s) for s in paired_seeds(rows)]
    columns = [(u.column(f"attribution{rest}"), u.column(f"ablation{rest}")) for u in some]
    return [_rank_correlation(*pair) for pair in columns]


def _rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's; 0 where one of the two does not vary."""
    if len(set(a)) < 2 or len(set(b)) < 2:
        return 0.0
    return correlation(a, b)
