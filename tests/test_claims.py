"""One verdict rule: regions, seeds, parts; and it never says more than the rows do."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recombine.analysis.claims import (
    ENOUGH,
    ENOUGH_LONG,
    LONG,
    VERDICTS,
    Check,
    Claim,
    Finding,
    Part,
    combine,
    judge,
)
from recombine.analysis.estimates import Estimate
from recombine.analysis.table import Table


def estimate(low: float, high: float, n: int = 5) -> Estimate:
    return Estimate((low + high) / 2, low, high, n, ((low + high) / 2,) * n)


def claim(*parts: Part | Check, **changes) -> Claim:
    given = {"id": "X1", "paper": "A", "statement": "s", "expected": "e", "trained": True}
    return Claim(**given | {"measure": lambda rows: Finding(parts)} | changes)


ROWS = Table([{"kind": "x", "step": 0}])


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        ((0.8, 0.9), "supported"),
        ((0.75, 1.0), "supported"),
        ((0.7, 0.9), "inconclusive"),
        ((0.1, 0.76), "inconclusive"),
        ((0.1, 0.74), "contradicted"),
    ],
)
def test_the_interval_decides(interval, verdict):
    part = Part("level 2", estimate(*interval), 0.75, 1.0)
    assert judge(claim(part), ROWS, "full").verdict == verdict


@pytest.mark.parametrize(
    ("n", "minutes", "verdict"),
    [
        (ENOUGH, 0.0, "supported"),
        (ENOUGH - 1, 0.0, "inconclusive"),
        (ENOUGH_LONG, LONG + 1, "supported"),
        (ENOUGH_LONG - 1, LONG + 1, "inconclusive"),
        (ENOUGH_LONG, LONG, "inconclusive"),
    ],
)
def test_enough_seeds_are_needed_and_fewer_where_a_run_is_long(n, minutes, verdict):
    part = Part("level 2", estimate(0.9, 1.0, n), 0.75, 1.0)
    judged = judge(claim(part), ROWS, "full", minutes)
    assert judged.verdict == verdict
    assert (f"{n} seeds" in judged.note) == (verdict == "inconclusive")


def test_nothing_is_contradicted_in_a_set_up_that_is_not_the_papers():
    part = Part("level 2", estimate(0.0, 0.1), 0.75, 1.0)
    assert judge(claim(part), ROWS, "full").verdict == "contradicted"
    assert judge(claim(part, faithful=False), ROWS, "full").verdict == "inconclusive"


def test_a_single_seed_has_no_interval_and_decides_nothing():
    alone = Estimate(0.9, math.nan, math.nan, 1, (0.9,))
    assert (
        judge(claim(Part("x", alone, 0.0, 1.0), trained=False), ROWS, "full").verdict
        == "inconclusive"
    )


def test_exact_checks_need_no_seeds():
    assert (
        judge(claim(Check("identity", True), trained=False), ROWS, "laptop").verdict == "supported"
    )
    assert (
        judge(claim(Check("identity", False), trained=False), ROWS, "laptop").verdict
        == "contradicted"
    )


def test_scales():
    part = Part("x", estimate(0.9, 1.0), 0.75, 1.0)
    verdicts = [judge(claim(part), ROWS, scale).verdict for scale in ("smoke", "laptop", "full")]
    assert verdicts == ["smoke", "inconclusive", "supported"]


def test_rows_that_do_not_bear_on_it():
    def measure(rows):
        raise LookupError("no rows of dit")

    judged = judge(claim(measure=measure), ROWS, "full")
    assert (judged.verdict, judged.note) == ("not measured", "no rows of dit")
    assert judged.json("s", "full", 3, {})["measured"] == {}


EACH = st.sampled_from(("supported", "inconclusive", "contradicted"))


@given(st.lists(EACH, min_size=1, max_size=5))
def test_a_claim_is_supported_only_if_all_its_parts_are(parts):
    verdict = combine(tuple(parts))
    assert verdict in VERDICTS
    assert (verdict == "supported") == all(p == "supported" for p in parts)
    assert (verdict == "partly supported") == ("supported" in parts and set(parts) != {"supported"})
    if "supported" not in parts:
        assert (verdict == "contradicted") == ("contradicted" in parts)


def test_the_json_is_the_contracts():
    part = Part("givt - maskgit", estimate(0.62, 0.78), 0.5, 1.0)
    finding = Finding((part, Check("c", True)), {"givt": 0.71, "bad": math.inf})
    made = judge(claim(measure=lambda rows: finding, deviations=("d",)), ROWS, "full")
    plain = made.json("objectives", "full", 5, {"commit": "abc"})
    assert plain["interval"] == [0.62, 0.78]
    assert (plain["estimate"], plain["n"]) == (pytest.approx(0.7), 5)
    assert plain["measured"] == {"givt": 0.71, "bad": None}
    assert plain["parts"][0]["expected"] == [0.5, 1.0]
    assert [p["verdict"] for p in plain["parts"]] == ["supported", "supported"]
    needed = {
        "id",
        "study",
        "paper",
        "statement",
        "expected",
        "verdict",
        "scale",
        "seeds",
        "provenance",
        "deviations",
    }
    assert needed <= plain.keys()
