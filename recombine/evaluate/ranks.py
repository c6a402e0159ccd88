"""Spearman's rank correlation. A line of it would be `scipy.stats`, which takes longer to import than all of recombine."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float


def ranks(values: Sequence[float | int]) -> Float[np.ndarray, "n"]:
    """1 for the smallest; equal values share the mean of their ranks. Infinities are values like others."""
    _, which, counts = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[which]


def spearman(x: Sequence[float | int], y: Sequence[float | int]) -> float:
    """From -1 to 1; nan where one of the two does not vary."""
    a, b = (ranks(v) - (len(v) + 1) / 2 for v in (x, y))
    size = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / size if size else math.nan
