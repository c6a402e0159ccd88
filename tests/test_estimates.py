"""Estimates over seeds: intervals stay in bounds, cover as often as they say, pretend nothing."""

import dataclasses
import math
import re
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betaln, stdtrit
from scipy.stats import binom

from recombine.analysis.estimates import (
    Estimate,
    RateModel,
    correlation,
    correlation_estimate,
    mean,
    rate,
    rate_difference,
    rate_difference_of_differences,
    rate_intervals,
)
from recombine.metrics.intervals import wilson

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import coverage
import level_coverage
from prose_numbers import uncited

DOCS = Path(__file__).parents[1] / "docs" / "statistics.md"
LOWEST = "0.88"
"""Coverage of differences, as the docs say it."""
EDGES = st.sampled_from([0.0, 1.0, 0.5, 0.99, 0.01])
SHARE = st.one_of(EDGES, st.floats(0, 1))
SHARES = st.lists(SHARE, min_size=2, max_size=9)
MOST = settings(max_examples=40, deadline=None)


def ends(estimate: Estimate) -> tuple[float, float]:
    assert estimate.interval is not None
    return estimate.interval


def seeds_of(mu: float, nu: float, seeds: int, repeats: int, key: int = 0) -> np.ndarray:
    """Measured rates of beta-distributed seeds, 1,024 samples each."""
    rng = np.random.default_rng([key, seeds, int(1000 * mu), int(1000 * nu)])
    return rng.binomial(1024, rng.beta(mu * nu, (1 - mu) * nu, (repeats, seeds))) / 1024


# rates


@MOST
@given(SHARES)
def test_a_rate_lies_inside_its_interval_which_stays_in_bounds_and_has_a_width(values):
    found = rate(values)
    low, high = ends(found)
    assert 0 <= low <= found.value <= high <= 1
    assert high - low > 1e-3
    assert found.value == pytest.approx(np.mean(values))
    assert (found.n, found.values) == (len(values), tuple(values))


@MOST
@given(SHARES, st.randoms(use_true_random=False))
def test_the_order_of_seeds_does_not_matter(values, random):
    shuffled = random.sample(values, len(values))
    assert rate(shuffled).interval == rate(values).interval
    assert rate_difference(shuffled, values).interval == rate_difference(values, values).interval


@MOST
@given(SHARES)
def test_failures_mirror_successes(values):
    low, high = ends(rate(values))
    assert ends(rate([1 - x for x in values])) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@MOST
@given(SHARES)
def test_twice_the_same_seeds_narrow_the_interval(values):
    low, high = ends(rate(values))
    lower, higher = ends(rate(values * 2))
    assert higher - lower < high - low


@MOST
@given(SHARES, st.floats(-5, 5), st.floats(0.1, 10))
def test_other_bounds_only_rescale(values, least, size):
    low, high = ends(rate(values))
    scaled = rate([least + size * x for x in values], (least, least + size))
    assert ends(scaled) == pytest.approx((least + size * low, least + size * high), abs=1e-6 * size)


@MOST
@given(SHARES, st.integers(0, 8), st.floats(0, 1))
def test_a_better_seed_never_lowers_the_mean_and_a_small_change_stays_small(values, i, x):
    i %= len(values)
    near = [*values[:i], min(1, values[i] + 1e-6), *values[i + 1 :]]
    assert ends(rate(near)) == pytest.approx(ends(rate(values)), abs=1e-3)
    assert rate([*values[:i], max(values[i], x), *values[i + 1 :]]).value >= rate(values).value


@pytest.mark.parametrize("seeds", [3, 5, 9])
def test_seeds_all_at_one_still_leave_room_for_failures_and_less_so_with_more_seeds(seeds):
    low, high = ends(rate([1.0] * seeds))
    assert high == 1
    # were a seed to succeed with probability `low`, all would succeed quite often
    assert 0.05 < low**seeds < 0.5
    assert low < ends(rate([1.0] * (seeds + 1)))[0]


def test_the_docs_name_the_intervals_that_are_computed():
    rows = re.findall(r"^\| ([\d., ]+) \| (.* n = \d+) \|$", DOCS.read_text(), re.MULTILINE)
    assert len(rows) >= 7
    for values, said in rows:
        assert str(rate([float(x) for x in values.split(",")])) == said


