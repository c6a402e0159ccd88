"""The figures of `reach`: how far each reach gets, what fits into its patch, and what is drawn."""

from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.plots.style import Figure, canvas
from recombine.evaluate.counting import k_mean
from recombine.studies.base import Rows
from recombine.studies.scenes.length_figures import GREY, color
from recombine.studies.scenes.outcomes import facts, last, marks_of, reached, title
from recombine.studies.scenes.reach_outcomes import bases, fullness, missed, reaches
from recombine.studies.scenes.strips import last_sheet, strips


def draw(rows: Rows, folder: Path) -> list[Figure]:
    return [reach(rows, folder), *samples(rows, folder)]


def reach(rows: Rows, folder: Path) -> Figure:
    many = missed(rows)[1]
    figure = Figure(
        "reach",
        "A patch can be too small, and too large",
        "Left: K_max over the number of cells that a patch extends in every direction (dots are seeds; dashed: by means); "
        "dotted, the largest number of objects in training. Middle: how many objects too many there are for each location, up to "
        "twice that number, where all objects are told in training; and what the world says: the share of objects that a patch "
        f"cuts. Right: the share of {many} locations that each network misses, over the share of patches that hold more of them "
        "than training told of; the number beside a point is its reach.",
    )
    with canvas(folder, figure, 1, 3, size=(11.5, 3.4)) as axes:
        for base in bases(rows):
            lengths(axes[0], rows, base)
            misses(axes[2], rows, base)
        torn(axes[1], rows)
        for axis in axes[:2]:
            axis.set(xlabel="reach, in cells", xticks=sorted({r["reach"] for r in rows.where(kind="fit")}))
        for axis in axes:
            axis.legend(fontsize=8)
        axes[2].set(xlabel="patches too full", ylabel=f"of {many} locations missed", xlim=(-0.04, 1.09), ylim=(-0.02, None))
    return figure


def lengths(axis: Any, rows: Rows, base: str) -> None:
    each = {r: reached(rows, variant) for r, variant in reaches(rows, base).items()}
    axis.plot(list(each), [f.mean for f in each.values()], color=color(base), label=title(base))
    for r, found in each.items():
        axis.plot([r] * len(found.values), found.values, "o", color=color(base), ms=4.5)
    mild = [reached(rows, variant, by=k_mean).mean for variant in reaches(rows, base).values()]
    axis.plot(list(each), mild, color=color(base), ls="--", lw=1)
    axis.axhline(facts(rows, next(iter(reaches(rows, base).values())))["trained"], color=GREY, lw=0.8, ls=":")
    axis.set(ylabel="K_max", ylim=(-0.2, marks_of(rows)[-1] + 0.5))


def torn(axis: Any, rows: Rows) -> None:
    """Only where no object goes unconditional can there be one too many."""
    for base in bases(rows):
        each = reaches(rows, base)
        about = facts(rows, next(iter(each.values())))
        if about["strict"]:
            few = [k for k in marks_of(rows) if k <= 2 * about["trained"]]
            values = {r: [too_many(some, few) for some in last(rows, v).values()] for r, v in each.items()}
            axis.plot(list(values), [fmean(v) for v in values.values()], color=color(base), label="too many per location")
            for r, seeds in values.items():
                axis.plot([r] * len(seeds), seeds, "o", color=color(base), ms=4)
    cut = {r["reach"]: 1 - r["inside"] for r in rows.where(kind="fit")}
    axis.plot(list(cut), list(cut.values()), color=GREY, ls="--", marker="s", ms=3, label="objects that are cut")
    axis.set(ylabel="share", ylim=(-0.03, None))


def too_many(some: Rows, few: list[int]) -> float:
    return fmean(max(0.0, r["total"] - r["locations"]) / r["locations"] for r in some if r["locations"] in few)


def misses(axis: Any, rows: Rows, base: str) -> None:
    found, share = missed(rows)[0], fullness(rows)
    full = {r: share[v] for r, v in reaches(rows, base).items()}
    for reach, variant in reaches(rows, base).items():
        axis.plot(
            [full[reach]] * len(found[variant].values), found[variant].values, "o", color=color(base), ms=4, alpha=0.6
        )
        at = (full[reach], found[variant].mean)
        axis.annotate(str(reach), at, (5, 0), textcoords="offset points", fontsize=8, color=color(base), va="center")
    order = sorted(reaches(rows, base), key=lambda r: full[r])
    means = [found[reaches(rows, base)[r]].mean for r in order]
    axis.plot([full[r] for r in order], means, color=color(base), lw=1, label=title(base))


def samples(rows: Rows, folder: Path) -> list[Figure]:
    figure = Figure(
        "samples",
        "What each reach draws",
        "The first picture for each number of locations, not chosen; the first seed. Green cross: the location was located; red: it was "
        "not. The same locations and noise in every row.",
    )
    variants, locations = rows.where(kind="fit").column("variant"), marks_of(rows)
    sheets = {v: last_sheet(rows, v, folder) for v in variants}
    return strips(folder, figure, sheets, locations, tuple(locations))
