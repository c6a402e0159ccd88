"""One verdict rule: regions, seeds, parts; and it never says more than the rows do."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recombine.analysis.claims import (
    ENOUGH,
    ENOUGH_LONG,
    LONG,
    VERDICTS,
    Assessment,
    Check,
    Claim,
    Finding,
    Part,
    assess,
    combine,
)
from recombine.analysis.claims import claim as declared
from recombine.analysis.estimates import Estimate
from recombine.analysis.table import NotMeasured, Table
from recombine.studies import NAMES, find
from recombine.studies.catalogue import PATH, build


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
    assert assess(claim(part), ROWS, "full").verdict == verdict


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
    assessed = assess(claim(part), ROWS, "full", minutes)
    assert assessed.verdict == verdict
    assert (f"{n} seeds" in assessed.note) == (verdict == "inconclusive")


def test_nothing_is_contradicted_in_a_set_up_that_is_not_the_papers():
    part = Part("level 2", estimate(0.0, 0.1), 0.75, 1.0)
    assert assess(claim(part), ROWS, "full").verdict == "contradicted"
    assert assess(claim(part, faithful=False), ROWS, "full").verdict == "inconclusive"


def test_a_single_seed_has_no_interval_and_decides_nothing():
    alone = Estimate(0.9, math.nan, math.nan, 1, (0.9,))
    assert (
        assess(claim(Part("x", alone, 0.0, 1.0), trained=False), ROWS, "full").verdict
        == "inconclusive"
    )


def test_exact_checks_need_no_seeds():
    assert (
        assess(claim(Check("identity", True), trained=False), ROWS, "laptop").verdict == "supported"
    )
    assert (
        assess(claim(Check("identity", False), trained=False), ROWS, "laptop").verdict
        == "contradicted"
    )


def test_scales():
    part = Part("x", estimate(0.9, 1.0), 0.75, 1.0)
    verdicts = [assess(claim(part), ROWS, scale).verdict for scale in ("smoke", "laptop", "full")]
    assert verdicts == ["smoke", "inconclusive", "supported"]


def test_rows_that_do_not_bear_on_it():
    def measure(rows):
        raise NotMeasured("no rows of dit")

    assessed = assess(claim(measure=measure), ROWS, "full")
    assert (assessed.verdict, assessed.note) == ("not measured", "no rows of dit")
    assert assessed.json("s", "full", 3, {})["measured"] == {}


def test_an_error_of_the_code_is_not_taken_for_missing_rows():
    def measure(rows):
        return {}["mistyped"]

    with pytest.raises(KeyError, match="mistyped") as error:
        assess(claim(measure=measure), ROWS, "full")
    assert "X1" in error.value.__notes__[0]


EACH = st.sampled_from(("supported", "inconclusive", "contradicted"))


def combined(own: list, needed: list = ()) -> str:
    """The verdict of a claim with parts of these verdicts, and others that it needs."""
    number = estimate(0.0, 1.0)
    parts = [Part("own", number) for _ in own] + [Part("x", number, needed=True) for _ in needed]
    return combine(tuple(parts), (*own, *needed))


@given(st.lists(EACH, max_size=3), st.lists(EACH, max_size=3))
def test_what_is_needed_speaks_against_a_claim_and_never_for_it(own, needed):
    held = bool(own) and set(needed) <= {"supported"}
    assert combined(own, needed) == (combined(own) if held else "inconclusive")


@given(st.lists(EACH, min_size=1, max_size=5))
def test_a_claim_is_supported_only_if_all_its_parts_are(parts):
    verdict = combined(parts)
    assert verdict in VERDICTS
    assert (verdict == "supported") == all(p == "supported" for p in parts)
    assert (verdict == "partly supported") == ("supported" in parts and set(parts) != {"supported"})
    if "supported" not in parts:
        assert (verdict == "contradicted") == ("contradicted" in parts)


def test_the_json_is_the_contracts():
    part = Part("givt - maskgit", estimate(0.62, 0.78), 0.5, 1.0)
    finding = Finding((part, Check("c", True)), {"givt": 0.71, "bad": math.inf})
    made = assess(claim(measure=lambda rows: finding, deviations=("d",)), ROWS, "full")
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


def test_the_contracts_numbers_of_seeds():
    assert (ENOUGH, ENOUGH_LONG, LONG) == (5, 3, 5.0)


def test_parts_and_claims_say_what_they_are():
    one = Part("level 2", estimate(0.25, 0.75, 3), 0.5)
    assert repr(one) == "Part(level 2: 0.50 [0.25, 0.75], n = 3, expected >= 0.5)"
    assert repr(Part("x", estimate(0.0, 1.0), 0.5, 2.0)).endswith("expected >= 0.5 and <= 2)")
    assert repr(Part("x", estimate(0.0, 1.0), high=2.0)).endswith("expected <= 2)")
    assert repr(Part("x", estimate(0.0, 1.0))).endswith("expected anything)")
    assert repr(claim(one)) == "Claim(X1: s Expected: e)"


def test_a_region_without_a_bound_is_open_there():
    far = estimate(-1e9, 1e9)
    assert Part("x", far).verdict(5, True) == "supported"
    assert Part("x", far).json("supported")["expected"] == [None, None]
    assert Part("x", far, 0.5).json("supported")["expected"] == [0.5, None]
    above = Part("x", estimate(0.8, 0.9), 0.0, 0.75)
    assert above.verdict(5, True) == "contradicted"
    assert above.verdict(5, False) == "inconclusive"
    assert above.verdict(6, True) == "inconclusive"
    alone = Part("x", Estimate(0.9, math.nan, math.nan, 1, (0.9,)))
    assert alone.json("inconclusive")["interval"] is None


def test_a_check_says_whether_it_holds():
    assert Check("c", False).verdict(0, False) == "inconclusive"
    assert Check("c", False).verdict(0, True) == "contradicted"
    made = {"name": "c", "holds": True, "verdict": "supported"}
    assert Check("c", True).json("supported") == made


def test_a_docstring_becomes_a_claim():
    @declared("B9", faithful=False)
    def measure(rows):
        """It rises.   Expected: above
        0.5."""
        return Finding(())

    assert (measure.id, measure.paper) == ("B9", "beyond the papers")
    assert (measure.statement, measure.expected) == ("It rises.", "above 0.5.")
    assert (measure.trained, measure.faithful, measure.deviations) == (True, False, ())
    assert not declared("B9", trained=False)(measure.measure).trained

    def silent(rows):
        """It rises."""

    with pytest.raises(ValueError, match="claim B9: its docstring says no"):
        declared("B9")(silent)


def test_a_claim_is_trained_and_faithful_only_if_it_says_so():
    plain = Claim("X1", "A", "s", "e", lambda rows: Finding(()))
    assert (plain.trained, plain.faithful) == (False, True)
    assert assess(plain, ROWS, "laptop").verdict == "inconclusive", "no parts say nothing"


def test_the_first_number_is_the_headline_and_a_check_is_none():
    finding = Finding(
        (Check("c", True), Part("a", estimate(0.1, 0.3)), Part("b", estimate(0.0, 1.0)))
    )
    plain = assess(claim(measure=lambda rows: finding), ROWS, "full").json("s", "full", 5, {})
    assert (plain["estimate"], plain["interval"]) == (pytest.approx(0.2), [0.1, 0.3])
    only = assess(claim(Check("c", True)), ROWS, "full").json("s", "full", 5, {})
    assert (only["estimate"], only["interval"], only["n"]) == (None, None, None)


def test_notes_say_what_is_missing_or_differs():
    few = assess(claim(Part("x", estimate(0.9, 1.0, 3), 0.75), faithful=False), ROWS, "full")
    assert few.note == "3 seeds; a verdict needs 5"
    one = claim(Part("x", estimate(0.9, 1.0, 1), 0.75), Part("y", estimate(0.9, 1.0), 0.75))
    assert assess(one, ROWS, "full").note == "1 seed for some parts; a verdict on these needs 5"
    alone = claim(Part("x", estimate(0.9, 1.0, 1), 0.75))
    assert assess(alone, ROWS, "full").note == "1 seed; a verdict needs 5"
    enough = assess(claim(Part("x", estimate(0.9, 1.0), 0.75), faithful=False), ROWS, "full")
    assert enough.note == "the set-up is not the paper's in all that may decide"
    outside = claim(
        Part("x", estimate(0.9, 1.0), 0.75), Part("y", estimate(0.2, 0.3), 0.75), faithful=False
    )
    assert (
        assess(outside, ROWS, "full").note == f"y: outside the expected region, but {enough.note}"
    )
    exact = claim(Part("x", estimate(0.9, 1.0, 2), 0.75), trained=False)
    assert assess(exact, ROWS, "full").note == ""
    assert assess(claim(Check("c", True)), ROWS, "full").note == ""
    assert assess(claim(Check("c", True)), ROWS, "laptop").note == "a verdict needs full scale"


def test_rows_that_do_not_bear_on_it_are_smoke_at_smoke_scale():
    def measure(rows):
        raise NotMeasured("no rows", "of dit")

    assessed = assess(claim(measure=measure), ROWS, "smoke")
    assert (assessed.verdict, assessed.note) == ("smoke", "no rows of dit")
    assert assessed.json("s", "smoke", 1, {})["parts"] == []


def test_what_was_assessed_does_not_change():
    part, check = Part("x", estimate(0.9, 1.0), 0.75), Check("c", True)
    whole = claim(part, check)
    for made in (part, check, Finding((part,)), whole, assess(whole, ROWS, "full")):
        name = dataclasses.fields(made)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, name, None)


def test_a_verdict_for_every_part_or_none_at_all():
    parts = (Check("c", True),)
    odd = Assessment(claim(), "supported", Finding(parts), ())
    with pytest.raises(ValueError, match="shorter"):
        odd.json("s", "full", 5, {})
    with pytest.raises(ValueError, match="shorter"):
        combine(parts, ())


UNTRAINED = {"S10a", "B36", "B37", "B38", "B39", "B44"}
"""Of studies that also train: what is measured on pictures, or of an exact model, alone."""


@pytest.mark.parametrize("name", NAMES)
def test_claims_on_trained_models_say_so_and_no_others(name):
    """These alone need five seeds; a study that trains says how many minutes a run takes. UNTRAINED
    are measured without its models."""
    study = find(name)
    trained = {claim.trained for claim in study.claims if claim.id not in UNTRAINED}
    assert trained <= {study.run_minutes > 0}


def test_a_catalogue_has_every_study_and_every_claim_once(monkeypatch):
    assert build() == PATH.read_text()

    def renamed(name):
        return dataclasses.replace(find(name), name="another") if name == "labels" else find(name)

    monkeypatch.setattr("recombine.studies.find", renamed)
    with pytest.raises(ValueError, match=r"^study 'labels' of NAMES calls itself 'another'$"):
        build()
    twice = find("labels").claims

    def doubled(name):
        return dataclasses.replace(find(name), claims=twice) if name == "repair" else find(name)

    monkeypatch.setattr("recombine.studies.find", doubled)
    with pytest.raises(ValueError, match=rf"^claim id {twice[0].id} is used twice$"):
        build()
