"""Figures: names as in the field, many variants in one summary instead of a wall of panels, labels
that do not overlap."""

import re
from base64 import b64encode
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from level_rows import accuracy_rows
from PIL import Image

from recombine.analysis.table import Table
from recombine.config import UsageError
from recombine.plots import training
from recombine.plots.accuracy_panels import ABREAST, Line, late_values, panels, step_axis
from recombine.plots.locality import log_ticks
from recombine.plots.sheets import as_webp, sheet_path, sheets_over_training, slug
from recombine.plots.style import (
    CYCLE,
    FAMILY,
    GREY,
    Figure,
    canvas,
    colors_of,
    display,
    label_ends,
    seed_lines,
    smaller,
    write_values,
)

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


def png(picture: Image.Image) -> bytes:
    buffer = BytesIO()
    picture.save(buffer, "png")
    return buffer.getvalue()


def test_sheets_are_webp_lossless_where_grey_and_no_larger_than_that_holds():
    grey = Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16))
    made = Image.open(BytesIO(as_webp(png(grey), Path("p"))))
    assert np.array_equal(np.asarray(made.convert("L")), np.asarray(grey))
    wide = as_webp(png(Image.new("RGB", (16_001, 2), (200, 0, 0))), Path("p"))
    assert Image.open(BytesIO(wide)).size[0] == 16_000
    assert Image.open(BytesIO(as_webp(png(Image.new("RGB", (16_000, 2))), Path("p")))).size == (
        16_000,
        2,
    )
    with pytest.raises(UsageError, match=r"^p: is not a readable PNG picture$"):
        as_webp(b"no", Path("p"))


def test_sheets_are_named_by_variant_seed_and_step(tmp_path):
    assert slug({"variant": "MaskGIT, none", "seed": 1}) == "maskgit-none-s1"
    assert slug({"label": "a b"}) == "a-b"
    assert slug({}) == "run"
    folder = tmp_path / "samples"
    folder.mkdir()
    for name in ("dit-s0-10.webp", "dit-s0-9.webp", "dit-s0-maps.webp", "dit-s1-9.webp"):
        (folder / name).write_bytes(b"")
    found = sheets_over_training(tmp_path / "figures", "dit", 0)
    assert list(found) == [9, 10]
    assert found[9] == sheet_path(tmp_path / "figures", "dit", 0, 9) == folder / "dit-s0-9.webp"


def test_a_name_with_dollars_that_is_no_mathematics_is_written_as_it_is(tmp_path):
    with canvas(tmp_path, Figure("f", "t", "")) as axis:
        axis.set_title("costs $1_$_2 $")
    assert "costs $1_$_2 $" in (tmp_path / "f.svg").read_text()


def test_pictures_in_figures_are_jpeg_where_that_takes_less_than_half():
    rng = np.random.default_rng(0)

    def inside(picture: Image.Image) -> str:
        data = f"data:image/png;base64,{b64encode(png(picture)).decode()}"
        return smaller(re.match(r"data:image/png;base64,\s*([A-Za-z0-9+/=\s]+)", data))[:16]

    noise = rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(noise[:4, :4]).resize((128, 128)))
    assert inside(Image.fromarray(smooth)) == "data:image/jpeg;"
    assert inside(Image.new("RGB", (64, 64))) == "data:image/png;b"
    see_through = Image.fromarray(smooth).convert("RGBA")
    see_through.putpixel((0, 0), (0, 0, 0, 0))
    assert inside(see_through) == "data:image/png;b"


def test_families_keep_their_colours_and_others_take_those_that_are_left():
    found = colors_of(["dit", "x", "maskgit", "y"])
    assert found["dit"] == FAMILY["dit"] == CYCLE[0]
    assert found["maskgit"] == CYCLE[1]
    assert (found["x"], found["y"]) == (CYCLE[2], CYCLE[3])
    many = colors_of([f"v{i}" for i in range(len(CYCLE) + 1)])
    assert many[f"v{len(CYCLE)}"] == many["v0"] == CYCLE[0]


def test_seeds_are_thin_and_their_mean_bold_and_one_seed_is_the_mean(tmp_path):
    with canvas(tmp_path, Figure("f", "", "")) as axis:
        seed_lines(axis, [0, 1], [[0.0, 1.0], [1.0, 2.0]], "k", "a", ls=":")
        thin, _, bold = axis.lines
        assert (thin.get_linewidth(), thin.get_alpha()) == (0.7, 0.5)
        assert bold.get_ydata().tolist() == [0.5, 1.5]
        assert (bold.get_marker(), bold.get_markersize(), bold.get_linestyle()) == ("o", 3, ":")
        seed_lines(axis, [0, 1], [[0.0, 1.0]], "k")
        assert len(axis.lines) == 4


def test_values_are_white_where_the_colour_is_strong(tmp_path):
    with canvas(tmp_path, Figure("f", "", "")) as axis:
        write_values(axis, [[0.6, 0.61], [-0.61, 0.2]])
        write_values(axis, [[1.2, 1.3]], most=2.0)
        ink = "#1b1d22"
        assert [t.get_color() for t in axis.texts] == [ink, "white", "white", ink, ink, "white"]
        assert [t.get_text() for t in axis.texts][:3] == ["0.60", "0.61", "-0.61"]
        assert axis.texts[1].get_position() == (1, 0)


def test_a_step_axis_has_round_ticks_up_to_the_last_step(tmp_path):
    with canvas(tmp_path, Figure("f", "", "")) as axis:
        step_axis(axis, "title", 300)
        assert [t.get_text() for t in axis.get_xticklabels()] == ["0", "10", "30", "100", "300"]
        assert axis.get_xlim() == pytest.approx((0, 345))
        assert axis.get_ylim() == pytest.approx((-0.03, 1.03))
        assert axis.xaxis.get_transform().linthresh == 6
        step_axis(axis, "title", 10)
        assert axis.xaxis.get_transform().linthresh == 1


def test_panels_that_are_left_over_are_off(tmp_path):
    rows = Table(
        accuracy_rows({"dit": [0.2, 0.4]}, step=1) + accuracy_rows({"dit": [0.6, 1.0]}, step=2)
    )
    lines = {
        "a": (Line("dit", 2, "joint", "oracle"), CYCLE[0]),
        "b": (Line("dit", 2, "joint", "oracle"), GREY),
    }
    drawings = []

    def keep(drawing, folder, figure):
        drawings.append(drawing)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recombine.plots.style.save", keep)
        panels(rows, tmp_path, Figure("f", "", ""), [(str(i), lines) for i in range(3)], 2, "share")
    (drawing,) = drawings
    assert [axis.axison for axis in drawing.axes] == [True, True, True, False]
    assert drawing.get_size_inches().tolist() == pytest.approx([7.4, 6.1])
    assert [axis.get_ylabel() for axis in drawing.axes] == ["share", "", "share", ""]
    styles = {line.get_linestyle() for line in drawing.axes[0].lines if line.get_label() == "b"}
    assert styles == {":"}
    assert drawing.axes[1].get_legend() is not None
    assert drawing.axes[0].get_legend() is None
