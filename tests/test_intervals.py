"""Intervals: known numbers, symmetries, and no randomness of their own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recombine.metrics.intervals import TRUST, wilson


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.27753),
        (10, 10, 0.72247, 1.0),
        (5, 10, 0.23659, 0.76341),
        (1, 10, 0.01788, 0.40415),
        (81, 263, 0.25529, 0.36621),
    ],
)
def test_wilson_gives_the_published_numbers(successes, n, low, high):
    assert wilson(successes, n) == pytest.approx((low, high), abs=2e-5)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_stays_in_range_and_mirrors(pair):
    successes, n = pair
    low, high = wilson(successes, n)
    assert 0 <= low <= successes / n + 1e-12
    assert successes / n - 1e-12 <= high <= 1
    assert wilson(n - successes, n) == pytest.approx((1 - high, 1 - low))
    wider = wilson(successes, n, z=3.0)
    assert wider[0] - 1e-12 <= low <= high <= wider[1] + 1e-12


def test_nothing_seen_says_nothing():
    assert wilson(0, 0) == (0.0, 1.0)


def test_a_probe_is_believed_from_the_share_that_the_pages_name():
    assert TRUST == 0.95
