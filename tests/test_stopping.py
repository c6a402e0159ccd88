"""What a claim would be called had one looked earlier."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recombine.studies.base import Claim, Judgement, Rows, judge
from recombine.studies.levels import late, over_seeds
from recombine.studies.stopping import earlier, until

HEIGHTS = {0: 0.9, 10: 0.1, 20: 0.9, 40: 0.2, 80: 0.1}
"""Of level 2 over training: it comes and goes."""


def rows_of(variant: str, heights: dict[int, float]) -> Rows:
    said = {"kind": "accuracy", "level": 2, "variant": variant, "probe": "wary"}
    return Rows(said | {"step": t, "seed": s, "joint": y} for s in range(3) for t, y in heights.items())


def look(rows: Rows) -> Judgement:
    mean = over_seeds(rows, "v", 2, late).mean
    return Judgement(mean >= 0.5 or ("partly" if mean >= 0.15 else False), {"mean": mean})


def claim(judging=look, trained: bool = True) -> Claim:
    return Claim("X1", "beyond the papers", "s", "e", judging, trained)


ROWS = rows_of("v", HEIGHTS)


def test_a_claim_is_judged_on_the_checkpoints_up_to_each_and_the_last_is_the_verdict():
    found = earlier(claim(), ROWS, "full", 3)
    assert found == [[10, "does not hold"], [20, "holds"], [40, "partly"], [80, "does not hold"]]
    assert found[-1][1] == judge(claim(), ROWS, "full", 3, {}).said


def test_checkpoints_of_models_that_a_claim_does_not_ask_are_left_out():
    both = Rows([*ROWS, *rows_of("w", {15: 1.0, 160: 1.0})])
    assert earlier(claim(), both, "full", 3) == earlier(claim(), ROWS, "full", 3)


def test_what_comes_from_no_checkpoint_has_no_course():
    known = Rows([*ROWS, {"kind": "ceiling", "joint": 0.7}])
    assert (
        earlier(claim(lambda rows: Judgement(True, {"joint": rows.one(kind="ceiling")["joint"]})), known, "full", 3)
        == []
    )


@pytest.mark.parametrize(("scale", "seeds"), [("smoke", 3), ("laptop", 3), ("full", 2)])
def test_where_there_is_no_verdict_there_was_none_earlier(scale, seeds):
    assert earlier(claim(), ROWS, scale, seeds) == []


def test_what_has_no_step_is_known_at_all_times():
    probe = {"kind": "probe", "joint": 1.0}
    assert until(Rows([probe, *ROWS]), 10) == [probe, *(r for r in ROWS if r["step"] <= 10)]


NAMES = st.dictionaries(st.sampled_from("abc"), st.one_of(st.none(), st.integers(0, 2), st.sampled_from(["x", "y"])))


@given(st.lists(NAMES), st.lists(NAMES), NAMES)
def test_a_filter_finds_what_a_search_finds_before_and_after_rows_are_added(first, more, equal):
    rows = Rows(first)
    for some in ([], more):
        rows += some
        assert rows.where(**equal) == [r for r in rows if all(r.get(k) == v for k, v in equal.items())]


def test_what_a_filter_gave_is_the_askers_own():
    rows = Rows([{"a": 1}])
    rows.where(a=1).append({"a": 2})
    assert rows.where(a=1) == [{"a": 1}]
