"""Figures of `locality`, from the rows: locality against length, over noise levels, and as maps."""

import math
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import torch

from recombine.analysis.scenes import (
    Point,
    able,
    correlation,
    last,
    locality_points,
    usual,
)
from recombine.analysis.table import NotMeasured, Table
from recombine.metrics.locality import RADIUS
from recombine.metrics.locality_map import DECADES, LocalityMap
from recombine.metrics.scene_sheets import read_heat
from recombine.plots.scene_pictures import NAMES, color, in_order, run_sheet, shape, title
from recombine.plots.style import GREY, Figure, canvas

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EVEN = (2 * RADIUS) ** 2
"""The share of the picture within the square: what effects that spread evenly give."""
CORNER = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": 8}


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [scatter(rows, folder), levels(rows, folder), *maps(rows, folder)]


def scatter(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "scatter",
        "Locality and length generalization",
        "Each point is a run at a checkpoint: how local it is in its conditions (mean over noise "
        "levels), and by how much its K_max exceeds the largest number of objects in training. "
        "Larger and fuller points are later in training; a line joins the checkpoints of one run; "
        "circles and crosses (U-Nets on patches) were trained on one to three objects, all with the "
        "same noise levels. Points are moved a little up or down so that they do not cover each "
        "other.",
    )
    shown = locality_points(rows)
    variants = [v for v in in_order(rows) if v in {p.variant for p in shown}]
    with canvas(folder, figure, size=(7.4, 4.4)) as axis:
        for i, variant in enumerate(variants):
            for seed in sorted({p.seed for p in shown if p.variant == variant}):
                shift = 0.3 * ((i + 0.5) / len(variants) - 0.5) + 0.08 * (seed % 3 - 1)
                run = [p for p in shown if (p.variant, p.seed) == (variant, seed)]
                journey(axis, run, shift)
        axis.axhline(0, color=GREY, lw=0.8, ls=":")
        axis.set(xlabel="conditional locality", ylabel="K_max less the trained number")
        axis.set(xlim=(0, 1.03))
        axis.yaxis.get_major_locator().set_params(integer=True)
        axis.set_title(correlation_text(able(usual(rows)), shown), fontsize=9)
        empty = {v: {"color": color(v), "marker": shape(v), "ls": ""} for v in variants}
        lines = [axis.plot([], [], label=title(v), **style)[0] for v, style in empty.items()]
        axis.legend(handles=lines, **CORNER)
    return figure


def journey(axis: Any, run: list[Point], shift: float) -> None:
    """The checkpoints of one run, joined."""
    x, y = [p.condition for p in run], [p.gain + shift for p in run]
    ink, form = color(run[0].variant), shape(run[0].variant)
    axis.plot(x, y, color=ink, lw=0.7, alpha=0.5)
    for i, (a, b) in enumerate(zip(x, y, strict=True)):
        late = (i + 1) / len(run)
        axis.plot([a], [b], form, color=ink, ms=3 + 4 * late, alpha=0.35 + 0.65 * late, mew=0)


def correlation_text(claimed: list[Point], shown: list[Point]) -> str:
    """Of the points that the claim is about, and of all that are shown."""
    try:
        text = f"rank correlation {correlation(claimed):.2f} over {len(claimed)} points"
        if len(claimed) == len(shown):
            return text
        return f"{text} (circles, crosses), {correlation(shown):.2f} over all {len(shown)}"
    except NotMeasured:
        return f"{len(shown)} points"


def levels(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "levels",
        "Locality at every noise level",
        "At the end of training, mean over seeds (band: smallest to largest). Pixels: share of the "
        "derivatives by other pixels that lie near the pixel. Conditions: share of the squared "
        "change near a location that is removed. Own: at a location, the part of its own effect in "
        "that of all locations. Dotted: what an even spread would give. Crosses: U-Nets on patches; "
        "diamonds: EDM2's noise levels.",
    )
    columns = {"pixel": "pixels", "condition": "conditions", "own": "own"}
    with canvas(folder, figure, 1, 3, size=(11.5, 3.3), sharey=True) as axes:
        for axis, (column, name) in zip(axes, columns.items(), strict=True):
            for variant in (v for v in in_order(rows) if v in NAMES):
                over_noise(axis, list(last(rows, variant, "locality").values()), column, variant)
            axis.set(xscale="log", xlabel="noise level sigma", title=name, ylim=(0, 1.03))
            log_ticks(axis.xaxis)
            if column != "own":
                axis.axhline(EVEN, color=GREY, lw=0.8, ls=":")
        axes[0].set_ylabel("share")
        axes[-1].legend(**CORNER)
    return figure


