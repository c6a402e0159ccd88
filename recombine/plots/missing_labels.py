"""Answers of the exact model where labels are left out of training, from rows alone."""

from pathlib import Path
from typing import Any

from matplotlib import colormaps

from recombine.analysis.missing_labels import CORRECT, LEVEL1, LEVEL2
from recombine.analysis.paper_probe import with_paper_probe
from recombine.analysis.table import Table
from recombine.plots.label_dropout import what_it_costs
from recombine.plots.style import CYCLE, GREY, INK, Figure, canvas

TITLES = {
    ("classes", False): "classes, single labels left out",
    ("classes", True): "classes, all labels at once",
    ("values", False): "true values that vary",
}


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
        "often a label (left) or all labels of a picture (middle) are left out.",
    )
    with canvas(folder, figure, 1, len(TITLES), size=(11.0, 3.3), sharey=True) as axes:
        for axis, ((labels, together), title) in zip(axes, TITLES.items(), strict=True):
            for label, some, color in lines(rows, labels, together):
                plot(axis, some, label, color)
            axis.axhline(CORRECT, color=GREY, lw=0.8, ls="--")
            axis.axhline(0, color=GREY, lw=0.5)
            axis.set(title=title, xscale="log", xlabel="time", ylim=(-1.03, 1.06))
            axis.legend(loc="lower right", fontsize=8, ncols=2)
        axes[0].set_ylabel("agreement with the prompt")
    return figure


def lines(rows: Table, labels: str, together: bool) -> list[tuple[str, Table, Any]]:
    """What the legend says, its rows, its colour: first where all labels are given."""
    some = rows.where(kind="answer", labels=labels)
    if labels == "values":
        named = (
            ("all given", False, INK),
            ("single, ", False, CYCLE[1]),
            ("at once, ", True, CYCLE[0]),
        )
        most = max(some.column("missing"))
        kept = [(text, 0.0 if i == 0 else most, how, c) for i, (text, how, c) in enumerate(named)]
        return [
            (text + (f"{p:.0%}" if p else ""), some.where(missing=p, together=how), color)
            for text, p, how, color in kept
        ]
    shares = [p for p in sorted(some.where(together=together).unique("missing")) if p]
    shades = [colormaps["viridis_r"](0.2 + 0.8 * i / len(shares)) for i in range(len(shares))]
    given = ("all given", some.where(missing=0.0), INK)
    left_out = zip(shares, shades, strict=True)
    return [
        given,
        *((f"{p:.3g}", some.where(missing=p, together=together), c) for p, c in left_out),
    ]


def plot(axis: Any, some: Table, label: str, color: Any) -> None:
    for code, style in ((LEVEL1, {"lw": 0.8, "alpha": 0.6}), (LEVEL2, {"lw": 2.0, "label": label})):
        line = some.where(composition=code)
        axis.plot(line.column("time"), line.column("agreement"), color=color, **style)
