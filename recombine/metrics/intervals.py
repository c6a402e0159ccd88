"""How sure a proportion of independent samples is. (Over seeds: `analysis.estimates`.)"""

import math
from typing import SupportsInt

Z95 = 1.959963984540054
TRUST = 0.95
"""The accuracy on real pictures of every composition that a probe needs to be believed."""


def wilson(hits: SupportsInt, n: SupportsInt, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval of a proportion, `hits` of `n` independent samples; (0, 1) for n = 0."""
    hits, n = int(hits), int(n)
    if n == 0:
        return 0.0, 1.0
    p, slack = hits / n, z * z / n
    centre, half = p + slack / 2, z * math.sqrt(p * (1 - p) / n + slack / (4 * n))
    low = 0.0 if hits == 0 else (centre - half) / (1 + slack)
    return low, 1.0 if hits == n else (centre + half) / (1 + slack)
