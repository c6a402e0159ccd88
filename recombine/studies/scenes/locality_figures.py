"""Figures of `locality`, from the rows: locality against length, over noise levels, and as maps."""

from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from recombine.plots.style import Figure, canvas
from recombine.evaluate.locality import RADIUS
from recombine.evaluate.locality_map import LocalityMap, draw_map
from recombine.studies.base import Rows
from recombine.studies.concept_space.axes import log_ticks
from recombine.studies.scenes.length_figures import GREY, color
from recombine.studies.scenes.outcomes import NAMES, Point, able, correlation, last, points, title, usual, variants_of
from recombine.studies.scenes.pictures import read_heat

EVEN = (2 * RADIUS) ** 2
"""The share of the picture within the square: what a denoiser that spreads its effects evenly has."""


def draw(rows: Rows, folder: Path) -> list[Figure]:
    shown = maps(rows, folder)
    return [scatter(rows, folder), levels(rows, folder), *([shown] if shown else [])]


def scatter(rows: Rows, folder: Path) -> Figure:
    figure = Figure(
        "scatter",
        "Locality and length",
        "Each point is a run at a checkpoint: how local it is in its conditions (mean over noise levels), and by how much its "
        "K_max exceeds the largest number of objects in training. Larger and fuller points are later in training; a line "
        "joins the checkpoints of one run; circles were trained on one to three objects. Points are moved a little up or down "
        "so that they do not cover each other.",
    )
    found = points(rows)
    variants = list(dict.fromkeys(p.variant for p in found))
    with canvas(folder, figure, size=(7.4, 4.4)) as axis:
        for i, variant in enumerate(variants):
            for seed in sorted({p.seed for p in found if p.variant == variant}):
                shift = 0.3 * ((i + 0.5) / len(variants) - 0.5) + 0.08 * (seed % 3 - 1)
                journey(axis, [p for p in found if (p.variant, p.seed) == (variant, seed)], shift)
        axis.axhline(0, color=GREY, lw=0.8, ls=":")
        axis.set(xlabel="conditional locality", ylabel="K_max less the trained number", xlim=(0, 1.03))
        axis.yaxis.get_major_locator().set_params(integer=True)
        axis.set_title(correlation_text(able(usual(rows)), found), fontsize=9)
        lines = [axis.plot([], [], color=color(v), marker=shape(v), ls="", label=title(v))[0] for v in variants]
        axis.legend(handles=lines, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


def journey(axis: Any, run: list[Point], shift: float) -> None:
    x, y, ink = [p.condition for p in run], [p.gain + shift for p in run], color(run[0].variant)
    axis.plot(x, y, color=ink, lw=0.7, alpha=0.5)
    for i, (a, b) in enumerate(zip(x, y, strict=True)):
        late = (i + 1) / len(run)
        axis.plot([a], [b], shape(run[0].variant), color=ink, ms=3 + 4 * late, alpha=0.35 + 0.65 * late, mew=0)


def shape(variant: str) -> str:
    """Experiments that share a colour have different shapes."""
    return "o" if variant in NAMES else "s" if variant.endswith("1 object") else "^"


def correlation_text(judged: list[Point], found: list[Point]) -> str:
    """Of the points that the claim is about, and of all that are shown."""
    try:
        text = f"rank correlation {correlation(judged):.2f} over {len(judged)} points"
        return (
            text if len(judged) == len(found) else f"{text} (circles), {correlation(found):.2f} over all {len(found)}"
        )
    except LookupError:
        return f"{len(found)} points"


def levels(rows: Rows, folder: Path) -> Figure:
    figure = Figure(
        "levels",
        "Locality at every noise level",
        "At the end of training, mean over seeds (band: smallest to largest). Pixels: share of the squared derivatives by "
        "other pixels that lie near the pixel. Conditions: share of the squared change near a location that is taken away. Own: at "
        "a location, the part of its own effect in that of all locations. Dotted: what an even spread would give.",
    )
    sizes = {"pixel": "pixels", "condition": "conditions", "own": "own"}
    with canvas(folder, figure, 1, 3, size=(11.5, 3.3), sharey=True) as axes:
        for axis, (column, name) in zip(axes, sizes.items(), strict=True):
            for variant in (v for v in variants_of(rows) if v in NAMES):
                over_noise(axis, list(last(rows, variant, "locality").values()), column, variant)
            axis.set(xscale="log", xlabel="noise level sigma", title=name, ylim=(0, 1.03))
            log_ticks(axis.xaxis)
            if column != "own":
                axis.axhline(EVEN, color=GREY, lw=0.8, ls=":")
        axes[0].set_ylabel("share")
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
    return figure


def over_noise(axis: Any, seeds: list[Rows], column: str, variant: str) -> None:
    """A level at which nothing has an effect has no value."""
    each = [(some[0]["sigma"], [r[column] for r in some if r[column] is not None]) for some in zip(*seeds, strict=True)]
    each = [(sigma, values) for sigma, values in each if values]
    if not each:
        return
    sigma, values = zip(*each, strict=True)
    axis.fill_between(sigma, [min(v) for v in values], [max(v) for v in values], color=color(variant), alpha=0.15, lw=0)
    style = {"ls": "--" if "L" in variant else "-", "label": title(variant)}
    axis.plot(sigma, [fmean(v) for v in values], color=color(variant), marker="o", ms=3, **style)


def maps(rows: Rows, folder: Path) -> Figure | None:
    """The heat lies in the folders of the runs; without it there are no maps."""
    figure = Figure(
        "maps",
        "What a pixel listens to",
        "The ring is the pixel that is asked, at one of the locations. Heat: how much every other pixel does to its denoised "
        "value. A cross is a location, as bright as its effect on that pixel. Both on one logarithmic scale of four decades; first "
        "seed, end of training, mean over noises.",
    )
    held = {v: path for v in variants_of(rows) if v in NAMES and (path := heat_of(rows, v, folder)).is_file()}
    if not held:
        return None
    times = sorted({r["t"] for r in rows.where(kind="map")})
    size = (1.75 * len(times) + 1.7, 1.75 * len(held) + 0.3)
    with canvas(folder, figure, len(held), len(times), size=size, squeeze=False) as axes:
        for line, (variant, path) in zip(axes, held.items(), strict=True):
            some = next(iter(last(rows, variant, "map").values()))
            for axis, time, heat in zip(line, times, read_heat(path, len(times)), strict=True):
                told = some.where(t=time)
                text = f"sigma {told[0]['sigma']:.2g}" if axis in axes[0] else ""
                draw_map(axis, as_map(told, heat), text)
            name = title(variant).replace(": ", ":\n").replace(", whole", ",\nwhole")
            line[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    return figure


def heat_of(rows: Rows, variant: str, folder: Path) -> Path:
    row = next(iter(last(rows, variant).values()))[0]
    return folder.parents[1] / "runs" / row["run"] / "samples" / "maps.png"


def as_map(told: Rows, heat: torch.Tensor) -> LocalityMap:
    at = torch.tensor([[r["x"], r["y"]] for r in told])
    return LocalityMap(heat, torch.tensor(told.column("effect")), at, (told[0]["row"], told[0]["column"]))
