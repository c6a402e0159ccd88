"""From rows to one number per level, and from numbers to the word of a verdict. All rows are made by hand."""

import pytest

from recombine.evaluate.intervals import student
from recombine.studies.base import SCALES, Claim, Judgement, Rows, judge
from recombine.studies.composition import judge_level2, judge_varied
from recombine.studies.levels import Found, best, curve, gain, late, over_seeds, probe_of, seeds_of, summary
from recombine.studies.where import WHERE, judge_place
from recombine.studies.which import OWN, UNSEEN, WORLDS, judge_each


def row(step: int, level: int, joint: float, seed: int = 0, variant: str = "v", probe: str = "open-set", **more) -> dict:
    said = {"kind": "accuracy", "step": step, "level": level, "joint": joint, "seed": seed, "variant": variant}
    return said | {"probe": probe} | more


ROWS = Rows(
    [
        row(10, 1, 0.4),
        row(0, 1, 0.0),
        row(0, 1, 0.2),
        row(10, 1, 0.6),
        row(10, 2, 1.0),
        row(0, 1, 0.9, seed=1),
        row(0, 1, 0.9, variant="w"),
        row(0, 1, 0.9, probe="cnn"),
        {"kind": "train", "step": 10, "loss": 0.1, "variant": "v", "seed": 0},
        {"kind": "probe", "level": 1, "joint": 1.0, "probe": "oracle"},
    ]
)


def test_a_curve_is_the_mean_over_a_levels_compositions_in_order_of_steps():
    assert curve(ROWS, "v", 0, 1) == [(0, pytest.approx(0.1)), (10, pytest.approx(0.5))]
    assert curve(ROWS, "v", 0, 2) == [(10, 1.0)]
    assert curve(ROWS, "v", 1, 1) == [(0, 0.9)]
    assert curve(ROWS, "v", 0, 1, probe="cnn") == [(0, 0.9)]
    assert curve(ROWS, "v", 7, 1) == []
    assert curve(Rows([row(0, 0, 0.1, shape=0.7)]), "v", 0, 0, column="shape") == [(0, 0.7)]


def test_late_is_the_mean_of_the_last_quarter_and_best_the_maximum():
    points = [(i, float(i % 7)) for i in range(8)]
    assert late(points) == (6 + 0) / 2
    assert best(points) == 6
    assert late([(0, 0.3)]) == late([(0, 9.0), (1, 9.0), (2, 0.3)]) == 0.3


def test_the_wary_probe_judges_where_there_is_one():
    assert probe_of(ROWS) == "open-set"
    assert probe_of(Rows([row(0, 0, 1, probe="linear"), row(0, 0, 1, probe="cnn")])) == "cnn"


def test_each_seed_counts_once_whatever_its_number_of_rows():
    rows = Rows([row(0, 2, 0.0, 0), row(0, 2, 1.0, 1), row(0, 2, 0.5, 2), row(0, 2, 0.5, 2)])
    found = over_seeds(rows, "v", 2, late)
    assert seeds_of(rows, "v") == [0, 1, 2]
    assert found.values == [0.0, 1.0, 0.5]
    assert found.mean == 0.5
    assert found.interval[0] <= 0.5 <= found.interval[1]
    with pytest.raises(LookupError):
        over_seeds(rows, "v", 1, late)


def test_rows_are_filtered_by_equality_and_one_means_one():
    assert len(ROWS.where(kind="accuracy", seed=1)) == 1
    assert ROWS.where(kind="probe").column("joint") == [1.0]
    assert ROWS.one(kind="train")["loss"] == 0.1
    with pytest.raises(LookupError, match=r"^5 rows match"):
        ROWS.one(kind="accuracy", variant="v", level=1, probe="open-set")
    assert isinstance(ROWS.where(seed=0), Rows)


def word(holds, scale: str, seeds: int, trained: bool) -> str:
    def look(rows):
        if holds is None:
            raise LookupError("no rows")
        return Judgement(holds, {"x": 1.0}, (0.0, 2.0))

    return judge(Claim("X1", "P", "s", "e", look, trained), Rows(), scale, seeds, {}).word


