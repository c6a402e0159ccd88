"""The figures of `operator`: how far each background goes, adding against telling at once, and what is drawn."""

from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.plots.style import CYCLE, Figure, canvas
from recombine.studies.base import Rows
from recombine.studies.scenes.adding import SHEET
from recombine.studies.scenes.length_figures import GREY
from recombine.studies.scenes.outcomes import judged_by, last, marks_of
from recombine.studies.scenes.strips import strips

COLORS = {
    "empty": CYCLE[0],
    "unconditional": CYCLE[1],
    "cluttered": CYCLE[2],
    "swapped": CYCLE[3],
    "mismatched": CYCLE[4],
}
MODELS = ("empty", "unconditional", "cluttered")
NAMES = {
    "empty": "empty",
    "unconditional": "unconditional (Bayes)",
    "cluttered": "cluttered",
    "swapped": "swapped: parts of\nunconditional over empty",
    "mismatched": "mismatched: empty,\nof two seeds",
}
SHOWN = (1, 2, 3, 4, 5, 6, 8, 10, 12)
"""Numbers of locations of which samples are shown, where they were tried."""


def shown(rows: Rows) -> list[str]:
    """The ways of adding that were tried."""
    return [name for name in NAMES if rows.where(kind="added", variant=name)]


def draw(rows: Rows, folder: Path) -> list[Figure]:
    heard = [leakage(rows, folder)] if rows.where(kind="leakage") else []
    return [backgrounds(rows, folder), at_once(rows, folder), *heard, *samples(rows, folder)]


def plot(axis: Any, seeds: dict[int, Rows], column: str, **style: Any) -> None:
    """Each seed thin, their mean bold, over the number of locations."""
    curves = [[(r["locations"], r[column]) for r in some] for some in seeds.values()]
    for points in curves if len(curves) > 1 else []:
        axis.plot(*zip(*points, strict=True), **{**style, "lw": 0.7, "alpha": 0.5, "label": None})
    mean = [(points[0][0], fmean(y for _, y in points)) for points in zip(*curves, strict=True)]
    axis.plot(*zip(*mean, strict=True), marker="o", ms=3, **style)


def backgrounds(rows: Rows, folder: Path) -> Figure:
    figure = Figure(
        "backgrounds",
        "Scores added over three backgrounds",
        "Pictures drawn by adding what each location alone adds to the background. Left: the share that is judged, with every location "
        "located and, but for the cluttered model, no object more; K_max is the last number before it falls below one half. "
        "Grey, dashed: real pictures of the same scenes whose locations are all located, by the same detector. Middle: the share of "
        "locations that are located. Right: how many objects there are; dotted, as many as locations. Thin lines are seeds.",
    )
    with canvas(folder, figure, 1, 3, size=(12.5, 3.2)) as axes:
        for variant in shown(rows):
            dash, name = "-" if variant in MODELS else "--", NAMES[variant]
            for axis, column in zip(axes, (judged_by(rows, variant), "recall", "total"), strict=True):
                plot(axis, last(rows, variant, "added"), column, color=COLORS[variant], ls=dash, label=name)
        locations = marks_of(rows, "added")
        real = rows.where(kind="real")
        axes[0].plot(real.column("locations"), real.column("complete"), color=GREY, lw=1.1, ls="--", label="real pictures")
        axes[0].axhline(0.5, color=GREY, lw=0.8, ls=":")
        axes[2].plot(locations, locations, color=GREY, lw=0.8, ls=":")
        axes[0].set(title="pictures as asked for", ylabel="share of pictures", ylim=(-0.03, 1.03))
        axes[1].set(title="locations located", ylabel="share of locations", ylim=(-0.03, 1.03))
        axes[2].set(title="objects in the picture", ylabel="mean number", ylim=(0, None))
        number_of_marks(axes, locations)
        axes[2].legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def at_once(rows: Rows, folder: Path) -> Figure:
    figure = Figure(
        "at_once",
        "GivenEmbedding one by one and added, or all at once",
        "The same three models. Solid: told one location at a time, scores added. Dotted: told all locations in one call; none of them "
        "was told of more than one in training. The share that is judged, as in the figure above.",
    )
    with canvas(folder, figure, 1, 3, size=(9.5, 3.0), sharey=True) as axes:
        for axis, variant in zip(axes, MODELS, strict=True):
            column, ink = judged_by(rows, variant), COLORS[variant]
            plot(axis, last(rows, variant, "added"), column, color=ink, label="added")
            plot(axis, last(rows, variant), column, color=ink, ls=":", label="at once")
            axis.axhline(0.5, color=GREY, lw=0.8, ls=":")
            axis.set(title=NAMES[variant], ylim=(-0.03, 1.03))
            axis.legend(loc="upper right")
        axes[0].set_ylabel("share of pictures")
        number_of_marks(axes, marks_of(rows, "added"))
    return figure


