"""How often the 95 % interval of a level in `recombine evaluate` holds the true mean over its
compositions, by simulation.

Prints the table of docs/statistics.md: `python scripts/level_coverage.py [repeats]`, half a minute
on one core with 1,000 repeats. A level has some compositions, each with a rate of its own and a
number of pictures of its own. Rates: all equal, spread (Beta with nu = 2), or all-or-nothing. A
cell: coverage over MU, lowest to highest (mean width at mu 0.5), bold where it is far too low.
"""

import sys
from collections.abc import Iterator

import numpy as np

from recombine.scoring.score import level_estimate

MU = (0.02, 0.1, 0.3, 0.5, 0.8, 0.95, 0.99)
COUNTS = {
    "1 composition, 32": (32,),
    "3 compositions, 32 each": (32,) * 3,
    "3, of 4, 20 and 90": (4, 20, 90),
    "15, of 8 to 64": tuple(range(8, 68, 4)),
    "15, of 1 to 3": (1, 2, 3) * 5,
    "mean over 5, 2 without pictures": (32, 32, 32, 0, 0),
}
POOR = 0.8
SPREADS = {"equal": None, "spread": 2.0, "all or nothing": 0.05}


def rates(
    rng: np.random.Generator, mu: float, nu: float | None, shape: tuple[int, int]
) -> np.ndarray:
    """True rates of the compositions of a level, in many repeats."""
    return np.full(shape, mu) if nu is None else rng.beta(mu * nu, (1 - mu) * nu, size=shape)


def covered(
    rng: np.random.Generator, counts: tuple[int, ...], mu: float, nu: float | None, repeats: int
) -> tuple[float, float]:
    """(how often the mean of the true rates lies in the interval, mean width)."""
    true = rates(rng, mu, nu, (repeats, len(counts)))
    successes = rng.binomial(counts, true)
    found, width = 0, 0.0
    for h, p in zip(successes, true, strict=True):
        rows = [{"joint": k / max(n, 1), "n": n} for k, n in zip(h.tolist(), counts, strict=True)]
        e = level_estimate(rows)
        found += e["low"] <= p.mean() <= e["high"]
        width += e["high"] - e["low"]
    return found / repeats, width / repeats


def table(repeats: int) -> Iterator[str]:
    rng = np.random.default_rng(2028)
    yield f"| pictures | {' | '.join(SPREADS)} |"
    yield "|---|" + "---|" * len(SPREADS)
    for name, counts in COUNTS.items():
        cells = []
        for nu in SPREADS.values():
            found = {mu: covered(rng, counts, mu, nu, repeats) for mu in MU}
            low, *_, high = sorted(share for share, _ in found.values())
            least = f"**{low:.2f}**" if low < POOR else f"{low:.2f}"
            cells.append(f"{least} to {high:.2f} ({found[0.5][1]:.2f})")
        yield f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(*table(repeats), sep="\n", flush=True)