@pytest.location.parametrize(
    ("holds", "says"), [(True, "reproduced"), (False, "not reproduced"), ("partly", "partly"), (None, "not measured")]
)
def test_the_word_of_a_verdict(holds, says):
    for trained in (True, False):
        assert word(holds, "full", 3, trained) == says
        assert word(holds, "smoke", 3, trained) == "smoke"
        assert word(holds, "full", 2, trained) == ("not measured" if trained else says)
        assert word(holds, "laptop", 5, trained) == ("not measured" if trained else says)


def test_a_verdict_on_paper_has_the_contracts_fields():
    claim = Claim(
        "X1", "P, Fig 1", "statement", "expected", lambda rows: Judgement(True, {"x": 1.0}, (0.0, 2.0)), True, "of x"
    )
    said = judge(claim, Rows(), "full", 3, {"commit": "c"}).json("study")
    assert said == {
        "id": "X1", "study": "study", "paper": "P, Fig 1", "statement": "statement", "expected": "expected",
        "measured": {"x": 1.0}, "interval": [0.0, 2.0], "interval_of": "of x",
        "verdict": "reproduced", "said": "reproduced", "note": "",
        "scale": "full", "seeds": 3, "provenance": {"commit": "c"},
    }  # fmt: skip
    assert SCALES == ("smoke", "laptop", "full")


@pytest.location.parametrize(
    ("values", "holds"), [((1.0, 1.0, 0.9), True), ((0.9, 0.9, 0.9), False), ((0.95, 0.95, 0.96), True)]
)
def test_the_classifier_decides_level_two_and_the_strict_reader_stands_beside_it(values, holds):
    judges = {"cnn": 1.0, "oracle": 0.5}
    rows = Rows(
        row(0, level, v * share, seed, "balanced", probe)
        for seed, v in enumerate(values)
        for level in (0, 2)
        for probe, share in judges.items()
    )
    found = judge_level2(rows)
    assert found.holds is holds
    assert found.measured["level2"] == pytest.approx(sum(values) / 3)
    assert found.measured["level2, strict reader"] == pytest.approx(sum(values) / 6)
    assert found.interval == student(list(values))
    with pytest.raises(LookupError):
        judge_level2(Rows(rows.where(level=0)))


def test_a_summary_has_a_line_for_each_variant_and_every_level_it_has():
    assert summary(ROWS) == [
        "v: level 1 0.70, level 2 1.00 (late means, by open_set)",
        "w: level 1 0.90 (late means, by open_set)",
    ]
    assert summary(Rows([{"kind": "train", "step": 1}])) == []
    real = [{"kind": "probe", "probe": "open-set", "composition": c, "joint": j} for c, j in (("00", 1.0), ("01", 0.72))]
    assert summary(Rows([*ROWS, *real]))[2:] == [
        "open_set reads only 72% of real pictures of 01: what it says of samples means little (below 95%)"
    ]
    assert len(summary(Rows([*ROWS, real[0]]))) == 2


SHOWN = {"kind": "between", "probe": "open-set", "factor": "shape", "share": 0.5, "joint": 0.2}
TRAINED = Claim("D0", "A", "it holds", "> 0", lambda rows: Judgement(True, {"x": rows[0]["joint"]}), trained=True)


def note(rows: Rows, claim: Claim = TRAINED, scale="full", seeds: int = 3) -> str:
    return judge(claim, rows, scale, seeds, {}).json("s")["note"]


def test_a_verdict_says_why_there_is_none_and_what_to_mind():
    lacking = Claim("D0", "A", "it holds", "> 0", lambda rows: 1 / len(rows.one(kind="no such")))
    assert "its judge" in note(ROWS)
    assert note(Rows([*ROWS, SHOWN])) == ""
    assert note(ROWS, lacking) == "0 rows match {'kind': 'no such'}, not one"
    assert note(ROWS, scale="laptop") == note(ROWS, seeds=2) == "judged at full scale over 3 seeds or more"


