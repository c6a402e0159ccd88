"""A table of what was read of each variant of a study, seed by seed, as CSV: late means by the
paper's probe (the mean over its seeds), and of level 2 by the oracle too. For runs that results/ does
not hold. `python scripts/levels_table.py out/optimizers "level 2 in small models" > docs/data/x.csv`"""

import csv
import sys
from pathlib import Path
from statistics import fmean

from recombine.analysis.estimates import rate
from recombine.analysis.levels import per_seed
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.table import Table, read_rows_of
from recombine.plots.accuracy_panels import variants_of
from recombine.plots.style import display


def lines(rows: Table, corner: str) -> list[list[str]]:
    read = with_paper_probe(rows)
    variants = variants_of(read)
    levels = {v: [per_seed(read, v, k, probe=PAPER) for k in (0, 1, 2)] for v in variants}
    seeds = sorted(set().union(*(level[2] for level in levels.values())))
    heads = ["seen", "level 1", *(f"seed {s}" for s in seeds), "mean [95 % interval]", "oracle"]
    named = without_ending(variants)
    return [[corner, *heads], *(line(read, v, named[v], levels[v], seeds) for v in variants)]


def without_ending(variants: list[str]) -> dict[str, str]:
    """Names as tables show them, less what stands after the first comma where it is the same."""
    endings = {v.partition(", ")[2] for v in variants}
    return {v: display(v if len(endings) > 1 else v.partition(", ")[0]) for v in variants}


def line(
    rows: Table, variant: str, name: str, levels: list[dict[int, float]], seeds: list[int]
) -> list[str]:
    first = [f"{fmean(level.values()):.2f}" for level in levels[:2]]
    second = levels[2]
    each = [f"{second[seed]:.2f}" if seed in second else "" for seed in seeds]
    found = rate(list(second.values()))
    mean = f"{found.value:.2f}" + (
        f" [{found.low:.2f}, {found.high:.2f}]" if found.interval else ""
    )
    oracle = fmean(per_seed(rows, variant, 2, probe="oracle").values())
    return [name, *first, *each, mean, f"{oracle:.2f}"]


if __name__ == "__main__":
    study = Path(sys.argv[1])
    csv.writer(sys.stdout, lineterminator="\n").writerows(lines(read_rows_of(study), sys.argv[2]))
