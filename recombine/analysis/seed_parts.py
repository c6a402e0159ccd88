"""What the claim of `seed-parts` measures: which share of the variance of level 2 over the cells of a
square is explained by each part of a seed. The best checkpoint by the paper's probe, the mean over its
seeds."""

import numpy as np

from recombine.analysis.calibrated import SEEN
from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.estimates import mean, rate
from recombine.analysis.levels import best, curve
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.table import NotMeasured, Table

PARTS = ("start", "data", "codes")
NAMES = {"start": "start of the network", "data": "data", "codes": "tokenizer"}
Cells = list[tuple[dict[str, int], float]]
"""Of one square: the number of each part, and what was measured."""


def squares(rows: Table, level: int = 2) -> dict[int, Cells]:
    """By the number of the square; the best checkpoint of each cell. Squares that lack cells are left
    out: their parts mix."""
    some = with_paper_probe(rows).where(kind="accuracy")
    made: dict[int, Cells] = {}
    for seed, square in sorted(some.by("seed").items()):
        for variant, cell in square.by("variant").items():
            numbers = {part: cell.column(part)[0] for part in PARTS}
            value = best(curve(square, variant, seed, level, probe=PAPER))
            made.setdefault(seed, []).append((numbers, value))
    cells = max(map(len, made.values()), default=0)
    whole = {number: square for number, square in made.items() if len(square) == cells}
    side = 1 + max((cell["start"] for square in whole.values() for cell, _ in square), default=-1)
    if not whole or cells != side**2:
        raise NotMeasured("no square is whole")
    return whole


def shares(cells: Cells) -> dict[str, float]:
    """Which share of the variance over the cells each part explains; parts that are balanced
    against each other do not share any. NotMeasured where all cells are alike."""
    values = np.array([value for _, value in cells])
    total = values.var()
    if total == 0:
        raise NotMeasured("all cells of a square are the same")
    explained = {}
    for part in PARTS:
        numbers = np.array([each[part] for each, _ in cells])
        means = means_of(values, numbers)
        explained[part] = float(means.var() / total)
    return explained


def means_of(values: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """For each value the mean over all that share its number."""
    return np.array([values[numbers == number].mean() for number in numbers])


KNOWN = (
    "written when two networks on three tokenizers were known: one learned level 2 on each of them",
)


@claim("B45", deviations=KNOWN)
def start_decides(rows: Table) -> Finding:
    """Which weights a network starts from decides whether it learns level 2, more than its data and its
    tokenizer.

    Expected: of the variance of level 2 over a square, at its best within 2,000 updates, the share
    that the start explains >= 0.4, and at least 0.15 more than data and than the tokenizer; seen >=
    0.7; paper's linear probe (mean over its seeds)"""
    every = squares(rows)
    each = [shares(cells) for cells in every.values()]
    by_part = {part: [one[part] for one in each] for part in PARTS}
    leads = {
        other: [a - b for a, b in zip(by_part["start"], by_part[other], strict=True)]
        for other in PARTS[1:]
    }
    seen = [float(np.mean([v for _, v in cells])) for cells in squares(rows, 0).values()]
    parts = (
        Part("share of variance, start", mean(by_part["start"], 0, 1), 0.4, 1.0),
        *(
            Part(f"share of variance, start - {NAMES[o]}", mean(lead, -1, 1), 0.15, 1.0)
            for o, lead in leads.items()
        ),
        Part("seen", rate(seen), SEEN, 1.0, needed=True),
    )
    shown: Measured = {f"share, {NAMES[part]}": float(np.mean(v)) for part, v in by_part.items()}
    return Finding(parts, shown)
