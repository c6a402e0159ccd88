"""Figures of `operator`: how far each background goes, adding against conditioning at once,
leakage, and samples."""

from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.analysis.scenes import criterion, last, numbers_of
from recombine.analysis.table import Table
from recombine.plots.scene_pictures import run_sheet, strips
from recombine.plots.style import CYCLE, GREY, Figure, canvas

MODELS = ("empty", "unconditional", "cluttered")
NAMES = {
    "empty": "empty",
    "unconditional": "unconditional (Bayes)",
    "cluttered": "cluttered",
    "swapped": "swapped: parts of\nunconditional over empty",
    "mismatched": "mismatched: empty,\nof two seeds",
}
COLORS = dict(zip(NAMES, CYCLE, strict=False))
SHOWN = (1, 2, 3, 4, 5, 6, 8, 10, 12)
"""Numbers of locations of which samples are shown, where they were tried."""
CORNER = {"fontsize": 8, "loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}


def shown_backgrounds(rows: Table) -> list[str]:
    """The sums that were tried."""
    return [name for name in NAMES if rows.where(kind="added", variant=name)]


def figures(rows: Table, folder: Path) -> list[Figure]:
    leaks = [leakage(rows, folder)] if rows.where(kind="leakage") else []
    return [backgrounds(rows, folder), at_once(rows, folder), *leaks, *samples(rows, folder)]


def plot(axis: Any, seeds: dict[int, Table], column: str, **style: Any) -> None:
    """Each seed thin, their mean bold, over the number of locations."""
    curves = [[(r["locations"], r[column]) for r in some] for some in seeds.values()]
    for points in curves if len(curves) > 1 else []:
        axis.plot(*zip(*points, strict=True), **{**style, "lw": 0.7, "alpha": 0.5, "label": None})
    mean = [(some[0][0], fmean(y for _, y in some)) for some in zip(*curves, strict=True)]
    axis.plot(*zip(*mean, strict=True), marker="o", ms=3, **style)


def backgrounds(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "backgrounds",
        "Scores added over three backgrounds",
        "Samples from the sum of what each location alone adds to the background. Left: the share "
        "that K_max is about, with every location located and, but for the cluttered model, no "
        "object more; K_max is the last number before it falls below one half. Grey, dashed: full "
        "recall on real pictures of the same scenes, by the same detector. Middle: recall. Right: "
        "how many objects there are; dotted, as many as locations. Thin lines are seeds.",
    )
    with canvas(folder, figure, 1, 3, size=(12.5, 3.2)) as axes:
        for variant in shown_backgrounds(rows):
            style = {"ls": "-" if variant in MODELS else "--", "label": NAMES[variant]}
            columns = (criterion(rows, variant), "recall", "total")
            for axis, column in zip(axes, columns, strict=True):
                plot(axis, last(rows, variant, "added"), column, color=COLORS[variant], **style)
        numbers, real = numbers_of(rows, "added"), rows.where(kind="real")
        dashed = {"color": GREY, "lw": 1.1, "ls": "--", "label": "real pictures"}
        axes[0].plot(real.column("locations"), real.column("full_recall"), **dashed)
        axes[0].axhline(0.5, color=GREY, lw=0.8, ls=":")
        axes[2].plot(numbers, numbers, color=GREY, lw=0.8, ls=":")
        axes[0].set(title="pictures as prompted", ylabel="share of pictures", ylim=(-0.03, 1.03))
        axes[1].set(title="recall", ylabel="share of locations", ylim=(-0.03, 1.03))
        axes[2].set(title="objects in the picture", ylabel="mean number", ylim=(0, None))
        number_axes(axes, numbers)
        axes[2].legend(*axes[0].get_legend_handles_labels(), **CORNER)
    return figure


def at_once(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "at_once",
        "Conditions one by one and added, or all at once",
        "The same three models. Solid: conditioned on one location at a time, scores added. "
        "Dotted: conditioned on all locations in one call; none of them was conditioned on more "
        "than one in training. The share that K_max is about, as in the figure above.",
    )
    with canvas(folder, figure, 1, 3, size=(9.5, 3.0), sharey=True) as axes:
        for axis, variant in zip(axes, MODELS, strict=True):
            column, ink = criterion(rows, variant), COLORS[variant]
            plot(axis, last(rows, variant, "added"), column, color=ink, label="added")
            plot(axis, last(rows, variant), column, color=ink, ls=":", label="at once")
            axis.axhline(0.5, color=GREY, lw=0.8, ls=":")
            axis.set(title=NAMES[variant], ylim=(-0.03, 1.03))
            axis.legend(loc="upper right")
        axes[0].set_ylabel("share of pictures")
        number_axes(axes, numbers_of(rows, "added"))
    return figure


def leakage(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "leakage",
        "How much of an object each part shows, before anything is sampled",
        "On real noisy pictures with several objects, over the noise. Left: how much of an object "
        "a part shows that is conditioned on another one, less what the background shows: the "
        "leakage. In a sum every further part adds it to every object. Right: the predicted "
        "amplitude of an object in a sum of two (thin) and of four parts (bold), as a share of "
        "what its own part alone shows of it: at 0 it is gone, and far above 1 it is as under too "
        "much guidance. Means over seeds.",
    )
    with canvas(folder, figure, 1, 2, size=(9.5, 3.2)) as axes:
        for variant in shown_backgrounds(rows):
            sigma, own, leak = means(rows.where(kind="leakage", variant=variant))
            style = {"color": COLORS[variant], "ls": "-" if variant in MODELS else "--"}
            axes[0].plot(sigma, leak, marker="o", ms=3, label=NAMES[variant], **style)
            for parts, width in ((2, 0.8), (4, 1.8)):
                grown = [1 + (parts - 1) * e / o for o, e in zip(own, leak, strict=True)]
                axes[1].plot(sigma, grown, lw=width, **style)
        for axis, neutral in zip(axes, (0, 1), strict=True):
            axis.axhline(neutral, color=GREY, lw=0.8, ls=":")
            axis.set(xscale="log", xlabel="noise (sigma)")
            axis.set_xticks(sigma, [f"{s:.2g}" for s in sigma])
            axis.minorticks_off()
        axes[0].set(title="leakage of one part", ylabel="other object - no condition")
        axes[1].set(title="an object in a sum of two, of four", ylabel="of what it is alone")
        axes[1].legend(*axes[0].get_legend_handles_labels(), **CORNER)
    return figure


def means(rows: Table) -> tuple[list[float], list[float], list[float]]:
    """Over seeds, at each noise level: sigma, what a part shows of its own object, its leakage."""
    levels = sorted(rows.by("sigma").items())
    own, leak = ([fmean(some.column(c)) for _, some in levels] for c in ("own", "leakage"))
    return [sigma for sigma, _ in levels], own, leak


def number_axes(axes: Any, numbers: list[int]) -> None:
    for axis in axes:
        axis.set_xticks(numbers)
        axis.set_xlabel("locations")


def samples(rows: Table, folder: Path) -> list[Figure]:
    figure = Figure(
        "samples",
        "Samples over the three backgrounds",
        "The first picture of each number of locations, from the same noise; one seed. A cross is "
        "a prompted location: green where an object was located, red where none was.",
    )
    numbers = numbers_of(rows, "added")
    sheets = {
        v: (run_sheet(rows, v, folder, "added", "added"), numbers) for v in shown_backgrounds(rows)
    }
    return strips(folder, figure, sheets, SHOWN)