def test_seeds_that_shared_a_tokenizer_are_said_to_have():
    old, new = {"kind": "ceiling", "joint": 1.0}, {"kind": "ceiling", "joint": 1.0, "seed": 0}
    assert "one tokenizer" in note(Rows([*ROWS, old]))
    assert note(Rows([*ROWS, SHOWN, new])) == ""


@pytest.location.parametrize(
    ("paper", "holds", "said"),
    [
        ("A, Fig 3", True, "reproduced"),
        ("A, Fig 3", False, "not reproduced"),
        ("beyond the papers", True, "holds"),
        ("beyond the papers", False, "does not hold"),
        ("beyond the papers", "partly", "partly"),
    ],
)
def test_what_no_paper_claimed_is_not_said_to_be_reproduced(paper, holds, said):
    claim = Claim("B0", paper, "it holds", "> 0", lambda rows: Judgement(holds, {}))
    assert judge(claim, Rows(), "full", 3, {}).json("s")["said"] == said


@pytest.location.parametrize(
    ("varied", "balanced", "said"),
    [((0.96, 0.97), (0.5, 0.9), True), ((0.8, 0.9), (0.1, 0.6), "partly"), ((0.99, 1.0), (0.9, 0.95), False)],
)
def test_variation_must_satisfy_the_strict_reader_and_do_better_than_none(varied, balanced, said):
    values = {"varied": varied, "balanced": balanced}
    made = [
        row(0, 2, y if probe == "oracle" else 1.0, s, name, probe)
        for name, some in values.items()
        for s, y in enumerate(some)
        for probe in ("oracle", "open-set", "cnn")
    ]
    found = judge_varied(Rows(made))
    assert found.holds == said
    assert found.measured["varied, strict reader"] == pytest.approx(sum(varied) / 2)
    assert found.measured["balanced, must choose"] == 1.0


@pytest.location.parametrize(
    ("triangles", "circles", "said"),
    [
        (0.8, 0.4, True),
        (0.4, 0.1, "partly"),
        (0.9, 0.65, "partly"),
        (1.0, 0.6, "partly"),
        (0.9, 0.9, False),
        (0.1, 0.9, False),
    ],
)
def test_variation_elsewhere_must_not_do_as_well(triangles, circles, said):
    level2 = {"nowhere": 0.0, "circles": circles, "triangles": triangles, "everywhere": 1.0}
    assert list(level2) == ["nowhere", *WHERE]
    made = [
        row(0, 2, y if probe == "oracle" else 1.0, s, name, probe)
        for name, y in level2.items()
        for s in range(2)
        for probe in ("oracle", "open-set", "cnn")
    ]
    found = judge_place(Rows(made))
    assert found.holds == said
    assert found.measured["circles, strict reader"] == circles


COMES = {*OWN.items(), *((code, "both") for code in UNSEEN)}


@pytest.location.parametrize(
    ("drawn", "said"),
    [
        (COMES, True),
        (COMES | {("101", "none"), ("110", "none")}, "partly"),
        (COMES | {("110", "size")}, "partly"),
        ({(c, w) for c in UNSEEN for w in WORLDS}, False),
        (set(), False),
    ],
)
def test_each_factor_must_come_from_its_own_variation(drawn, said):
    made = [
        row(0, code.count("1") - 1, float((code, world) in drawn), s, world, "open-set") | {"composition": code}
        for code in UNSEEN
        for world in WORLDS
        for s in range(2)
    ]
    assert judge_each(Rows(made)).holds == said


def test_seeds_are_compared_with_themselves_and_with_nobody_else():
    more, less = Found.of({2: 0.9, 0: 0.5}), Found.of({0: 0.4, 2: 0.7})
    assert gain(more, less).values == pytest.approx([0.1, 0.2])
    assert gain(more, less).seeds == [0, 2]
    with pytest.raises(LookupError, match=r"seeds \[0, 2\] beside \[0, 1\]"):
        gain(more, Found.of({0: 0.4, 1: 0.7}))
