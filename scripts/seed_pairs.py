"""Do two variants with the same seed end alike? `python scripts/seed_pairs.py`: over all pairs of
variants of a shipped study, the correlation over seeds of their late level-1 or level-2 accuracy.
docs/statistics.md cites it: where seeds are unrelated, differences need not be paired by seed."""

import sys
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np

from recombine.analysis.levels import per_seed
from recombine.analysis.table import read_table

ROOT = Path(__file__).parents[1]
LEVELS = (1, 2)
FEWEST = 3


def pairs(results: Path) -> list[np.ndarray]:
    """(2, seeds): what two variants of a study reach with the same seeds; neither is constant."""
    found = []
    for path in sorted(results.glob("*/rows.parquet")):
        rows = read_table(path)
        if not {"level", "variant", "seed", "joint"} <= set(rows.frame.columns):
            continue
        for level in LEVELS:
            if not len(scored := rows.where(kind="accuracy", level=level).frame):
                continue
            names = scored["variant"].unique(maintain_order=True)
            values = {name: per_seed(rows, name, level) for name in names}
            for a, b in combinations(values.values(), 2):
                both = np.array([(a[s], b[s]) for s in sorted(a.keys() & b.keys())]).T
                if both.size >= 2 * FEWEST and both.std(axis=1).min() > 0:
                    found.append(both)
    return found


def correlations(found: list[np.ndarray]) -> tuple[float, float]:
    """The mean of the pairs' correlations; one over all values, each less its variant's mean."""
    each = [np.corrcoef(both)[0, 1] for both in found]
    centred = np.concatenate([both - both.mean(axis=1, keepdims=True) for both in found], axis=1)
    return float(np.mean(each)), float(np.corrcoef(centred)[0, 1])


@cache
def measured(results: Path) -> dict[str, float]:
    """How many pairs there are, and the two correlations."""
    found = pairs(results)
    average, pooled = correlations(found)
    return {"pairs": len(found), "average": average, "pooled": pooled}


if __name__ == "__main__":
    print(measured(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "results"))
