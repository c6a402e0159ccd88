"""Answers of the exact model of composition, from rows alone."""

from pathlib import Path
from typing import Any

from recombine.analysis.table import Table
from recombine.plots.style import BESIDE, CYCLE, GREY, Figure, canvas, write_values

TITLES = {
    "apart": "shapes share nothing",
    "alike": "all factors alike",
    "sums": "sums come first",
}
COMPOSITIONS = {
    "011": "small blue circle",
    "101": "small red triangle",
    "110": "large blue triangle",
    "111": "small blue triangle",
}
CORRECT = 0.5
"""From where an answer counts as correct: a quarter of the distance from the class that was
prompted for to the other one."""


def figures(rows: Table, folder: Path) -> list[Figure]:
    makers = (by_amount, by_shape, by_factor, pace)
    return [make(rows, folder) for make in makers]


def by_amount(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "jitter",
        "Small blue triangles, by within-class jitter",
        "The worst of colour and size: 1 as prompted for, -1 the opposite, 0 in the middle. Above "
        "the dashed line an answer counts as correct. Thin: small red triangles, one factor away "
        "from what was seen. Compare the study jitter.",
    )
    return curves(rows, folder, figure, "jitter", ("111", "101"))


def by_shape(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "jitter-by-shape",
        "Small blue triangles, by which pictures have wide jitter",
        "As above; all pictures have the usual jitter, and those of the named shapes more. Where "
        "shapes share nothing, circles coincides with nowhere and triangles with everywhere. "
        "Compare the study jitter-by-shape.",
    )
    return curves(rows, folder, figure, "jitter-by-shape", ("111",))


def curves(rows: Table, folder: Path, figure: Figure, study: str, shown: tuple[str, ...]) -> Figure:
    """A panel per prior, a line per world; the first composition bold, the others thin."""
    some = rows.where(kind="answer", mirrors=study)
    worlds = some.unique("world")
    with canvas(folder, figure, 1, len(TITLES), size=(9.6, 3.0), sharey=True) as axes:
        for axis, (prior, title) in zip(axes, TITLES.items(), strict=True):
            for i, (world, color) in enumerate(zip(worlds, CYCLE, strict=False)):
                for code in reversed(shown):
                    line = some.where(prior=prior, world=world, composition=code)
                    bold = {"lw": 2.2 - 0.35 * i, "label": world}
                    style = bold if code == shown[0] else {"lw": 0.8, "alpha": 0.6}
                    axis.plot(line.column("time"), line.column("agreement"), color=color, **style)
            axis.axhline(CORRECT, color=GREY, lw=0.8, ls="--")
            axis.set(title=title, xscale="log", xlabel="time", ylim=(-1.03, 1.06))
        axes[0].set_ylabel("agreement with the prompt")
        axes[-1].legend(**BESIDE)
    return figure


def by_factor(rows: Table, folder: Path) -> Figure:
    """At the end of training: compositions over worlds, a table per prior."""
    figure = Figure(
        "jitter-by-factor",
        "Which factor varies, and which answer is correct",
        "Answers at the end: the worst of colour and size, 1 as prompted for, -1 the opposite.",
    )
    some = rows.where(kind="end", mirrors="jitter-by-factor")
    worlds = some.unique("world")
    with canvas(folder, figure, 1, len(TITLES), size=(9.6, 2.7), sharey=True) as axes:
        for axis, (prior, title) in zip(axes, TITLES.items(), strict=True):
            mine = some.where(prior=prior)
            values = [
                [mine.one(world=w, composition=c)["agreement"] for w in worlds]
                for c in COMPOSITIONS
            ]
            axis.imshow(values, vmin=-1, vmax=1, cmap="RdBu", aspect="auto")
            write_values(axis, values)
            axis.set(title=title, xticks=range(len(worlds)), xticklabels=worlds)
            axis.grid(visible=False)
        axes[0].set_yticks(range(len(COMPOSITIONS)), list(COMPOSITIONS.values()))
    return figure


def pace(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "pace",
        "How long it takes",
        "When an answer first agrees to nine tenths, over the spread inside classes. Circles: "
        "small "
        "red triangles; squares: small blue ones. Dashed: inverse square and inverse fourth power.",
    )
    some = rows.where(kind="pace")
    with canvas(folder, figure, 1, 1, size=(6.6, 3.2)) as axis:
        for prior, color in zip(TITLES, CYCLE, strict=False):
            for code, marker in (("101", "o"), ("111", "s")):
                line = some.where(prior=prior, composition=code)
                style = {"color": color, "marker": marker, "ms": 4, "lw": 1.2}
                label = TITLES[prior] if code == "101" else None
                axis.plot(line.column("spread"), line.column("time"), label=label, **style)
        for code, power in (("101", -2), ("111", -4)):
            guide(axis, some.where(prior="apart", composition=code), power)
        axis.set(xscale="log", yscale="log", ylabel="time")
        axis.set_xlabel("spread (1 = half of the distance to the other class)")
        ticks = [0.05, 0.1, 0.2, 0.5]
        axis.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axis.minorticks_off()
        axis.legend(**BESIDE)
    return figure


def guide(axis: Any, line: Table, power: int) -> None:
    """A dashed power law through a little below the first point; nothing where there is none."""
    for start in list(line)[:1]:
        widths = [start["spread"], start["spread"] / 16]
        heights = [0.6 * start["time"] * (w / widths[0]) ** power for w in widths]
        axis.plot(widths, heights, color=GREY, lw=0.8, ls="--")
