"""How sure a proportion of independent samples is. (Over seeds: `analysis.estimates`.)"""

import math
from typing import SupportsInt

Z95 = 1.959963984540054
TRUST = 0.95
"""The accuracy on real pictures of every composition that a probe needs to be believed."""


def wilson(successes: SupportsInt, n: SupportsInt, z: float = Z95) -> tuple[float, float]:
    """Wilson's interval of a proportion, `successes` of `n` independent samples; (0, 1) for n = 0."""
    successes, n = int(successes), int(n)
    return wilson_of_share(successes / n, float(n), z) if n else (0.0, 1.0)


def wilson_of_share(p: float, n: float, z: float = Z95) -> tuple[float, float]:
    """The same of a share that is known as well as one of `n` samples, which need not be whole."""
    slack = z * z / n
    centre, half = p + slack / 2, z * math.sqrt(p * (1 - p) / n + slack / (4 * n))
    low = 0.0 if p == 0 else (centre - half) / (1 + slack)
    return low, 1.0 if p == 1 else (centre + half) / (1 + slack)
