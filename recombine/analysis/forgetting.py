"""What the claim of `forgetting` measures: level 2 early and late, and how much it differs from one
checkpoint to the next, by the paper's probe, the mean over its seeds, and by the oracle. Known when
the regions were written: the runs of `label-dropout` with all labels, in which DiT falls by 0.10 on
average (by the oracle not at all) and differs by 0.07 between checkpoints; nothing of any other
variant."""

from statistics import fmean

from recombine.analysis.calibrated import SEEN
from recombine.analysis.claims import Finding, Measured, Part, claim
from recombine.analysis.estimates import rate_difference
from recombine.analysis.levels import (
    early,
    fluctuation,
    gain_of,
    has_learned,
    late_mean,
    per_seed,
    same_seeds,
)
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.table import Table

BASE, AVERAGED = "dit", "dit, averaged"
DEVIATIONS = (
    "8,000 updates (the paper's curves: 28,000 to 55,000), but for the variant called longer",
    "DiT by flow matching, Heun with 25 steps (the paper: DDPM, 500 ancestral steps)",
)


@claim("G20", "beyond A", deviations=DEVIATIONS)
def averaging_keeps_level_two(rows: Table) -> Finding:
    """With weights averaged over updates DiT ends with a higher level 2 than without.

    Expected: level 2 with averaged weights - without >= 0.1; its mean difference from one checkpoint
    to the next, over the second half, at least 0.02 smaller; seen >= 0.7 for both; late means,
    paper's linear probe (mean over its seeds)"""
    rows = with_paper_probe(rows)
    both = [per_seed(rows, name, 2, fluctuation, PAPER) for name in (BASE, AVERAGED)]
    same_seeds(*both)
    less = rate_difference(*(list(each.values()) for each in both))
    parts = (
        gain_of(rows, AVERAGED, BASE, 0.1, probe=PAPER),
        Part("difference between checkpoints, without - with averaging", less, 0.02, 1.0),
        *(has_learned(rows, name, SEEN, PAPER) for name in (BASE, AVERAGED)),
    )
    return Finding(parts, late_and_best(rows))


def late_and_best(rows: Table) -> Measured:
    """Of every variant, by both probes."""
    found: Measured = {"primary probe": "paper's linear probe, mean over its seeds"}
    summaries = {"early": early, "late": late_mean, "between checkpoints": fluctuation}
    for variant in rows.where(kind="accuracy").unique("variant"):
        for probe, ending in ((PAPER, ""), ("oracle", ", oracle")):
            for name, summary in summaries.items():
                values = per_seed(rows, variant, 2, summary, probe).values()
                found[f"{variant}, {name}{ending}"] = fmean(values)
    return found
