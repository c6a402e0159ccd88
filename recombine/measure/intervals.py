"""How sure a number is: Wilson intervals for shares, bootstrap intervals over seeds."""

import math
from collections.abc import Sequence

import torch

from recombine.rng import seeded

Z95 = 1.959964


def wilson(hits: int, n: int, z: float = Z95) -> tuple[float, float]:
    """The 95 % interval of a share of which `hits` in `n` were seen; sensible at 0 and at n too."""
    if n == 0:
        return 0.0, 1.0
    p, slack = hits / n, z * z / n
    centre, half = p + slack / 2, z * math.sqrt(p * (1 - p) / n + slack / (4 * n))
    return max(0.0, (centre - half) / (1 + slack)), min(1.0, (centre + half) / (1 + slack))


def bootstrap(values: Sequence[float], draws: int = 10_000) -> tuple[float, float]:
    """The 95 % interval of the mean of a few independent values (seeds), by resampling them."""
    x = torch.tensor(values, dtype=torch.float64)
    pick = torch.randint(len(x), (draws, len(x)), generator=seeded("bootstrap", len(x), draws))
    low, high = torch.quantile(x[pick].mean(1), torch.tensor([0.025, 0.975], dtype=torch.float64))
    return float(low), float(high)
