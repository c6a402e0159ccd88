"""From rows to one number per level, over seeds. All rows are made by hand."""

import pytest
from level_rows import accuracy_rows

from recombine.analysis.levels import (
    accuracy,
    at_level,
    best,
    curve,
    doubts,
    gain,
    gain_of,
    has_learned,
    interpolation_curve,
    is_trusted,
    late_mean,
    learning_notes,
    level_mean,
    level_name,
    means,
    measured,
    per_seed,
    probe_of,
    seeds_of,
    summary,
    tolerance,
    unlearned,
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
    assert late_mean(points) == (6 + 0) / 2
    assert best(points) == 6
    assert late_mean([(0, 0.3)]) == late_mean([(0, 9.0), (1, 9.0), (2, 0.3)]) == 0.3
    with pytest.raises(LookupError):
        late_mean([])


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
    assert gain(Table(rows), "a", "c").values == pytest.approx((0.1,)), "the seed that both have"
    later = [one | {"seed": 7} for one in accuracy_rows({"d": [0.4]})]
    with pytest.raises(LookupError, match=r"a has seeds \[0, 1\], d \[7\]: none in common"):
        gain(Table([*rows, *later]), "a", "d")


def test_the_linear_probe_is_shown_only_where_it_is_right_on_real_pictures():
    rows = accuracy_rows({"v": 0.5}, probes=("open-set", "linear"))

    def shown(worst: float) -> dict:
        real = [{"kind": "probe", "probe": "linear", "joint": y} for y in (1.0, worst)]
        return measured(Table([*rows, *real]), {"v": None})

    assert shown(0.96)["v, linear probe"] == 0.5
    assert "v, linear probe" not in shown(0.6)


def test_a_summary_has_a_line_for_each_variant_and_doubts_come_first():
    good = [row(1, 0, 1.0), row(1, 2, 0.7), row(1, 0, 0.9, variant="w")]
    numbers = [
        "v: seen 1.00, level 2 0.70 (late means, open-set probe)",
        "w: seen 0.90 (late means, open-set probe)",
    ]
    assert summary(Table(good)) == (["the seen compositions were learned"], numbers)
    assert summary(Table([{"kind": "train", "step": 1}])) == ([], [])
    real = {"kind": "probe", "probe": "open-set", "composition": "01", "joint": 0.72}
    bad = [row(1, 0, 0.3, variant="u"), real]
    doubts, numbers = summary(Table([*good, *bad]))
    assert doubts[0].startswith("u has not learned the seen compositions (0.30)")
    assert "reads only 72% of real pictures of 01" in doubts[1]
    assert (len(doubts), len(numbers)) == (2, 3)


def test_summaries_in_words():
    assert [level_name(k) for k in (0, 1, 2)] == ["seen", "level 1", "level 2"]
    assert unlearned(Table([row(1, 0, 0.79)])) == [
        "v has not learned the seen compositions (0.79): other levels mean little"
    ]
    assert learning_notes(Table([row(1, 0, 0.8)])) == ["the seen compositions were learned"]
    real = {"kind": "probe", "probe": "open-set", "composition": "01", "joint": 0.949}
    worse = real | {"composition": "11", "joint": 0.5}
    fine = real | {"joint": 0.95}
    assert doubts(Table([row(1, 0, 1.0), fine])) == []
    assert doubts(Table([row(1, 0, 1.0), fine, real, worse])) == [
        "the open-set probe reads only 50% of real pictures of 11: what it says of samples means "
        "little (below 95%)"
    ]


def test_a_probe_is_trusted_if_it_reads_every_composition():
    def real(*values: float) -> Table:
        return Table({"kind": "probe", "probe": "cnn", "joint": y} for y in values)

    assert is_trusted(real(0.95, 1.0), "cnn")
    assert not is_trusted(real(0.949, 1.0), "cnn")
    assert not is_trusted(real(1.0), "linear")


def test_a_curve_crosses_one_half_between_two_points():
    assert tolerance([(0.0, 1.0), (0.2, 0.9), (0.4, 0.1), (0.6, 0.9)]) == pytest.approx(0.3)
    assert tolerance([(0.0, 0.5), (0.1, 0.0)]) == 0.0
    assert tolerance([(0.2, 1.0), (0.4, 0.5)]) == 1.0
    assert tolerance([(0.2, 0.4), (0.4, 0.3)]) == 0.0


def test_the_share_still_read_as_where_a_way_began_is_the_mean_over_ways():
    about = {"kind": "interpolation", "probe": "cnn", "factor": "size"}
    rows = [about | {"share": x, "joint": y} for x, y in ((0.5, 0.2), (0.0, 1.0), (0.5, 0.4))]
    other = [about | {"share": 0.5, "joint": 1.0, "factor": "color"}]
    found = interpolation_curve(Table(rows + other), "cnn", "size")
    assert found == [(0.0, 1.0), (0.5, pytest.approx(0.3))]


def test_best_leaves_out_the_untrained_network_unless_there_is_no_other():
    assert best([(0, 0.9), (5, 0.4), (9, 0.3)]) == 0.4
    assert best([(0, 0.9)]) == 0.9
    assert late_mean([(i, float(i)) for i in range(12)]) == 10.0


def test_means_and_levels_of_rows():
    rows = Table([row(9, 1, 0.25), row(3, 1, 0.5), row(9, 2, 0.75)])
    assert means(rows) == [(3, 0.5), (9, 0.5)]
    assert level_mean(rows, 1) == 0.375
    with pytest.raises(LookupError, match=r"^no rows at level 0$"):
        level_mean(rows, 0)
    with pytest.raises(LookupError, match=r"^no rows of v at level 2 by the probe cnn$"):
        per_seed(rows, "v", 2, probe="cnn")


def test_parts_of_claims_have_their_regions():
    rows = Table(accuracy_rows({"a": 0.9, "b": 0.4}, seen=0.8))
    parts = [at_level(rows, "a", 2), has_learned(rows, "a", 0.7), gain_of(rows, "a", "b", 0.25)]
    assert [(p.name, p.low, p.high, p.needed) for p in parts] == [
        ("a, level 2", 0.0, 1.0, False),
        ("a, seen", 0.7, 1.0, True),
        ("a - b, level 2", 0.25, 1.0, False),
    ]
    assert [p.estimate.value for p in parts] == pytest.approx([0.9, 0.8, 0.5])


def test_numbers_beside_a_claim_come_in_order():
    rows = accuracy_rows({"a": 0.4}, probes=("open-set", "oracle"), seen=0.8)
    real = [{"kind": "probe", "probe": "open-set", "joint": y} for y in (0.97, 0.96)]
    shown = measured(Table([*rows, *real]), {"a": 0.5})
    assert list(shown.items()) == [
        ("a", 0.4),
        ("paper_a", 0.5),
        ("primary probe", "open-set probe"),
        ("a, level 1", pytest.approx(0.6)),
        ("a, seen", pytest.approx(0.8)),
        ("a, best checkpoint", 0.4),
        ("a, oracle", 0.4),
        ("primary probe on real pictures, at worst", 0.96),
    ]
