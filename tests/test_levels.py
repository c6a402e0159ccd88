"""From rows to one number per level, over seeds. All rows are made by hand."""

import pytest
from level_rows import accuracy_rows

from recombine.analysis.levels import (
    accuracy,
    best,
    curve,
    gain,
    late,
    measured,
    per_seed,
    probe_of,
    seeds_of,
    summary,
)
from recombine.analysis.table import Table


def row(step, level, joint, seed=0, variant="v", probe="open-set", **more) -> dict:
    about = {"kind": "accuracy", "step": step, "level": level, "joint": joint}
    return about | {"seed": seed, "variant": variant, "probe": probe} | more


ROWS = [
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
TABLE = Table(ROWS)


def test_a_curve_is_the_mean_over_a_levels_compositions_in_order_of_steps():
    assert curve(TABLE, "v", 0, 1) == [(0, pytest.approx(0.1)), (10, pytest.approx(0.5))]
    assert curve(TABLE, "v", 0, 2) == [(10, 1.0)]
    assert curve(TABLE, "v", 1, 1) == [(0, 0.9)]
    assert curve(TABLE, "v", 0, 1, probe="cnn") == [(0, 0.9)]
    assert curve(TABLE, "v", 7, 1) == []
    assert curve(Table([row(0, 0, 0.1, shape=0.7)]), "v", 0, 0, column="shape") == [(0, 0.7)]


def test_late_is_the_mean_of_the_last_quarter_and_best_the_maximum():
    points = [(i, float(i % 7)) for i in range(8)]
    assert late(points) == (6 + 0) / 2
    assert best(points) == 6
    assert late([(0, 0.3)]) == late([(0, 9.0), (1, 9.0), (2, 0.3)]) == 0.3
    with pytest.raises(LookupError):
        late([])


def test_the_open_set_probe_is_the_primary_one_where_there_is_one():
    assert probe_of(TABLE) == "open-set"
    assert probe_of(Table([row(0, 0, 1, probe="linear"), row(0, 0, 1, probe="cnn")])) == "cnn"


def test_each_seed_counts_once_whatever_its_number_of_rows():
    rows = Table([row(0, 2, 0.0, 0), row(0, 2, 1.0, 1), row(0, 2, 0.5, 2), row(0, 2, 0.5, 2)])
    estimate = accuracy(rows, "v", 2)
    assert seeds_of(rows, "v") == [0, 1, 2]
    assert (estimate.value, estimate.values, estimate.n) == (0.5, (0.0, 1.0, 0.5), 3)
    assert 0 <= estimate.low < 0.5 < estimate.high <= 1
    with pytest.raises(LookupError, match="no rows of v at level 1"):
        accuracy(rows, "v", 1)


def test_seeds_are_compared_with_themselves_and_with_nobody_else():
    rows = accuracy_rows({"a": [0.5, 0.9], "b": [0.4, 0.7], "c": [0.4]})
    assert gain(Table(rows), "a", "b").values == pytest.approx((0.1, 0.2))
    assert per_seed(Table(rows), "a", 2) == {0: 0.5, 1: 0.9}
    with pytest.raises(LookupError, match=r"seeds \[0, 1\] beside \[0\]"):
        gain(Table(rows), "a", "c")


def test_the_linear_probe_is_shown_only_where_it_is_right_on_real_pictures():
    rows = accuracy_rows({"v": 0.5}, probes=("open-set", "linear"))

    def shown(worst: float) -> dict:
        real = [{"kind": "probe", "probe": "linear", "joint": y} for y in (1.0, worst)]
        return measured(Table([*rows, *real]), {"v": None})

    assert shown(0.96)["v, linear probe"] == 0.5
    assert "v, linear probe" not in shown(0.6)


def test_a_summary_has_a_line_for_each_variant_and_doubts_come_first():
    good = [row(1, 0, 1.0), row(1, 2, 0.7), row(1, 0, 0.9, variant="w")]
    assert summary(Table(good)) == [
        "the seen compositions were learned",
        "v: seen 1.00, level 2 0.70 (late means, open-set probe)",
        "w: seen 0.90 (late means, open-set probe)",
    ]
    assert summary(Table([{"kind": "train", "step": 1}])) == []
    real = {"kind": "probe", "probe": "open-set", "composition": "01", "joint": 0.72}
    bad = [row(1, 0, 0.3, variant="u"), real]
    doubts = summary(Table([*good, *bad]))
    assert doubts[0].startswith("u has not learned the seen compositions (0.30)")
    assert "reads only 72% of real pictures of 01" in doubts[1]
    assert len(doubts) == 5
