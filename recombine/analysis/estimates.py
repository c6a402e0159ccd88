"""From one number per seed to an estimate with its 95 % interval: rates, differences, means.

How the intervals were chosen and how often they cover: docs/statistics.md, scripts/coverage.py.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import SupportsFloat

import numpy as np

Number = float | int
Values = Sequence[SupportsFloat] | np.ndarray

TAILS = (0.025, 0.975)

CELLS, SPREADS = 256, 15  # of the grid of mu, equally wide on the arcsine scale, and of nu
EVEN_CELLS = 1000  # of mu, equally wide, where differences are taken
CORRELATION_SHRINK = 0.995  # a rank correlation of 1 has no Fisher z
CORRELATION_SPREAD = 0.05  # the least standard deviation over seeds on the z scale


@dataclass(frozen=True)
class RateModel:
    """Seeds have rates ~ Beta(mu nu, (1 - mu) nu), each seen in `samples` trials; mu is the rate
    to be estimated. Before the data mu ~ Beta(prior, prior), and log nu is uniform."""

    samples: int = 256  # at most this much counts for one seed, whatever it was measured on
    least: float = 0.05  # nu of seeds that succeed or fail altogether
    most: float = 3000.0  # nu of seeds that hardly differ
    prior: float = 0.5  # Jeffreys'; 1 would be uniform


MODEL = RateModel()


@dataclass(frozen=True)
class Estimate:
    """A mean over `n` seeds and its 95 % interval; `low` and `high` are nan where there is none."""

    value: float
    low: float
    high: float
    n: int
    values: tuple[float, ...]

    @property
    def interval(self) -> tuple[float, float] | None:
        """(low, high), or None where the seeds say nothing of their spread."""
        return None if math.isnan(self.low) else (self.low, self.high)

    def inside(self, low: Number = -math.inf, high: Number = math.inf) -> bool:
        """Whether the whole interval lies in [low, high]; False without an interval."""
        return self.low >= low and self.high <= high

    def outside(self, low: Number = -math.inf, high: Number = math.inf) -> bool:
        """Whether the whole interval lies outside [low, high]; False without an interval."""
        return self.high < low or self.low > high

    def __str__(self) -> str:
        """As in `1.00 [0.78, 1.00], n = 5`."""
        span = f" [{self.low:.2f}, {self.high:.2f}]" if self.interval else ""
        return f"{self.value:.2f}{span}, n = {self.n}"


def rate(values: Values, bounds: tuple[Number, Number] = (0, 1)) -> Estimate:
    """The mean over seeds of a rate between `bounds`, by `RateModel`. The interval stays within
    them and never has zero width; one seed has none."""
    numbers, (least, most) = _numbers(values, *bounds), bounds
    if len(numbers) < 2:
        return _estimate(numbers, math.nan, math.nan, bounds)
    shares = (np.sort(numbers) - least) / (most - least)
    low, high = rate_intervals(shares[None])[0] * (most - least) + least
    return _estimate(numbers, low, high, bounds)


def rate_difference(a: Values, b: Values) -> Estimate:
    """mean(a) - mean(b) of two rates in [0, 1]; the seeds of a and b are independent of each other.

    `values` are the differences seed by seed where both have as many, else empty."""
    return _rate_contrast(plus=[a], minus=[b])


def rate_difference_of_differences(a: Values, b: Values, c: Values, d: Values) -> Estimate:
    """(mean(a) - mean(b)) - (mean(c) - mean(d)) of four rates in [0, 1]: between -2 and 2."""
    return _rate_contrast(plus=[a, d], minus=[b, c])


def mean(
    values: Values,
    low: Number | None = None,
    high: Number | None = None,
    resolution: Number | None = None,
) -> Estimate:
    """The mean over seeds of what is no rate: Student's interval, clipped at natural bounds.

    `resolution` is the step between possible values (1 for whole numbers unless given): the
    variance over seeds counts as at least resolution^2 / 12, that of a rounding error. No interval
    for one value, nor for equal ones without a resolution: they say nothing of the spread."""
    bounds = (-math.inf if low is None else low, math.inf if high is None else high)
    numbers = _numbers(values, *bounds)
    if resolution is None:
        resolution = float((numbers == np.round(numbers)).all())
    n = len(numbers)
    spread = numbers.var(ddof=1) if n > 1 and np.ptp(numbers) else 0.0
    variance = max(float(spread), resolution**2 / 12)
    if n < 2 or variance == 0:
        return _estimate(numbers, math.nan, math.nan, bounds)
    half = _student(n - 1) * math.sqrt(variance / n)
    return _estimate(numbers, numbers.mean() - half, numbers.mean() + half, bounds)


def correlation(x: Values, y: Values) -> float:
    """Spearman's rank correlation; nan where one of the two does not vary."""
    from scipy.stats import rankdata  # slow to import: not before it is needed

    if len(x) != len(y):
        raise ValueError(f"a correlation needs as many x as y, not {len(x)} and {len(y)}")
    a, b = (rankdata(np.asarray(v, float)) for v in (x, y))
    if len(a) < 2 or not np.ptp(a) or not np.ptp(b):
        return math.nan
    return float(np.corrcoef(a, b)[0, 1])


