"""Streams are named, not numbered by history."""

import random

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine.rng import seeded

KEYS = st.lists(st.integers(-5, 5) | st.text(max_size=3), max_size=4)


def draw(*key) -> list[float]:
    return torch.rand(4, generator=seeded(*key)).tolist()


@settings(max_examples=50, deadline=None)
@given(KEYS, KEYS)
def test_streams_are_equal_exactly_when_their_names_are(a, b):
    assert (draw(*a) == draw(*b)) == (a == b)


def test_a_number_is_not_its_digits_and_names_do_not_run_together():
    names = [(1, 2), (12,), ("1", 2), ("12",), ("1", "2"), ("1,2",), (), ("",)]
    assert len({tuple(draw(*n)) for n in names}) == len(names)


def test_the_stream_of_a_name_never_changes():
    assert seeded(3, "noise", 7).initial_seed() == 4631836348191085183


def test_no_global_state_is_read_or_touched():
    torch.manual_seed(1)
    first = draw("a")
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert draw("a") == first
    assert torch.equal(torch.get_rng_state(), before[0])
    assert random.getstate() == before[1]
    assert np.random.get_state()[1].tolist() == before[2]  # noqa: NPY002
    torch.manual_seed(2)
    assert draw("a") == first