def leakage(rows: Rows, folder: Path) -> Figure:
    figure = Figure(
        "leakage",
        "How much of an object each answer shows, before anything is drawn",
        "On real noisy pictures with several objects, over the noise. Left: how much of an object an answer shows that is told "
        "of another one, less what an answer shows that is told of nothing: the leakage. In a sum every further part adds it to "
        "every object. Right: what is foretold of an object in a sum of two (thin) and of four parts (bold), as a share of "
        "what its own part alone shows of it: at 0 it is gone, and far above 1 it is as under too much guidance. "
        "Means over seeds.",
    )
    with canvas(folder, figure, 1, 2, size=(9.5, 3.2)) as axes:
        for variant in shown(rows):
            level = means(rows.where(kind="leakage", variant=variant))
            style = {"color": COLORS[variant], "ls": "-" if variant in MODELS else "--"}
            axes[0].plot(
                *zip(*((s, e) for s, _, e in level), strict=True), marker="o", ms=3, label=NAMES[variant], **style
            )
            for parts, width in ((2, 0.8), (4, 1.8)):
                axes[1].plot(
                    *zip(*((s, 1 + (parts - 1) * e / own) for s, own, e in level), strict=True), lw=width, **style
                )
        sigmas = [sigma for sigma, *_ in level]
        for axis, usual in zip(axes, (0, 1), strict=True):
            axis.axhline(usual, color=GREY, lw=0.8, ls=":")
            axis.set(xscale="log", xlabel="noise (sigma)")
            axis.set_xticks(sigmas, [f"{sigma:.2g}" for sigma in sigmas])
            axis.minorticks_off()
        axes[0].set(title="the leakage of one part", ylabel="told of another - told of nothing")
        axes[1].set(title="an object in a sum of two, of four", ylabel="of what it is alone")
        axes[1].legend(*axes[0].get_legend_handles_labels(), fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def means(rows: Rows) -> list[tuple[float, float, float]]:
    """Over seeds, at each noise level: sigma, what a part shows of its own object, and its leakage."""
    levels = {r["sigma"]: rows.where(sigma=r["sigma"]) for r in rows}
    return [(sigma, fmean(some.column("own")), fmean(some.column("leakage"))) for sigma, some in sorted(levels.items())]


def number_of_marks(axes: Any, locations: list[int]) -> None:
    for axis in axes:
        axis.set_xticks(locations)
        axis.set_xlabel("locations")


def samples(rows: Rows, folder: Path) -> list[Figure]:
    figure = Figure(
        "samples",
        "What the three backgrounds draw",
        "The first picture of each number of locations, from the same noise; one seed. A cross is a location: green where an object "
        "was found, red where none was.",
    )
    runs = {v: next(iter(last(rows, v, "added").values()))[0]["run"] for v in shown(rows)}
    sheets = {v: folder.parents[1] / "runs" / run / "samples" / SHEET for v, run in runs.items()}
    return strips(folder, figure, sheets, marks_of(rows, "added"), SHOWN)
