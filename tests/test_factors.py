import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine.worlds.factors import Condition, Factor, FactorSpace, Split, at_most_one_new, code


def space_of(*sizes: int) -> FactorSpace:
    return FactorSpace(
        tuple(Factor(f"f{k}", tuple(f"v{i}" for i in range(n))) for k, n in enumerate(sizes))
    )


few = settings(max_examples=40, deadline=None)
sizes = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@st.composite
def seen_in(draw):
    """Sizes of a space, and some compositions of it."""
    n = draw(sizes)
    every = list(itertools.product(*map(range, n)))
    return n, draw(st.lists(st.sampled_from(every), min_size=1, max_size=6, unique=True))


def space_and_split(drawn) -> tuple[FactorSpace, Split]:
    return space_of(*drawn[0]), Split(tuple(drawn[1]))


def test_three_binary_factors_give_the_papers_split():
    space = space_of(2, 2, 2)
    levels = at_most_one_new(space).levels(space)
    assert {level: [code(c) for c in found] for level, found in levels.items()} == {
        0: ["000", "001", "010", "100"],
        1: ["011", "101", "110"],
        2: ["111"],
    }


def test_shapes3d_gives_the_papers_counts():
    space = space_of(3, 10, 8)
    levels = at_most_one_new(space, old=(2, 6, 6)).levels(space)
    assert {level: len(found) for level, found in levels.items()} == {0: 180, 1: 52, 2: 8}


@given(st.integers(1, 6))
def test_any_number_of_binary_factors(k):
    space = space_of(*[2] * k)
    split = at_most_one_new(space)
    assert len(split.seen) == k + 1
    assert all(split.level(c) == max(0, sum(c) - 1) for c in space.compositions)


@few
@given(seen_in())
def test_level_is_the_least_hamming_distance_to_a_seen_composition(drawn):
    space, split = space_and_split(drawn)
    seen = torch.tensor(split.seen)
    for level, found in split.levels(space).items():
        for composition in found:
            assert (
                level
                == (seen != torch.tensor(composition)).sum(1).min().item()
                == split.level(composition)
            )


@few
@given(seen_in())
def test_levels_part_the_space_and_level_zero_is_what_was_seen(drawn):
    space, split = space_and_split(drawn)
    levels = split.levels(space)
    assert sorted(c for found in levels.values() for c in found) == sorted(space.compositions)
    assert set(levels[0]) == set(split.seen)
    assert list(levels) == sorted(levels)


@few
@given(seen_in())
def test_one_changed_factor_moves_the_level_by_at_most_one(drawn):
    space, split = space_and_split(drawn)
    for one in space.compositions[:20]:
        for two in space.compositions[:20]:
            assert abs(split.level(one) - split.level(two)) <= sum(
                a != b for a, b in zip(one, two, strict=True)
            )


@given(sizes)
def test_codes_name_compositions_one_to_one(n):
    space = space_of(*n)
    assert len({code(c) for c in space.compositions}) == len(space.compositions)


def test_codes_stay_apart_beyond_ten_values():
    assert code((1, 11)) == "1.11"
    assert code((11, 1)) == "11.1"


@pytest.mark.parametrize("seen", [(), ((0, 1), (0, 1, 1))])
def test_a_split_needs_compositions_of_one_length(seen):
    with pytest.raises(ValueError, match="seen composition"):
        Split(seen)


def test_a_level_of_the_wrong_length_is_an_error():
    with pytest.raises(ValueError, match=r"shorter|longer"):
        at_most_one_new(space_of(2, 2)).level((0, 1, 1))


def test_a_factor_needs_a_value():
    with pytest.raises(ValueError, match="at least one value"):
        FactorSpace((Factor("empty", ()),))


def test_conditions_drop_factors_without_touching_the_rest():
    index = torch.tensor([[0, 1], [1, 0]])
    full = Condition(index, torch.rand(2, 3), torch.ones(2, 2, dtype=torch.bool))
    kept = full.keep(torch.tensor([[True, False], [True, True]]))
    assert kept.present.tolist() == [[True, False], [True, True]]
    assert torch.equal(kept.index, index)
    assert not full.null().present.any()
    assert full.rows(slice(1, 2)).index.tolist() == [[1, 0]]


def test_a_factor_may_not_be_called_what_rows_use_for_other_things():
    with pytest.raises(
        ValueError, match=r"^a factor cannot be called 'seed'; reserved are composition, "
    ):
        FactorSpace((Factor("shape", ("a",)), Factor("seed", ("1",))))


def test_twenty_values_are_named_and_the_others_counted():
    values = tuple(map(str, range(21)))
    assert Factor("a", values[:20]).words == "/".join(values[:20])
    assert Factor("a", values).words == "/".join(values[:20]) + "/... (21 values)"
    many = tuple(map(str, range(1000)))
    assert Factor("a", many).words.endswith("/... (1,000 values)")


def test_a_composition_of_a_space_has_a_value_of_each_factor():
    space = FactorSpace((Factor("a", ("x", "y")), Factor("b", ("z",))))
    assert [space.has(c) for c in ((0, 0), (1, 0), (2, 0), (0, 1), (-1, 0), (0,), (0, 0, 0))] == [
        True, True, False, False, False, False, False,
    ]  # fmt: skip
    assert (space.count, space.sizes, space.dims) == (2, (2, 1), (0, 0))
    assert repr(space) == "FactorSpace(a x/y, b z)"
    assert repr(Split(((0, 0), (10, 1)))) == "Split(seen: 00 10.1)"
    with pytest.raises(ValueError, match="zip"):
        space.describe((0,))


def test_codes_have_dots_from_ten_on():
    assert [code(c) for c in ((9, 0), (10, 0), ())] == ["90", "10.0", ""]


def test_conditions_are_zeroed_where_a_factor_is_masked():
    index, value = torch.tensor([[1, 2]]), torch.tensor([[5.0, 6.0, 7.0]])
    given = Condition(index, value, torch.ones(1, 2, dtype=torch.bool))
    made = given.zeroed(torch.tensor([[True, False]]), (1, 2))
    assert (made.index.tolist(), made.value.tolist()) == ([[1, 0]], [[5.0, 0.0, 0.0]])
    assert made.present.all()
    assert not given.null().present.any()
    assert given.rows(slice(0)).index.shape == (0, 2)
