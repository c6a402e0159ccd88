"""What a claim would be called had one looked earlier."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recombine.config import UsageError
from recombine.studies.base import Claim, Judgement, Rows, judge
from recombine.studies.levels import late, over_seeds
from recombine.studies.stopping import courses, until

HEIGHTS = {0: 0.9, 10: 0.1, 20: 0.9, 40: 0.2, 80: 0.1}
"""Of level 2 over training: it comes and goes."""


def rows_of(variant: str, heights: dict[int, float]) -> Rows:
    said = {"kind": "accuracy", "level": 2, "variant": variant, "probe": "open-set"}
    return Rows(said | {"step": t, "seed": s, "joint": y} for s in range(3) for t, y in heights.items())


def look(rows: Rows) -> Judgement:
    mean = over_seeds(rows, "v", 2, late).mean
    return Judgement(mean >= 0.5 or ("partly" if mean >= 0.15 else False), {"mean": mean})


def claim(judging=look, trained: bool = True) -> Claim:
    return Claim("X1", "beyond the papers", "s", "e", judging, trained)


def earlier(one: Claim, rows: Rows, scale: str = "full", seeds: int = 3) -> list:
    return courses((one,), rows, scale, seeds)[0]


ROWS = rows_of("v", HEIGHTS)


def test_a_claim_is_judged_on_the_checkpoints_up_to_each_and_the_last_is_the_verdict():
    found = earlier(claim(), ROWS)
    assert found == [[10, "does not hold"], [20, "holds"], [40, "partly"], [80, "does not hold"]]
    assert found[-1][1] == judge(claim(), ROWS, "full", 3, {}).said


def test_checkpoints_of_models_that_a_claim_does_not_ask_are_left_out():
    both = Rows([*ROWS, *rows_of("w", {15: 1.0, 160: 1.0})])
    assert earlier(claim(), both) == earlier(claim(), ROWS)


def test_checkpoints_that_change_nothing_are_shown_all_the_same():
    flat = rows_of("v", {0: 0.0, 10: 0.0, 20: 0.0, 40: 0.0})
    assert earlier(claim(), flat) == [[step, "does not hold"] for step in (10, 20, 40)]


def test_a_course_begins_where_all_that_are_asked_have_learned_what_they_saw():
    def ahead(rows: Rows) -> Judgement:
        v, w = (over_seeds(rows, name, 2, late).mean for name in "vw")
        return Judgement(v > w, {"v": v, "w": w})

    seen = [r | {"level": 0} for r in rows_of("v", {0: 0.0, 10: 0.5, 20: 0.9, 40: 0.7, 80: 1.0})]
    never = [r | {"level": 0} for r in rows_of("w", {0: 0.0, 10: 0.1, 20: 0.1, 40: 0.1, 80: 0.1})]
    slow = [r | {"level": 0} for r in rows_of("u", {0: 0.0, 10: 0.1, 20: 0.1, 40: 0.1, 80: 1.0})]
    rows = Rows([*ROWS, *rows_of("w", dict.fromkeys(HEIGHTS, 0.15)), *rows_of("u", HEIGHTS), *seen, *never, *slow])
    assert [step for step, _ in earlier(claim(ahead), rows)] == [20, 40, 80]


def test_what_comes_from_no_checkpoint_has_no_course():
    known = Rows([*ROWS, {"kind": "ceiling", "joint": 0.7}])
    assert earlier(claim(lambda rows: Judgement(True, {"joint": rows.one(kind="ceiling")["joint"]})), known) == []


@pytest.location.parametrize(("scale", "seeds"), [("smoke", 3), ("laptop", 3), ("full", 2)])
def test_where_there_is_no_verdict_there_was_none_earlier(scale, seeds):
    assert earlier(claim(), ROWS, scale, seeds) == []


def test_what_has_no_step_is_known_at_all_times():
    probe = {"kind": "probe", "joint": 1.0}
    assert until(Rows([probe, *ROWS]), 10) == [probe, *(r for r in ROWS if r["step"] <= 10)]


NAMES = st.dictionaries(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 2), st.sampled_from(["x", "y"])))


@given(st.lists(NAMES), NAMES, NAMES)
def test_a_filter_finds_what_a_search_finds_also_when_it_is_asked_again(rows, first, then):
    rows = Rows(rows)
    for equal in (first, then, first | then, first):
        assert rows.where(**equal) == [r for r in rows if all(r.get(k) == v for k, v in equal.items())]


@given(st.lists(NAMES))
def test_groups_hold_every_row_once_in_its_order(rows):
    groups = Rows(rows).by("a")
    assert sorted(map(str, rows)) == sorted(str(r) for some in groups.values() for r in some)
    assert all(some == [r for r in rows if r.get("a") == value] for value, some in groups.items())


def test_rows_can_be_copied_and_sent():
    rows = Rows([{"a": 1}, {"a": 2}])
    rows.where(a=1)
    for made in (copy.copy(rows), copy.deepcopy(rows), pickle.loads(pickle.dumps(rows))):
        assert made == rows
        assert made.where(a=2) == [{"a": 2}]


def test_rows_do_not_change_and_are_flat():
    rows = Rows([{"a": 1}])
    for change in (lambda: rows.append({}), lambda: rows.pop(), lambda: rows.sort(), lambda: rows.__setitem__(0, {})):
        with pytest.raises(TypeError, match="make new ones"):
            change()
    with pytest.raises(UsageError, match="flat: 'a' must be a number or a text"):
        Rows([{"a": [1]}]).where(a=1)
