"""The figures of `reach`: how far each reach gets, what fits into its patch, and what is drawn."""

from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.figures import CYCLE, Figure, canvas
from recombine.measure.counting import k_mean
from recombine.studies.base import Rows
from recombine.studies.scenes.length_figures import GREY, marks_of
from recombine.studies.scenes.outcomes import facts, last, reached
from recombine.studies.scenes.strips import last_sheet, strips

MANY = 9
"""Marks at which it is shown what is missed, or as many as were tried."""


def draw(rows: Rows, folder: Path) -> list[Figure]:
    return [reach(rows, folder), *samples(rows, folder)]


def reaches(rows: Rows) -> dict[int, str]:
    """Each reach and its variant, smallest first."""
    return {r["reach"]: r["variant"] for r in rows.where(kind="fit")}


def reach(rows: Rows, folder: Path) -> Figure:
    marks = marks_of(rows)
    many = max(k for k in marks if k <= MANY)
    figure = Figure(
        "reach",
        "A patch can be too small, and too large",
        "Over the number of cells that a patch extends in every direction. Left: K_max (dots are seeds; dashed: by means); "
        "dotted, the largest number of objects in training. Middle: how many objects too many there are for each mark, up to "
        "twice that number, and what the world says: the share of objects that a patch cuts. Right: the share "
        f"of {many} marks that are missed, and the share of patches that hold more marks than any training picture had.",
    )
    with canvas(folder, figure, 1, 3, size=(11.5, 3.2)) as axes:
        lengths(axes[0], rows)
        few = [k for k in marks if k <= 2 * facts(rows, next(iter(reaches(rows).values())))["trained"]]
        too_many = lambda some: fmean(max(0.0, r["total"] - r["marks"]) / r["marks"] for r in some if r["marks"] in few)  # noqa: E731
        beside(axes[1], rows, too_many, "objects too many per mark", CYCLE[1])
        cut = [1 - r["inside"] for r in rows.where(kind="fit")]
        axes[1].plot(list(reaches(rows)), cut, color=GREY, ls="--", marker="s", ms=3, label="objects that are cut")
        beside(axes[2], rows, lambda some: 1 - some.one(marks=many)["hits"], f"of {many} marks missed", CYCLE[2])
        over = rows.where(kind="overfull", marks=many).column("share")
        axes[2].plot(list(reaches(rows)), over, color=GREY, ls="--", marker="s", ms=3, label="patches too full")
        for axis in axes:
            axis.set(xlabel="reach, in cells", xticks=list(reaches(rows)))
            axis.legend(fontsize=8)
        for axis in axes[1:]:
            axis.set_ylim(-0.03, None)
            axis.set_ylabel("share")
    return figure


def lengths(axis: Any, rows: Rows) -> None:
    each = {r: reached(rows, variant) for r, variant in reaches(rows).items()}
    axis.plot(list(each), [f.mean for f in each.values()], color=CYCLE[0], label="K_max")
    for r, found in each.items():
        axis.plot([r] * len(found.values), found.values, "o", color=CYCLE[0], ms=4.5)
    mild = [reached(rows, variant, by=k_mean).mean for variant in reaches(rows).values()]
    axis.plot(list(each), mild, color=CYCLE[0], ls="--", lw=1, label="by means")
    axis.axhline(facts(rows, next(iter(reaches(rows).values())))["trained"], color=GREY, lw=0.8, ls=":")
    axis.set(ylabel="K_max", ylim=(-0.2, marks_of(rows)[-1] + 0.5))


def beside(axis: Any, rows: Rows, value: Any, label: str, ink: str) -> None:
    """A measured value of every reach: seeds as dots, their mean as a line."""
    each = {r: [value(some) for some in last(rows, variant).values()] for r, variant in reaches(rows).items()}
    axis.plot(list(each), [fmean(v) for v in each.values()], color=ink, label=label)
    for r, values in each.items():
        axis.plot([r] * len(values), values, "o", color=ink, ms=4)


def samples(rows: Rows, folder: Path) -> list[Figure]:
    figure = Figure(
        "samples",
        "What each reach draws",
        "The first picture for each number of marks, not chosen; the first seed. Green cross: the mark was hit; red: it was "
        "not. The same marks and noise in every row.",
    )
    sheets, marks = {v: last_sheet(rows, v, folder) for v in reaches(rows).values()}, marks_of(rows)
    return strips(folder, figure, sheets, marks, tuple(marks))
