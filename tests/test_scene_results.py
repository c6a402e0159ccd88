"""What the docs say of scenes is what the rows under results/ say."""

from statistics import fmean

import pytest
from shipped import shipped

from recombine.evaluate.counting import k_max, k_mean
from recombine.studies.base import Rows
from recombine.studies.scenes import operator_outcomes as operator
from recombine.studies.scenes.length import far_from_others
from recombine.studies.scenes.outcomes import last, local, looks, marks_alone, reached

REACHED = {
    "exp1": ((6, 6, 5), (6, 6, 6), 0.62, 0.97),
    "exp2": ((1, 1, 1), (1, 1, 1), 0.02, 0.33),
    "exp3": ((3, 3, 3), (3, 3, 3), 0.08, 0.42),
    "exp2L": ((7, 6, 6), (8, 8, 7), 0.84, 1.0),
    "exp3L": ((5, 5, 5), (4, 4, 5), 0.94, 1.0),
    "exp2L, whole": ((4, 4, 5), (3, 3, 4), 0.60, 0.85),
    "exp2, 1 object": ((1, 1, 1), (1, 1, 1), 0.01, 0.38),
    "exp2, 1-5 objects": ((1, 1, 1), (1, 1, 1), 0.03, 0.36),
    "exp2L, 1 object": ((5, 5, 5), (5, 5, 5), 0.75, 1.0),
    "exp2L, 1-5 objects": ((8, 6, 7), (9, 9, 9), 0.87, 1.0),
}


@pytest.mark.parametrize("variant", REACHED)
def test_the_docs_table_of_length_is_what_the_rows_say(variant):
    rows, (seeds, by_means, *shares) = shipped("length"), REACHED[variant]
    assert [tuple(reached(rows, variant, by=way).values) for way in (k_max, k_mean)] == [seeds, by_means]
    recall = fmean(some.one(locations=12)["recall"] for some in last(rows, variant).values())
    assert [recall, local(rows, variant, "condition").mean] == pytest.approx(shares, abs=0.0051)


def over_length(variant: str, column: str, locations: int, step: int | None = None) -> float:
    """The mean over seeds at one number of locations; at the end if no step is named."""
    each = {k: r for k, r in looks(shipped("length"), variant).items() if k[1] == (step or 5000)}
    assert len(each) == 3
    return fmean(some.one(locations=locations)[column] for some in each.values())


def test_what_else_the_docs_say_of_length_is_what_the_rows_say():
    rows = shipped("length")
    assert min(rows.where(kind="detector").column("exact")) >= 0.996
    assert [round(local(rows, f"exp{i}", "pixel").mean, 2) for i in (1, 2, 3)] == [0.56, 0.54, 0.53]
    assert marks_alone(rows, "exp3L").values == [12, 11, 10]
    assert [round(over_length("exp3L", "total", 5), 1), round(over_length("exp3L", "right", 3), 2)] == [5.6, 0.76]
    pieces = [round(over_length("exp3L", "total", k) / k - 1, 2) for k in (1, 3, 9)]
    assert pieces == [0.04, 0.09, 0.17]
    missed = [round(1 - over_length(v, "recall", 9), 2) for v in ("exp3L", "exp2L", "exp2L, whole")]
    assert missed == [0.03, 0.11, 0.31], "the share of full patches foretells the order"
    course = [sorted(k_max(looks(rows, "exp1")[s, t]) for s in range(3)) for t in (625, 1250, 2500, 5000)]
    assert [(min(k), max(k)) for k in course] == [(1, 2), (3, 4), (5, 5), (5, 6)]


def test_local_networks_first_draw_too_much_then_too_little():
    for variant, told in {"exp2L": (14, 10, 0.94, 0.89), "exp2L, 1 object": (15, 9, 0.91, 0.80)}.items():
        found = [over_length(variant, column, 9, t) for column in ("total", "recall") for t in (625, 5000)]
        assert (*map(round, found[:2]), *(round(v, 2) for v in found[2:])) == told
        early = {k_max(some, total=False) for (_, t), some in looks(shipped("length"), variant).items() if t == 625}
        assert early == ({9} if variant == "exp2L" else {8, 9})


def test_what_the_docs_say_of_crowds_and_numbers_is_what_the_rows_say():
    said = {
        "exp2L": (0.97, 0.90),
        "exp3L": (1.0, 0.98),
        "exp1": (0.99, 0.71),
        "exp2": (0.38, 0.02),
        "exp3": (1.0, 0.07),
    }
    for variant, told in said.items():
        found = [far_from_others(shipped("length"), variant, some).mean for some in (range(2, 4), range(9, 13))]
        assert found == pytest.approx(told, abs=0.0051)


def rounded(rows: Rows, columns: dict[str, tuple[int, ...]]) -> dict[str, list[float]]:
    """Columns at some numbers of locations, the mean over seeds."""
    mean = lambda c, k: fmean(rows.where(locations=k).column(c))  # noqa: E731
    return {c: [round(mean(c, k), 1 if c == "total" else 2) for k in locations] for c, locations in columns.items()}