def correlation_estimate(values: Values, points: int | None = None) -> Estimate:
    """The mean of one rank correlation per seed: Student's interval on Fisher's z scale.

    `points` is how many points each was taken over: the spread over seeds then counts as at
    least 1 / sqrt(points - 3), what the points alone would give; without it as 0.05."""
    numbers = _numbers(values, -1, 1)
    n = len(numbers)
    if n < 2:
        return _estimate(numbers, math.nan, math.nan, (-1, 1))
    z = np.arctanh(CORRELATION_SHRINK * numbers)
    least = 1 / math.sqrt(max(points - 3, 1)) if points else CORRELATION_SPREAD
    half = _student(n - 1) * max(float(z.std(ddof=1)), least) / math.sqrt(n)
    low, high = np.tanh((z.mean() - half, z.mean() + half))
    return _estimate(numbers, low, high, (-1, 1))


def rate_intervals(shares: np.ndarray, model: RateModel = MODEL) -> np.ndarray:
    """The (low, high) of many rates in [0, 1] at once: (rates, seeds) -> (rates, 2)."""
    edges = _grid(model)[2]
    ends = [np.interp(TAILS, cdf, edges) for cdf in _cumulative(_posteriors(shares, model))]
    low, high = (np.sin(ends) ** 2).T
    centre = shares.mean(axis=1)
    return np.stack([np.minimum(low, centre), np.maximum(high, centre)], axis=1)


def _numbers(values: Values, low: Number, high: Number) -> np.ndarray:
    """As an array; ValueError where there are none, or one is nan or outside [low, high]."""
    numbers = np.asarray(values, dtype=float)
    if numbers.ndim != 1 or not len(numbers):
        raise ValueError("an estimate needs at least one value, in a flat list")
    slack = 1e-9 * (1 + abs(high - low)) if math.isfinite(high - low) else 0.0
    wrong = numbers[~((numbers >= low - slack) & (numbers <= high + slack))]
    if len(wrong):
        raise ValueError(f"{wrong[0]} is not between {low} and {high}")
    return np.clip(numbers, low, high)


def _estimate(
    numbers: np.ndarray, low: float, high: float, bounds: tuple[Number, Number]
) -> Estimate:
    """Around the mean of the numbers, which its interval holds, within the bounds."""
    value = float(np.clip(math.fsum(numbers) / len(numbers), numbers.min(), numbers.max()))
    low, high = (float(np.clip(x, *bounds)) for x in (low, high))
    if not math.isnan(low):
        low, high = min(low, value), max(high, value)
    return Estimate(value, low, high, len(numbers), tuple(numbers.tolist()))


@lru_cache
def _student(freedom: int) -> float:
    """The 97.5 % quantile of Student's t."""
    from scipy.special import stdtrit  # half a second to import

    return float(stdtrit(freedom, TAILS[1]))


