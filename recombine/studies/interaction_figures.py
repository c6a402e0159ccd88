"""The figures of `interactions`, from rows alone."""

from pathlib import Path
from typing import Any

from recombine.plots.style import CYCLE, Figure, canvas
from recombine.studies.base import Rows

TITLES = {"apart": "shapes share nothing", "alike": "all factors alike", "sums": "sums come first"}
COMPOSITIONS = {
    "011": "small blue circle",
    "101": "small red triangle",
    "110": "large blue triangle",
    "111": "small blue triangle",
}
RIGHT = 0.5
"""Where an answer counts as right: a quarter of the way from the class that was asked for to the other one."""


def draw(rows: Rows, folder: Path) -> list[Figure]:
    return [amounts(rows, folder), layout(rows, folder), kinds(rows, folder), pace(rows, folder)]


def amounts(rows: Rows, folder: Path) -> Figure:
    figure = Figure(
        "amounts",
        "Small blue triangles, by how much varies inside a class",
        "The worst of colour and size: 1 as asked for, -1 the opposite, 0 in the middle (violet). Above the dashed line an "
        "answer counts as right. Thin: small red triangles, one factor away from what was seen. Compare the study variation.",
    )
    return curves(rows, folder, figure, "variation", ("111", "101"))


def layout(rows: Rows, folder: Path) -> Figure:
    figure = Figure(
        "layout",
        "Small blue triangles, by which pictures vary more",
        "As above; all pictures vary as usual, and those of the named shapes more. Where shapes share nothing, circles lies on "
        "nowhere and triangles on everywhere. Compare the study where.",
    )
    return curves(rows, folder, figure, "where", ("111",))


def curves(rows: Rows, folder: Path, figure: Figure, study: str, shown: tuple[str, ...]) -> Figure:
    """A panel per prior, a line per world; the first composition bold, the others thin."""
    some = rows.where(kind="answer", study=study)
    worlds = list(dict.fromkeys(some.column("world")))
    with canvas(folder, figure, 1, len(TITLES), size=(9.6, 3.0), sharey=True) as axes:
        for axis, (prior, title) in zip(axes, TITLES.items(), strict=True):
            for i, (world, color) in enumerate(zip(worlds, CYCLE, strict=False)):
                for code in reversed(shown):
                    line = some.where(prior=prior, world=world, composition=code)
                    bold = code == shown[0]
                    style = {"lw": 2.2 - 0.35 * i, "label": world} if bold else {"lw": 0.8, "alpha": 0.6}
                    axis.plot(line.column("time"), line.column("right"), color=color, **style)
            axis.axhline(RIGHT, color="0.6", lw=0.8, ls="--")
            axis.set(title=title, xscale="log", xlabel="time", ylim=(-1.03, 1.06))
        axes[0].set_ylabel("as asked for")
        axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def kinds(rows: Rows, folder: Path) -> Figure:
    """What comes in the end: compositions over worlds, a table per prior."""
    figure = Figure(
        "kinds",
        "What varies, and what comes",
        "Answers at the end: the worst of colour and size, 1 as asked for, -1 the opposite. Compare the study which.",
    )
    some = rows.where(kind="end", study="which")
    worlds = list(dict.fromkeys(some.column("world")))
    with canvas(folder, figure, 1, len(TITLES), size=(9.6, 2.7), sharey=True) as axes:
        for axis, (prior, title) in zip(axes, TITLES.items(), strict=True):
            values = [
                [some.where(prior=prior, world=w, composition=c)[0]["right"] for w in worlds] for c in COMPOSITIONS
            ]
            axis.imshow(values, vmin=-1, vmax=1, cmap="RdBu", aspect="auto")
            write(axis, values)
            axis.set(title=title, xticks=range(len(worlds)), xticklabels=worlds)
            axis.grid(visible=False)
        axes[0].set_yticks(range(len(COMPOSITIONS)), list(COMPOSITIONS.values()))
    return figure


def write(axis: Any, values: list[list[float]]) -> None:
    """Numbers into the cells of a table."""
    for y, row in enumerate(values):
        for x, value in enumerate(row):
            axis.text(x, y, f"{value:.2f}", ha="center", va="center", color="white" if abs(value) > 0.6 else "black")


def pace(rows: Rows, folder: Path) -> Figure:
    figure = Figure(
        "pace",
        "How long it takes",
        "When an answer is nine tenths right, over the spread inside classes. Circles: small red triangles; squares: small "
        "blue ones. Dashed: inverse square and inverse fourth power.",
    )
    some = rows.where(kind="pace")
    with canvas(folder, figure, 1, 1, size=(6.6, 3.2)) as axis:
        for prior, color in zip(TITLES, CYCLE, strict=False):
            for code, marker in (("101", "o"), ("111", "s")):
                line = some.where(prior=prior, composition=code)
                label = TITLES[prior] if code == "101" else None
                axis.plot(
                    line.column("spread"), line.column("time"), color=color, marker=marker, ms=4, lw=1.2, label=label
                )
        for code, power in (("101", -2), ("111", -4)):
            start = some.where(prior="apart", composition=code)[0]
            widths = [start["spread"], start["spread"] / 16]
            axis.plot(
                widths, [0.6 * start["time"] * (w / widths[0]) ** power for w in widths], color="0.6", lw=0.8, ls="--"
            )
        axis.set(xscale="log", yscale="log", xlabel="spread (1 = half the way to the other class)", ylabel="time")
        axis.set_xticks(ticks := [0.05, 0.1, 0.2, 0.5], [f"{t:g}" for t in ticks])
        axis.minorticks_off()
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
