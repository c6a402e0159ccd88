"""Rank correlation is scipy's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata, spearmanr, t

from recombine.evaluate.intervals import student
from recombine.evaluate.ranks import ranks, spearman

VALUE = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.just(math.inf))


@given(st.lists(st.tuples(VALUE, VALUE), min_size=2, max_size=30))
def test_it_is_scipys_with_ties_and_infinities(pairs):
    x, y = zip(*pairs, strict=True)
    assert (ranks(x) == rankdata(x)).all()
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert spearman(x, y) == pytest.approx(spearmanr(rankdata(x), rankdata(y)).statistic, abs=1e-12)
    else:
        assert math.isnan(spearman(x, y))


def test_students_interval_is_scipys():
    values = [0.2, 0.5, 0.9, 0.4]
    half = t.ppf(0.975, 3) * np.std(values, ddof=1) / 2
    assert student(values) == pytest.approx((0.5 - half, 0.5 + half), abs=1e-12)
