"""Tables of docs/scenes.md: K_max by seed, what the detector counts on real pictures and on pictures
with faults, from the rows of `length`, and its counts beside counts by eye (docs/data/)."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path

from recombine.analysis.scenes import PAPER, checkpoints, criterion, reached
from recombine.analysis.table import Table
from recombine.metrics.counting import k_max
from recombine.plots.scene_pictures import in_order, title
from recombine.store import Row

ROOT = Path(__file__).parents[1]
COUNTED = ROOT / "docs/data/counts-by-eye.csv"
RANGES = ((0, 3), (4, 6), (7, 9), (10, 12))


def exact_table(rows: Table) -> list[list[str]]:
    """Exact counts by the number of objects: real pictures, and each fault."""
    kinds = {"real pictures": rows.where(kind="detector")}
    worn = rows.where(kind="worn")
    kinds |= {fault: worn.where(fault=fault) for fault in worn.unique("fault")}
    heads = ["pictures", *(f"{low} to {high} objects" for low, high in RANGES)]
    return [heads, *([name, *map(exact(some), RANGES)] for name, some in kinds.items())]


def k_max_table(rows: Table) -> list[list[str]]:
    """K_max of every experiment by seed: at the end, at half of the updates, and at the end at
    locations as near as in real scenes."""
    heads = ["experiment", "paper", "K_max by seed", "after half of the updates", "crowded"]
    return [heads, *([title(v), *k_max_cells(rows, v)] for v in in_order(rows))]


def k_max_cells(rows: Table, variant: str) -> list[str]:
    column, each = criterion(rows, variant), checkpoints(rows, variant)
    steps = sorted({step for _, step in each})
    early = steps[-2] if len(steps) > 1 else None
    half = {seed: k_max(some, column) for (seed, step), some in each.items() if step == early}
    near = rows.where(kind="crowded", variant=variant)
    crowded = reached(rows, variant, kind="crowded") if near else {}
    shown = (reached(rows, variant), half, crowded)
    return [str(PAPER.get(variant, "")), *(by_seed(values) for values in shown)]


def by_seed(values: dict[int, float]) -> str:
    return " ".join(f"{values[seed]:g}" for seed in sorted(values))


def exact(rows: Iterable[Row]) -> Callable[[tuple[int, int]], str]:
    """The share of pictures with so many objects that are counted exactly, and how many there
    were."""

    def cell(bounds: tuple[int, int]) -> str:
        some = [r for r in rows if bounds[0] <= r["objects"] <= bounds[1]]
        n = int(sum(r["n"] for r in some))
        exact = sum(round(r["n"] * r["exact_count"]) for r in some)
        return f"{exact / n:.3f} (n = {n:,})" if n else ""

    return cell


def by_eye_table() -> list[list[str]]:
    """How often the detector and the eye count the same, by experiment and by what the eye
    counts."""
    counts = read_counts()
    variants = sorted({c["variant"] for c in counts})
    groups = {title(v): [c for c in counts if c["variant"] == v] for v in variants}
    for low, high in RANGES:
        some = [c for c in counts if low <= int(c["by_eye"]) <= high]
        groups[f"{low} to {high} objects by eye"] = some
    groups["all"] = counts
    heads = ["pictures", "n", "equal", "apart by one at most", "mean of detector - eye"]
    return [heads, *([name, *agreement(some)] for name, some in groups.items() if some)]


def read_counts() -> list[dict[str, str]]:
    with COUNTED.open(newline="") as file:
        return list(csv.DictReader(file))


def agreement(counts: Iterable[dict[str, str]]) -> list[str]:
    apart = [int(c["by_detector"]) - int(c["by_eye"]) for c in counts]
    n = len(apart)
    shares = (sum(abs(d) <= most for d in apart) / n for most in (0, 1))
    return [str(n), *(f"{share:.2f}" for share in shares), f"{sum(apart) / n:+.2f}"]
