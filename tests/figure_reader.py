"""Figures read back: what was drawn, as numbers and words, without writing a file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

PARTS = ("lines", "bands", "points", "bars", "texts", "image")


def drawn(make: Callable[..., Any], *given: Any) -> dict[str, Any]:
    """The drawings that a function makes, by name; given an own folder at the end."""
    made: dict[str, Any] = {}
    with patch("recombine.plots.style.save", lambda drawing, _, f: made.update({f.name: drawing})):
        make(*given, Path("nowhere") / "figures")
    return made


def tidy(values: Any) -> list[float]:
    return [round(float(v), 3) for v in np.ma.filled(np.ma.asarray(values, float), np.nan)]


def read(axis: Any) -> dict[str, Any]:
    """One panel. Lines: (label, x, y); bands: (x, low, high); points and bars: (x, y) pairs, of a
    bar its middle and both ends; texts: (text, x, y); and how all of it is labelled."""
    bands, points = [], []
    for one in axis.collections:
        if isinstance(one, PathCollection):
            points.append([tuple(tidy(p)) for p in one.get_offsets()])
        elif isinstance(one, PolyCollection):
            corners = [tuple(tidy(p)) for p in one.get_paths()[0].vertices]
            xs = sorted({x for x, _ in corners})
            ends = [[y for at, y in corners if at == x] for x in xs]
            bands.append((xs, list(map(min, ends)), list(map(max, ends))))
    legend = axis.get_legend()
    return {
        "title": axis.get_title("left") or axis.get_title(),
        "labels": (axis.get_xlabel(), axis.get_ylabel()),
        "limits": (*tidy(axis.get_xlim()), *tidy(axis.get_ylim())),
        "scales": (axis.get_xscale(), axis.get_yscale()),
        "xticks": ticks(axis.xaxis),
        "yticks": ticks(axis.yaxis),
        "legend": [t.get_text() for t in legend.get_texts()] if legend else [],
        "lines": [
            (plain(line.get_label()), tidy(line.get_xdata()), tidy(line.get_ydata()))
            for line in axis.lines
        ],
        "inks": [to_hex(line.get_color()) for line in axis.lines],
        "bands": bands,
        "points": points,
        "bars": [box(p) for p in axis.patches if isinstance(p, Rectangle)],
        "texts": [(t.get_text(), *tidy(getattr(t, "xy", t.get_position()))) for t in axis.texts],
        "image": [np.round(np.ma.filled(i.get_array()), 3).tolist() for i in axis.images],
    }


def plain(label: str) -> str:
    return "" if label.startswith("_") else label


def ticks(axis: Any) -> dict[str, float]:
    """Those that are written out."""
    places = zip(axis.get_ticklabels(), axis.get_ticklocs(), strict=False)
    return {label.get_text(): round(float(at), 3) for label, at in places if label.get_text()}


def box(bar: Rectangle) -> tuple[float, ...]:
    """Middle, low and high end of an upright bar; of one that lies, left, right and middle."""
    (x, y), w, h = bar.get_xy(), bar.get_width(), bar.get_height()
    return tuple(tidy((x, x + w, y, y + h)))


def looks_right(drawing: Any) -> None:
    """What holds for every figure: it fits a page; words are legible; what a legend names can be
    distinguished; nothing that was measured lies beyond the axes."""
    width, height = drawing.get_size_inches()
    assert 4 <= width <= 17
    assert 2 <= height <= 9
    for axis in drawing.axes:
        fonts = [t.get_fontsize() for t in axis.texts] + [axis.title.get_fontsize()]
        assert all(6 <= size <= 12 for size in fonts)
        named = [line for line in axis.lines if plain(line.get_label())]
        styles = {
            (line.get_color(), line.get_linestyle(), line.get_marker(), line.get_markerfacecolor())
            for line in named
        }
        assert len(styles) == len(named)
        widths = [line.get_linewidth() for line in axis.lines]
        assert all(0.5 <= w <= 2.6 for w in widths)
        faint = [line for line in axis.lines if (line.get_alpha() or 1) < 0.55]
        assert all(line.get_linewidth() <= 0.9 or line.get_marker() != "None" for line in faint)
        (left, right), (bottom, top) = sorted(axis.get_xlim()), sorted(axis.get_ylim())
        for line in named:
            if line.get_clip_on() and line.get_transform().contains_branch(axis.transData):
                x, y = (np.asarray(v, float) for v in line.get_data())
                assert ((x >= left - 1e-9) & (x <= right + 1e-9)).all()
                assert ((y >= bottom - 1e-9) & (y <= top + 1e-9)).all()