def test_convolutions_beside_the_cells_mend_nothing_at_full_size():
    fine, plain = (last(shipped(s), "exp3L")[0] for s in ("fine/length", "length"))
    assert rounded(fine, {"right": range(1, 7)})["right"] == [0.97, 0.84, 0.68, 0.6, 0.48, 0.31]
    assert rounded(plain, {"right": range(1, 7)})["right"] == [0.98, 0.88, 0.74, 0.68, 0.5, 0.33]
    reach = {
        v: [reached(shipped(s), v).values[0] for s in ("fine/length", "length")] for v in ("exp2L", "exp2L, whole")
    }
    assert reach == {"exp2L": [5, 7], "exp2L, whole": [3, 4]}
    chance = [round(last(shipped("fine/length"), v)[0].one(locations=12)["chance"], 2) for v in ("exp2L", "exp3L")]
    assert chance == [0.52, 0.59]


def test_what_the_docs_say_of_larger_pictures_is_what_the_rows_say():
    rows = shipped("larger/length")
    assert min(rows.where(kind="detector").column("exact")) >= 0.996
    assert [reached(rows, v).values for v in ("exp1", "exp2L")] == [[6], [6]]
    assert [round(last(rows, v)[0].one(locations=9)["recall"], 2) for v in ("exp1", "exp2L")] == [0.79, 0.82]
    assert [round(last(shipped("length"), v)[0].one(locations=9)["recall"], 2) for v in ("exp1", "exp2L")] == [0.79, 0.9]
    assert [round(local(rows, v, "condition").mean, 2) for v in ("exp1", "exp2L")] == [0.89, 1.0]
    assert [round(far_from_others(rows, "exp2L", some).mean, 2) for some in (range(2, 4), range(9, 13))] == [0.93, 0.85]
    missed = [
        (r["from"] < 0.16, (1 - r["recall"]) * r["n"])
        for r in rows.where(kind="near", variant="exp2L")
        if r["step"] == 5000
    ]
    assert sum(n for near, n in missed if near) / sum(n for _, n in missed) == pytest.approx(0.73, abs=0.01)
    fine = last(shipped("fine/length"), "exp2L")[0]
    assert round(fine.one(locations=9)["recall"], 2) == 0.85


ADDED = {
    "empty": ([3, 2, 3], 3.0, [0.96, 0.86, 0.62, 0.35], [2.0, 3.0, 4.3, 5.5]),
    "unconditional": ([1, 1, 1], 1.0, [0.07, 0.01, 0.0, 0.0], [0.2, 0.0, 0.0, 0.0]),
    "cluttered": ([5, 4, 5], 4.7, [0.96, 0.96, 0.86, 0.57], [3.4, 3.8, 4.7, 4.8]),
    "swapped": ([2, 1, 2], 1.7, [0.75, 0.55, 0.36, 0.32], [1.6, 2.2, 3.8, 7.9]),
    "mismatched": ([2, 2], 3.0, [0.96, 0.86, 0.65, 0.43], [2.0, 3.2, 5.1, 8.1]),
}


@pytest.mark.parametrize("variant", ADDED)
def test_the_docs_table_of_sums_is_what_the_rows_say(variant):
    rows, (seeds, lenient, *means) = shipped("operator"), ADDED[variant]
    assert operator.reach(rows, variant).values == seeds
    assert round(operator.reach(rows, variant, lenient=True).mean, 1) == lenient
    some = rows.where(kind="added", variant=variant)
    assert list(rounded(some, {"recall": (2, 3, 5, 8), "total": (2, 3, 5, 8)}).values()) == means


def test_near_objects_suffer_where_others_are_new_and_not_where_they_are_known():
    for variant, told in {"empty": [0.76, 0.9], "cluttered": [0.96, 0.96]}.items():
        near = shipped("operator").where(kind="added, near", variant=variant, locations=3)
        assert {r["from"] for r in near} == {0.2, 0.25, 0.32}
        parts = [near.where(**{"from": 0.2}), [*near.where(**{"from": 0.25}), *near.where(**{"from": 0.32})]]
        assert [round(sum(r["n"] * r["recall"] for r in p) / sum(r["n"] for r in p), 2) for p in parts] == told


def test_adding_beats_telling_at_once_by_the_same_weights():
    rows = shipped("operator")
    assert [max(operator.reach(rows, v, "count").values) for v in ("empty", "cluttered")] == [1, 2]
    assert round(min(rows.where(kind="real").column("right")), 2) >= 0.99


ECHO = {
    "unconditional": (0.71, 0.15, 0.47, -0.32, 0.55, -0.36),
    "cluttered": (0.51, 0.40, 0.43, -0.03, 0.94, 0.81),
    "empty": (0.85, 0.58, 0.45, 0.13, 1.16, 1.48),
    "swapped": (0.82, 0.71, 0.45, 0.27, 1.32, 1.97),
}


@pytest.mark.parametrize("variant", ECHO)
def test_the_lead_on_echoes_is_as_quoted(variant):
    r = max(shipped("leads/leakage/operator").where(kind="leakage", variant=variant), key=lambda r: abs(r["leakage"]))
    shares = [1 + (k - 1) * r["leakage"] / r["own"] for k in (2, 4)]
    assert [*(r[k] for k in ("own", "others", "unconditional", "leakage")), *shares] == pytest.approx(ECHO[variant], abs=0.0051)
