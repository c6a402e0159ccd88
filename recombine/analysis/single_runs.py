"""What single runs say where seeds differ more than variants do."""

from itertools import product
from statistics import fmean

from recombine.analysis.claims import Measured
from recombine.analysis.levels import per_seed
from recombine.analysis.paper_probe import PAPER
from recombine.analysis.table import Table


def by_seed(rows: Table, *variants: str) -> Measured:
    """Late means of level 2, one for each seed; by the oracle too where it read. Which seeds these are
    where they are not 0, 1, 2 and so on."""
    shown: Measured = {}
    for probe, words in ((PAPER, ""), ("oracle", ", oracle")):
        for v in variants if rows.where(kind="accuracy", probe=probe) else ():
            each = per_seed(rows, v, 2, probe=probe)
            seeds = sorted(each)
            shown[f"{v}, by seed{words}"] = " ".join(f"{each[seed]:.2f}" for seed in seeds)
            if not words and seeds != list(range(len(seeds))):
                shown[f"{v}, seeds run"] = " ".join(map(str, seeds))
    return shown


def passing_share(
    rows: Table, least: str, others: tuple[str, ...], most: float, lead: float
) -> float:
    """How often one run of each variant, taken at random, shows that one of them fails and all others
    do not: `least` has at most `most` at level 2, each other at least `lead` more."""
    low, *more = (
        list(per_seed(rows, variant, 2, probe=PAPER).values()) for variant in (least, *others)
    )
    draws = product(low, *more)
    return fmean(a <= most and all(b - a >= lead for b in rest) for a, *rest in draws)
