"""Answers of the exact model where labels are left out of training, from rows alone."""

from pathlib import Path
from typing import Any

from matplotlib import colormaps

from recombine.analysis.missing_labels import CORRECT, LEVEL1, LEVEL2
from recombine.analysis.paper_probe import with_paper_probe
from recombine.analysis.table import Table
from recombine.plots.label_dropout import what_it_costs
from recombine.plots.style import GREY, INK, Figure, canvas

TITLES = {
    ("classes", ("null",)): "classes, single labels left out",
    ("classes", ("together", "zero")): "classes, left out in other ways",
    ("values", ("null", "together")): "true values that vary",
}
NAMES = {"null": "single", "together": "all at once", "zero": "single, false label"}
SHADES = {"null": "Oranges", "together": "Blues", "zero": "Purples"}


def figures(rows: Table, folder: Path) -> list[Figure]:
    trained = [what_it_costs(with_paper_probe(rows), folder)] if rows.where(kind="accuracy") else []
    return [over_time(rows, folder), *trained]


def over_time(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "answers",
        "Small blue triangles while labels are left out of training",
        "Agreement of the worst factor with the prompt, all labels given: 1 as prompted for, -1 the "
        "opposite; above the dashed line an answer counts as correct. Bold: small blue triangles, "
        "two factors away from what was seen; thin: large blue triangles, one away. Numbers: how "
        "often labels are left out.",
    )
    with canvas(folder, figure, 1, len(TITLES), size=(11.0, 3.3), sharey=True) as axes:
        for axis, ((labels, ways), title) in zip(axes, TITLES.items(), strict=True):
            for label, some, color in lines(rows, labels, ways):
                plot(axis, some, label, color)
            axis.axhline(CORRECT, color=GREY, lw=0.8, ls="--")
            axis.axhline(0, color=GREY, lw=0.5)
            axis.set(title=title, xscale="log", xlabel="time", ylim=(-0.85, 1.35))
            axis.legend(loc="lower right", fontsize=8, ncols=2)
        axes[0].set_ylabel("agreement with the prompt")
    return figure


def lines(rows: Table, labels: str, ways: tuple[str, ...]) -> list[tuple[str, Table, Any]]:
    """What the legend says, its rows, its colour: first where all labels are given."""
    some = rows.where(kind="answer", labels=labels)
    made = [("all given", some.where(missing=0.0), INK)]
    for way in ways:
        mine = some.where(dropped=way)
        shares = [p for p in sorted(mine.unique("missing")) if p]
        for i, p in enumerate(shares, 1):
            label = f"{p:.3g}" if len(ways) == 1 else f"{NAMES[way]}, {p:.3g}"
            color = colormaps[SHADES[way]](0.3 + 0.6 * i / len(shares))
            made.append((label, mine.where(missing=p), color))
    return made


def plot(axis: Any, some: Table, label: str, color: Any) -> None:
    for code, style in ((LEVEL1, {"lw": 0.8, "alpha": 0.6}), (LEVEL2, {"lw": 2.0, "label": label})):
        line = some.where(composition=code)
        axis.plot(line.column("time"), line.column("agreement"), color=color, **style)
