"""Intervals: known numbers, symmetries, and no randomness of their own."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from recombine.evaluate.intervals import student, wilson
from recombine.rng import seeded


@pytest.mark.parametrize(
    ("recall", "n", "low", "high"),
    [
        (0, 10, 0.0, 0.27753),
        (10, 10, 0.72247, 1.0),
        (5, 10, 0.23659, 0.76341),
        (1, 10, 0.01788, 0.40415),
        (81, 263, 0.25529, 0.36621),
    ],
)
def test_wilson_gives_the_published_numbers(recall, n, low, high):
    assert wilson(recall, n) == pytest.approx((low, high), abs=2e-5)


@given(st.integers(1, 2000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_the_share_stays_in_range_and_mirrors(pair):
    recall, n = pair
    low, high = wilson(recall, n)
    assert 0 <= low <= recall / n + 1e-12
    assert recall / n - 1e-12 <= high <= 1
    assert wilson(n - recall, n) == pytest.approx((1 - high, 1 - low))
    wider = wilson(recall, n, z=3.0)
    assert wider[0] - 1e-12 <= low <= high <= wider[1] + 1e-12


def test_nothing_seen_says_nothing():
    assert wilson(0, 0) == (0.0, 1.0)


def test_students_interval_of_three_seeds_is_the_textbooks():
    low, high = student([0.1, 0.4, 0.7])
    assert ((low + high) / 2, (high - low) / 2) == pytest.approx((0.4, 4.302653 * 0.3 / 3**0.5), abs=1e-6)


def test_one_seed_has_no_interval():
    assert student([0.3]) is None


def test_students_interval_moves_and_stretches_with_its_values():
    low, high = student([0.1, 0.4, 0.5])
    assert student([1.2, 1.8, 2.0]) == pytest.approx((1 + 2 * low, 1 + 2 * high))
    assert student([0.3, 0.3, 0.3]) == pytest.approx((0.3, 0.3))


def test_students_interval_covers_the_mean_as_often_as_it_says():
    draws = torch.randn(2000, 3, generator=seeded("cover")).tolist()
    covered = sum(low <= 0 <= high for low, high in map(student, draws)) / len(draws)
    assert covered == pytest.approx(0.95, abs=0.02)