def test_the_docs_name_how_many_perfect_seeds_support_a_bound():
    said = re.search(r"at least 0.75\D+(\d+).+0.90\D+(\d+).+0.95\D+(\d+)", DOCS.read_text())
    assert said
    for least, n in zip((0.75, 0.9, 0.95), map(int, said.groups()), strict=True):
        assert not rate([1] * (n - 1)).inside(least, 1)
        assert rate([1] * n).inside(least, 1)


def covered_all_or_nothing(seeds: int) -> np.ndarray:
    """How often the interval holds mu, for each mu: every seed is at exactly 0 or 1, so the number
    of seeds at 1 says all."""
    mu, ones = np.linspace(0.001, 0.999, 999), np.arange(seeds + 1)
    low, high = rate_intervals((np.arange(seeds) < ones[:, None]).astype(float)).T[:, :, None]
    return (binom.pmf(ones[:, None], seeds, mu) * ((low <= mu) & (mu <= high))).sum(axis=0)


def cells(text: str) -> set[str]:
    """The numbers in the tables of a page."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return set(re.findall(r"\d+\.\d+", " ".join(lines)))


def test_numbers_in_the_sentences_of_the_docs_are_computed_or_stand_in_a_table():
    perfect = [
        rate_intervals(np.ones((1, 5)), RateModel(**how))[0, 0]
        for how in ({"prior": 0.75}, {"least": 0.3}, {})
    ]
    rare = [covered_all_or_nothing(n) for n in (3, 5, 9)]
    averages = [c.mean() for c in rare]
    worst = min(c.min() for c in rare)
    computed = {f"{x:.2f}" for x in (*perfect, min(averages), max(averages), worst)}
    computed |= {f"{x:.2f}" for x in ends(mean([3, 3, 3]))} | {"3.00"}
    assert {"0.71", "0.89", "0.78", "0.90", "0.68", "2.28", "3.72"} <= computed
    chosen = {"0.05", "0.3", "0.5", "0.75", "0.80", "0.95", "2.5"}
    """Priors, bounds as examples, half units."""
    text = DOCS.read_text()
    assert uncited(text) <= computed | chosen | cells(text) | {LOWEST}


@pytest.mark.slow
def test_tables_of_coverage_in_the_docs_are_those_of_their_scripts(monkeypatch):
    """Of the first one the rows of 3 seeds, of differences the first row: they are simulated
    first."""
    said = DOCS.read_text().splitlines()
    monkeypatch.setattr(coverage, "SEEDS", (3,))
    monkeypatch.setattr(coverage, "METHODS", {"rate": coverage.hierarchical(RateModel())})
    found, width = coverage.measured(2000)
    lines = [*coverage.situations(found[0], width[0]), *level_coverage.table(250)]
    assert not [line for line in lines if line not in said], "python scripts/coverage.py 2000"
    *_, first = islice(coverage.differences(1000), 3)
    assert min(re.findall(r"(\d\.\d\d) \(", first)) == LOWEST


@pytest.mark.parametrize("seeds", [3, 5, 9])
@pytest.mark.parametrize(
    ("mu", "nu"), [(0.02, 30), (0.1, 3), (0.3, 3), (0.5, 30), (0.8, 0.3), (0.95, 3), (0.99, 300)]
)
def test_an_interval_of_a_rate_covers_in_90_to_99_of_100_experiments(mu, nu, seeds):
    low, high = rate_intervals(seeds_of(mu, nu, seeds, 600)).T
    covered = ((low <= mu) & (mu <= high)).mean()
    error = math.sqrt(0.9 * 0.1 / 600)
    assert 0.9 - 2 * error <= covered <= 0.99 + error


def test_many_intervals_at_once_are_those_of_one_at_a_time():
    values = seeds_of(0.7, 3, 4, 5)
    assert rate_intervals(values).tolist() == [pytest.approx(ends(rate(v))) for v in values]


@pytest.mark.parametrize("values", [[], [0.5, math.nan], [0.5, 1.2], [-0.1, 0.3], np.ones((2, 2))])
def test_what_is_no_rate_is_refused(values):
    with pytest.raises(ValueError, match=r"at least one value|is not between"):
        rate(values)


def test_a_rounding_error_beyond_a_bound_is_forgiven():
    assert rate([1 + 1e-12, 1]).value == 1


def test_one_seed_has_no_interval_and_is_neither_inside_nor_outside():
    for found in (rate([0.4]), mean([3]), correlation_estimate([0.4]), rate_difference([1], [0])):
        assert found.interval is None
        assert found.n == 1
        assert not found.inside()
        assert not found.outside(10, 11)
    assert str(rate([0.4])) == "0.40, n = 1"


def test_inside_and_outside_leave_a_middle():
    found = Estimate(0.5, 0.4, 0.6, 3, (0.4, 0.5, 0.6))
    assert found.inside(0.4, 0.6)
    assert found.inside(low=0.3)
    assert found.outside(high=0.3)
    assert found.outside(low=0.7)
    assert not found.inside(0.45, 1)
    assert not found.outside(0.45, 1)
    assert str(found) == "0.50 [0.40, 0.60], n = 3"


def test_a_rate_takes_less_than_a_few_milliseconds():
    rate([0.1, 0.2])
    took = []
    for _ in range(50):
        begin = time.perf_counter()
        rate([0.6, 0.7, 0.8, 0.7, 0.65])
        took.append(time.perf_counter() - begin)
    assert min(took) < 3e-3  # 0.3 ms on an idle core


# differences of rates


@MOST
@given(SHARES, SHARES)
def test_a_difference_lies_inside_its_interval_and_turns_its_sign(a, b):
    found = rate_difference(a, b)
    low, high = ends(found)
    assert -1 <= low <= found.value <= high <= 1
    assert high - low > 1e-3
    assert found.value == pytest.approx(np.mean(a) - np.mean(b))
    assert ends(rate_difference(b, a)) == pytest.approx((-high, -low), abs=1e-9)
    assert found.n == min(len(a), len(b))
    assert len(found.values) == (len(a) if len(a) == len(b) else 0)


@MOST
@given(SHARES, SHARES, SHARES)
def test_a_difference_of_differences_stays_within_two_and_is_wider_than_each(a, b, c):
    found = rate_difference_of_differences(a, b, b, c)
    low, high = ends(found)
    assert -2 <= low <= found.value <= high <= 2
    first = ends(rate_difference(a, b))
    assert high - low > 0.9 * (first[1] - first[0])
    assert found.value == pytest.approx(np.mean(a) - 2 * np.mean(b) + np.mean(c))


def test_a_difference_to_a_known_rate_is_almost_the_rate():
    low, high = ends(rate([0.6, 0.7, 0.8, 0.7, 0.65]))
    difference = rate_difference([0.6, 0.7, 0.8, 0.7, 0.65], [0.5] * 100)
    assert ends(difference) == pytest.approx((low - 0.5, high - 0.5), abs=0.01)


@pytest.mark.parametrize(
    ("mu_a", "mu_b", "nu"), [(0.95, 0.02, 3), (0.8, 0.3, 30), (0.5, 0.5, 3), (0.8, 0.3, 0.3)]
)
def test_an_interval_of_a_difference_covers(mu_a, mu_b, nu):
    a, b = seeds_of(mu_a, nu, 5, 300, key=1), seeds_of(mu_b, nu, 5, 300, key=2)
    found = [rate_difference(x, y) for x, y in zip(a, b, strict=True)]
    covered = np.mean([e.low <= mu_a - mu_b <= e.high for e in found])
    assert 0.9 - 2 * math.sqrt(0.9 * 0.1 / 300) <= covered <= 0.997


# means of other quantities


def test_a_mean_of_real_numbers_has_students_interval():
    low, high = ends(mean([0.1, 0.4, 0.7]))
    half = 4.302653 * 0.3 / 3**0.5
    assert (low, high) == pytest.approx((0.4 - half, 0.4 + half), abs=1e-6)


def test_equal_counts_keep_the_width_of_their_rounding():
    low, high = ends(mean([3, 3, 3]))
    assert (low, high) == pytest.approx((3 - 0.717, 3 + 0.717), abs=1e-3)
    assert ends(mean([3] * 5)) == pytest.approx((3 - 0.358, 3 + 0.358), abs=1e-3)
    assert ends(mean([0, 0, 0], low=0))[0] == 0
    assert ends(mean([7, 7, 7], high=7))[1] == 7


def test_equal_numbers_that_are_no_counts_say_nothing_of_their_spread():
    assert mean([0.1, 0.1, 0.1]).interval is None
    assert ends(mean([0.1, 0.1, 0.1], resolution=0.01)) == pytest.approx((0.093, 0.107), abs=1e-3)


@MOST
@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=9))
def test_a_mean_lies_inside_its_interval_whatever_the_bounds(values):
    found = mean(values, low=min(values), high=max(values), resolution=0.1)
    low, high = ends(found)
    assert min(values) <= low <= found.value <= high <= max(values)
    assert ends(mean(values[::-1], resolution=0.1)) == pytest.approx(
        ends(mean(values, resolution=0.1)), abs=1e-6
    )


def test_counts_that_differ_have_students_interval():
    half = 2.776445 * 0.5**0.5 / 5**0.5
    assert ends(mean([7, 7, 8, 7, 6])) == pytest.approx((7 - half, 7 + half), abs=1e-6)


@pytest.mark.parametrize("seeds", [3, 5, 9])
@pytest.mark.parametrize("share", [0.03, 0.1, 0.3, 0.5])
def test_an_interval_of_counts_covers_where_some_seeds_reach_one_more(share, seeds):
    counts = 3 + np.random.default_rng(seeds).binomial(1, share, (500, seeds))
    found = [mean(v) for v in counts]
    assert np.mean([e.low <= 3 + share <= e.high for e in found]) >= 0.92


@pytest.mark.parametrize("values", [[], [1, math.nan], [-1, 2]])
def test_what_is_no_number_within_the_bounds_is_refused(values):
    with pytest.raises(ValueError, match=r"at least one value|is not between"):
        mean(values, low=0)


# correlations

COORDINATE = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.just(math.inf))


@MOST
@given(st.lists(st.tuples(COORDINATE, COORDINATE), min_size=2, max_size=30))
def test_a_correlation_is_scipys(pairs):
    from scipy.stats import rankdata, spearmanr

    x, y = zip(*pairs, strict=True)
    if len(set(x)) > 1 and len(set(y)) > 1:
        said = spearmanr(rankdata(x), rankdata(y)).statistic
        assert correlation(x, y) == pytest.approx(said, abs=1e-12)
    else:
        assert math.isnan(correlation(x, y))


def test_points_of_different_number_have_no_correlation():
    with pytest.raises(ValueError, match="as many"):
        correlation([1, 2, 3], [1, 2])


@MOST
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=9))
def test_a_mean_correlation_lies_inside_its_interval_in_bounds_and_mirrors(values):
    found = correlation_estimate(values)
    low, high = ends(found)
    assert -1 <= low <= found.value <= high <= 1
    assert high > low
    mirrored = ends(correlation_estimate([-x for x in values]))
    assert mirrored == pytest.approx((-high, -low), abs=1e-9)


def test_perfect_correlations_of_few_points_are_less_sure_than_of_many():
    few, many = (correlation_estimate([1, 1, 1, 1, 1], points=n) for n in (8, 100))
    assert few.low < many.low < 1 == few.high == many.high


def test_an_interval_of_a_correlation_covers():
    z = np.random.default_rng(4).normal(np.arctanh(0.8), 0.3, (600, 5))
    found = [correlation_estimate(v) for v in np.tanh(z)]
    covered = np.mean([e.low <= 0.8 <= e.high for e in found])
    assert 0.9 <= covered <= 0.99


# proportions of samples


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@settings(max_examples=30, deadline=None)
def test_wilson_is_scipys(pair):
    from scipy.stats import binomtest

    said = binomtest(*pair).proportion_ci(method="wilson")
    assert wilson(*pair) == pytest.approx((said.low, said.high), abs=1e-12)


def test_wilson_of_nothing_says_nothing_and_the_ends_are_exact():
    assert wilson(0, 0) == (0, 1)
    assert wilson(0, 263)[0] == 0
    assert wilson(263, 263)[1] == 1
    assert wilson(np.int64(3), np.int64(7)) == wilson(3, 7)


def test_importing_is_light():
    code = (
        "import sys, recombine.analysis.estimates as e; e.rate([1, 0]);"
        "sys.exit(any(m in sys.modules for m in ('scipy', 'torch', 'polars')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# the model itself, written down once more


def posterior(values, model: RateModel) -> tuple[np.ndarray, np.ndarray]:
    """Edges of cells of the rate on the arcsine scale, and the mass of each: seeds have rates ~
    Beta(mu nu, (1 - mu) nu) and hit that share of `samples`."""
    edges = np.linspace(0, math.pi / 2, 256 + 1)
    angle = (edges[1:] + edges[:-1]) / 2
    nu = np.geomspace(model.least, model.most, 15)
    a, b = np.sin(angle)[:, None] ** 2 * nu, np.cos(angle)[:, None] ** 2 * nu

    def log_likelihood(successes: float) -> np.ndarray:
        return betaln(a + successes, b + model.samples - successes) - betaln(a, b)

    logs = np.zeros_like(a)
    for value in values:
        successes = value * model.samples
        below = min(math.floor(successes), model.samples - 1)
        part = successes - below
        logs += (1 - part) * log_likelihood(below) + part * log_likelihood(below + 1)
    mass = np.exp(logs - logs.max()).sum(1) * np.sin(2 * angle) ** (2 * model.prior - 1)
    return edges, mass / mass.sum()


@pytest.mark.parametrize("model", [RateModel(), RateModel(100, 0.3, 300.0, 0.75)])
@pytest.mark.parametrize(
    "values", [[0.0, 0.5], [1.0, 1.0, 1.0], [0.7, 0.7001, 0.31, 0.9], [0.02, 0.0], [0.5] * 9]
)
def test_an_interval_of_a_rate_is_that_of_the_model(values, model):
    edges, mass = posterior(values, model)
    low, high = np.interp((0.025, 0.975), np.concatenate([[0], mass.cumsum()]), edges)
    expected = min(np.sin(low) ** 2, np.mean(values)), max(np.sin(high) ** 2, np.mean(values))
    assert tuple(rate_intervals(np.array([values]), model)[0]) == pytest.approx(expected, abs=1e-7)


def test_the_model_is_as_documented():
    assert RateModel() == RateModel(samples=256, least=0.05, most=3000.0, prior=0.5)
    assert ends(rate([0.2, 0.4])) == tuple(rate_intervals(np.array([[0.2, 0.4]]), RateModel())[0])


@pytest.mark.parametrize(("a", "b"), [([0.9, 0.95, 0.8], [0.1, 0.3]), ([1, 1, 1], [0.98, 0.9, 1])])
def test_an_interval_of_a_difference_is_that_of_the_model(a, b):
    rng, drawn = np.random.default_rng(3), []
    for values in (a, b):
        edges, mass = posterior(values, RateModel())
        at = np.interp(
            rng.random(400_000), np.concatenate([[0], mass.cumsum()]), np.sin(edges) ** 2
        )
        drawn.append(at)
    expected = np.quantile(drawn[0] - drawn[1], (0.025, 0.975))
    assert ends(rate_difference(a, b)) == pytest.approx(tuple(expected), abs=4e-3)


def test_equal_contrasts_have_an_interval_that_mirrors():
    a, b = [0.2, 0.4, 0.3], [0.9, 0.7, 0.8]
    for found in (rate_difference(a, a), rate_difference_of_differences(a, b, a, b)):
        low, high = ends(found)
        assert found.value == 0
        assert low == pytest.approx(-high, abs=1e-9)
    seeds = rate_difference_of_differences(a, b, b, a)
    assert seeds.values == pytest.approx([2 * (x - y) for x, y in zip(a, b, strict=True)])
    assert seeds.n == 3
    assert rate_difference([0.2, 0.4], [0.5]).interval is None
    assert rate_difference([0.2, 0.4], [0.5, 0.1, 0.2]).values == ()


def test_bounds_are_forgiven_two_billionths_and_open_ones_nothing():
    assert rate([1 + 1.9e-9, 0.5]).values == (1.0, 0.5)
    assert rate([-1.9e-9, 0.5]).values == (0.0, 0.5)
    for beyond in (1 + 2.1e-9, -2.1e-9):
        with pytest.raises(ValueError, match="is not between 0 and 1"):
            rate([beyond, 0.5])
    assert mean([10 + 1.05e-8, 3], low=0, high=10).values == (10.0, 3.0)
    with pytest.raises(ValueError, match="is not between 0 and 10"):
        mean([10 + 1.2e-8, 3], low=0, high=10)
    with pytest.raises(ValueError, match="is not between 0 and inf"):
        mean([-1e-12, 3], low=0)
    assert mean([-1e9, 3]).values == (-1e9, 3.0)


@pytest.mark.parametrize(
    ("values", "points", "spread"),
    [
        ([0.5, 0.6, 0.7], None, None),
        ([0.5, 0.5, 0.5], None, 0.05),
        ([0.5, 0.5, 0.5], 12, 1 / 3),
        ([0.5, 0.5], 3, 1.0),
        ([0.5, 0.5], 5, 1 / 2**0.5),
        ([1.0, 1.0, 1.0], None, 0.05),
    ],
)
def test_a_correlation_has_students_interval_on_fishers_scale(values, points, spread):
    z = np.arctanh(0.995 * np.array(values))
    half = stdtrit(len(values) - 1, 0.975) * (spread or z.std(ddof=1)) / len(values) ** 0.5
    expected = np.tanh([z.mean() - half, z.mean() + half])
    found = correlation_estimate(values, points)
    assert found.low == pytest.approx(min(expected[0], found.value), abs=1e-9)
    assert found.high == pytest.approx(max(expected[1], found.value), abs=1e-9)


def test_two_points_have_a_correlation_and_one_has_none():
    assert correlation([1, 2], [3, 4]) == pytest.approx(1)
    assert correlation([1, 2], [4, 3]) == pytest.approx(-1)
    assert math.isnan(correlation([1], [2]))
    assert math.isnan(correlation([1, 2], [3, 3]))
    assert math.isnan(correlation([1, 1], [3, 4]))


def test_whole_numbers_are_counts_and_others_are_not():
    assert ends(mean([3.0, 3.0])) == pytest.approx((3 - half(2), 3 + half(2)))
    assert mean([3.5, 3.5]).interval is None
    assert ends(mean([3.5, 3.5], resolution=1)) == pytest.approx((3.5 - half(2), 3.5 + half(2)))
    assert mean([3.0], resolution=1).interval is None


def half(n: int) -> float:
    """Of the interval of n equal counts: the variance of a rounding error is a twelfth."""
    return float(stdtrit(n - 1, 0.975)) * (1 / 12 / n) ** 0.5


def test_an_estimate_and_its_model_do_not_change():
    for made, name in ((rate([0.4, 0.5]), "value"), (RateModel(), "prior")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, name, 0.0)


@pytest.mark.parametrize("beyond", [1.5, -0.5])
def test_a_difference_takes_rates_and_a_correlation_correlations(beyond):
    for refused in (lambda: rate_difference([beyond, 0.5], [0.5, 0.5]),
                    lambda: rate_difference([0.5, 0.5], [beyond, 0.5])):  # fmt: skip
        with pytest.raises(ValueError, match="is not between 0 and 1"):
            refused()
    with pytest.raises(ValueError, match="is not between -1 and 1"):
        correlation_estimate([3 * beyond, 0.5])
    with pytest.raises(ValueError, match="is not between -1 and 1"):
        correlation_estimate([1 + 3.1e-9, 0.5])
    assert correlation_estimate([1 + 2.9e-9, 0.5]).values == (1.0, 0.5)


@pytest.mark.parametrize("n", [2, 3, 7, 50, 301])
def test_a_correlation_never_leaves_its_bounds(n):
    x = np.random.default_rng(n).normal(size=n).tolist()
    assert 1 - 1e-12 <= correlation(x, x) <= 1
    assert -1 <= correlation(x, [-v for v in x]) <= -1 + 1e-12
