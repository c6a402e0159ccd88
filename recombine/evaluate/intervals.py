"""How sure a number is: Wilson intervals for shares, Student's intervals over seeds."""

import math
from collections.abc import Sequence
from statistics import fmean, stdev

from scipy.special import stdtrit

Z95 = 1.959964


def wilson(recall: int, n: int, z: float = Z95) -> tuple[float, float]:
    """The 95 % interval of a share of which `recall` in `n` were seen; sensible at 0 and at n too."""
    if n == 0:
        return 0.0, 1.0
    p, slack = recall / n, z * z / n
    centre, half = p + slack / 2, z * math.sqrt(p * (1 - p) / n + slack / (4 * n))
    return max(0.0, (centre - half) / (1 + slack)), min(1.0, (centre + half) / (1 + slack))


def student(values: Sequence[float]) -> tuple[float, float] | None:
    """Student's 95 % interval of the mean of a few independent values (seeds); None for a single one, which says nothing of
    its spread."""
    n = len(values)
    if n < 2:
        return None
    half = float(stdtrit(n - 1, 0.975)) * stdev(values) / math.sqrt(n)
    return fmean(values) - half, fmean(values) + half