def over_noise(axis: Any, seeds: list[Table], column: str, variant: str) -> None:
    """A level at which nothing has an effect has no value."""
    each: dict[float, list[float]] = {}
    for row in (r for some in seeds for r in some if r.get(column) is not None):
        each.setdefault(row["sigma"], []).append(row[column])
    if not each:
        return
    sigma, values = zip(*sorted(each.items()), strict=True)
    low, high = [min(v) for v in values], [max(v) for v in values]
    axis.fill_between(sigma, low, high, color=color(variant), alpha=0.15, lw=0)
    style = {"ls": "--" if "L" in variant else "-", "label": title(variant)}
    style |= {"marker": shape(variant), "ms": 3 if shape(variant) == "o" else 6}
    axis.plot(sigma, [fmean(v) for v in values], color=color(variant), **style)


def log_ticks(axis: Any) -> None:
    """Ticks at 1, 3, 10, 30 ... (1, 2, 5, 10 ... where the range is short), written out."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = axis.get_view_interval()
    steps = (1, 3) if high / low > 30 else (1, 2, 5) if high / low > 4 else (1, 1.5, 2, 3, 4, 5, 7)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [m * 10.0**k for k in decades for m in steps if low <= m * 10.0**k <= high]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def maps(rows: Table, folder: Path) -> list[Figure]:
    """The heat lies among the study's samples; without it there are no maps."""
    figure = Figure(
        "maps",
        "What a pixel depends on",
        "The ring is the pixel, at one of the locations. Heat: how much every other pixel changes "
        "its denoised value. A cross is a location, as bright as its effect on that pixel. Both on "
        "one logarithmic scale of four decades; first seed, end of training, mean over noises.",
    )
    main = [v for v in in_order(rows) if v in NAMES and rows.where(kind="map", variant=v)]
    paths = {v: run_sheet(rows, v, folder, "maps") for v in main}
    held = {v: path for v, path in paths.items() if path.is_file()}
    if not held:
        return []
    times = sorted(rows.where(kind="map").unique("t"))
    size = (1.75 * len(times) + 1.7, 1.75 * len(held) + 0.3)
    with canvas(folder, figure, len(held), len(times), size=size, squeeze=False) as axes:
        for line, (variant, path) in zip(axes, held.items(), strict=True):
            some = next(iter(last(rows, variant, "map").values()))
            for axis, time, heat in zip(line, times, read_heat(path, len(times)), strict=True):
                here = list(some.where(t=time))
                text = f"sigma {here[0]['sigma']:.2g}" if axis in axes[0] else ""
                plot_map(axis, as_map(here, heat), text)
            name = title(variant).replace(": ", ":\n").replace(", whole", ",\nwhole")
            line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    return [figure]


def as_map(rows: list[dict[str, Any]], heat: torch.Tensor) -> LocalityMap:
    """The rows of one map with its heat."""
    at, effect = torch.tensor([[r["x"], r["y"]] for r in rows]), [r["effect"] for r in rows]
    return LocalityMap(heat, torch.tensor(effect), at, (rows[0]["row"], rows[0]["column"]))


def plot_map(axis: "Axes", shown: LocalityMap, title: str = "") -> None:
    """Heat and crosses on one logarithmic scale of DECADES, from black and faint to full; the
    pixel is ringed."""
    from matplotlib.colors import LogNorm

    (h, w), least = shown.heat.shape, 10.0**-DECADES
    heat = shown.heat.cpu().clamp(min=least)
    strength = 1 + shown.effect.cpu().clamp(min=least).log10() / DECADES
    scale = {"cmap": "magma", "norm": LogNorm(least, 1), "interpolation": "nearest"}
    axis.imshow(heat, extent=(0, w, h, 0), **scale)
    for (x, y), bright in zip(shown.at.tolist(), strength.tolist(), strict=True):
        axis.plot(x * w, y * h, "x", color="white", ms=11, mew=3.4, alpha=0.25)
        axis.plot(x * w, y * h, "x", color="#4CC9F0", ms=10, mew=2.4, alpha=bright)
    row, column = shown.pixel
    axis.plot(column + 0.5, row + 0.5, "o", color="#7CFC8A", ms=7, mfc="none", mew=1.5)
    axis.set(xticks=[], yticks=[], xlim=(0, w), ylim=(h, 0))
    axis.set_title(title)
    axis.grid(False)
