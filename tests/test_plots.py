"""Figures: names as in the field, many variants in one summary instead of a wall of panels, labels
that do not overlap."""

import re

import pytest
from level_rows import accuracy_rows

from recombine.analysis.table import Table
from recombine.plots import training
from recombine.plots.accuracy_panels import ABREAST, Line, late_values
from recombine.plots.locality import log_ticks
from recombine.plots.style import Figure, canvas, display, label_ends, write_values

NAMES = ("maskgit", "givt", "mar", "dit", "vae", "fsq")


@pytest.mark.parametrize("count", [3, 6])
def test_other_probes_are_panels_of_few_variants_and_one_summary_of_many(count, tmp_path):
    heights = {name: [0.1 * i, 0.1 * i + 0.2] for i, name in enumerate(NAMES[:count])}
    rows = Table(accuracy_rows(heights))
    (figure,) = training.others(rows, tmp_path)
    text = (tmp_path / f"{figure.name}.svg").read_text()
    axes = len(re.findall(r'<g id="axes_\d+">', text))
    assert axes == (1 if count > ABREAST else 2 * count)
    assert all(display(name) in text for name in heights)
    assert not re.search(r">(maskgit|givt|dit|vae)\b", text)


def test_a_late_value_is_the_mean_of_the_last_checkpoints_of_each_seed():
    rows = accuracy_rows({"dit": [0.2, 0.4]}, step=1) + accuracy_rows({"dit": [0.6, 1.0]}, step=2)
    line = Line("dit", 2, "joint", "oracle")
    assert late_values(Table(rows), line) == [0.6, 1.0]
    assert late_values(Table(rows), line._replace(probe="linear")) == []


def test_names_at_the_ends_of_lines_keep_apart_and_in_order(tmp_path):
    with canvas(tmp_path, Figure("f", "", "")) as axis:
        label_ends(axis, 1, {"a": (0.99, "k"), "b": (1.0, "k"), "c": (0.3, "k")}, room=0.06)
        at = {text.get_text(): text.xy[1] for text in axis.texts}
    assert at == {"c": 0.3, "a": 0.99, "b": pytest.approx(1.05)}


def test_nothing_is_written_as_minus_zero(tmp_path):
    with canvas(tmp_path, Figure("f", "", "")) as axis:
        write_values(axis, [[-0.001, -0.2, 0.0]], ".0f")
        write_values(axis, [[-0.001, -0.21]], ".1f")
        assert [text.get_text() for text in axis.texts] == ["0", "0", "0", "0.0", "-0.2"]


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((0.1, 30), [0.1, 0.3, 1, 3, 10, 30]),
        ((1, 20), [1, 2, 5, 10, 20]),
        ((1, 3.5), [1, 1.5, 2, 3]),
    ],
)
def test_ticks_of_a_logarithmic_axis_are_round_numbers_and_not_too_many(tmp_path, ends, expected):
    with canvas(tmp_path, Figure("ticks", "", "")) as axis:
        axis.set(xscale="log", xlim=ends)
        log_ticks(axis.xaxis)
        assert axis.get_xticks() == pytest.approx(expected)
        assert [t.get_text() for t in axis.get_xticklabels()] == [f"{x:g}" for x in expected]
