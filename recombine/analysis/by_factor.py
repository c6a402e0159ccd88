"""Which factor of an unseen combination is wrong: each read by itself, whatever the others are."""

from statistics import fmean

from recombine.analysis.claims import Measured
from recombine.analysis.levels import level_name, per_seed
from recombine.analysis.paper_probe import FACTORS, PAPER
from recombine.analysis.table import Table


def by_factor(rows: Table, *variants: str, level: int = 2) -> Measured:
    """Late means by the paper's probe, the mean over seeds. Nothing where it read no factors."""
    return {
        f"{v}, {level_name(level)}, {name}": fmean(factor_of(rows, v, column, level))
        for v in variants
        for column, name in FACTORS.items()
        if column in rows.frame.columns
    }


def factor_of(rows: Table, variant: str, column: str, level: int = 2) -> list[float]:
    """The late mean of one factor, for each seed."""
    return list(per_seed(rows, variant, level, probe=PAPER, column=column).values())