@lru_cache
def _grid(model: RateModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What does not depend on data: the log likelihood of each number of successes at each (mu, nu),
    the prior weights of the cells of mu, and the cells' edges on the arcsine scale."""
    edges = np.linspace(0, math.pi / 2, CELLS + 1)
    angle = (edges[1:] + edges[:-1]) / 2
    nu = np.geomspace(model.least, model.most, SPREADS)
    a = _log_rising(np.sin(angle)[:, None] ** 2 * nu, model.samples)
    b = _log_rising(np.cos(angle)[:, None] ** 2 * nu, model.samples)
    table = a + b[::-1] - _log_rising(nu, model.samples)[-1]
    prior = np.sin(2 * angle) ** (2 * model.prior - 1)  # Beta(prior, prior) on the arcsine scale
    return table.reshape(model.samples + 1, -1), prior, edges


def _log_rising(a: np.ndarray, most: int) -> np.ndarray:
    """log of a (a + 1) ... (a + k - 1) for k = 0 ... most, along a new first axis."""
    steps = np.log(a + np.arange(most).reshape(-1, *[1] * a.ndim))
    return np.concatenate([np.zeros((1, *a.shape)), steps.cumsum(axis=0)])


def _posteriors(shares: np.ndarray, model: RateModel = MODEL) -> np.ndarray:
    """The posterior of mu for each row of seeds: (rates, seeds) -> (rates, CELLS), sum 1."""
    table, prior, _ = _grid(model)
    counts = _counts(shares, model.samples)
    seen = counts.any(axis=0)
    logs = (counts[:, seen] @ table[seen]).reshape(len(shares), CELLS, SPREADS)
    mass = np.exp(logs - logs.max(axis=(1, 2), keepdims=True)).sum(axis=2) * prior
    return mass / mass.sum(axis=1, keepdims=True)


def _counts(shares: np.ndarray, samples: int) -> np.ndarray:
    """How many seeds of each row hit k of `samples`; between two k a seed counts for both in part,
    so that the log likelihood runs straight from one to the other."""
    successes = shares * samples
    below = np.minimum(np.floor(successes).astype(int), samples - 1)
    part = successes - below
    counts = np.zeros((len(shares), samples + 1))
    rows = np.arange(len(shares))[:, None]
    np.add.at(counts, (rows, below), 1 - part)
    np.add.at(counts, (rows, below + 1), part)
    return counts


def _cumulative(mass: np.ndarray) -> np.ndarray:
    """0 before the first cell, 1 after the last: one more than there are cells."""
    total = np.cumsum(mass, axis=-1)
    return np.concatenate([np.zeros_like(total[..., :1]), total / total[..., -1:]], axis=-1)


def _rate_contrast(plus: list[Values], minus: list[Values]) -> Estimate:
    """The sum of the means of some rates minus that of as many others, all independent."""
    signed = [(+1, _numbers(v, 0, 1)) for v in plus] + [(-1, _numbers(v, 0, 1)) for v in minus]
    masses = [_even_cells(v)[::sign] for sign, v in signed]
    mass = masses[0]
    for other in masses[1:]:
        mass = np.convolve(mass, other)
    edges = (np.arange(len(mass) + 1) + (len(masses) - 1) / 2) / EVEN_CELLS - len(minus)
    below, above = np.interp(TAILS, _cumulative(mass), edges)
    value = math.fsum(sign * math.fsum(v) / len(v) for sign, v in signed)
    sizes = {len(v) for _, v in signed}
    each = np.sum([sign * v for sign, v in signed], axis=0) if len(sizes) == 1 else np.zeros(0)
    low, high = min(float(below), value), max(float(above), value)
    if min(sizes) < 2:
        low = high = math.nan
    return Estimate(value, low, high, min(sizes), tuple(each.tolist()))


def _even_cells(values: np.ndarray) -> np.ndarray:
    """The posterior of one rate on EVEN_CELLS equally wide cells of [0, 1]."""
    cdf = _cumulative(_posteriors(np.sort(values)[None]))[0]
    even = np.linspace(0, 1, EVEN_CELLS + 1)
    return np.diff(np.interp(even, np.sin(_grid(MODEL)[2]) ** 2, cdf))
