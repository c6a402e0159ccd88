"""Figures of `receptive-field`: K_max of each reach, what fits into its patch, and samples."""

from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.analysis.receptive_field import bases_of, fullness, many, missed, reaches_of
from recombine.analysis.scenes import last, numbers_of, reached, variant_facts_of
from recombine.analysis.table import Table
from recombine.plots.scene_pictures import color, run_sheet, shape, strips, title
from recombine.plots.style import GREY, Figure, canvas


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [reach(rows, folder), *samples(rows, folder)]


def reach(rows: Table, folder: Path) -> Figure:
    number = many(rows)
    figure = Figure(
        "reach",
        "A patch can be too small, and too large",
        "Left: K_max over the number of cells that a patch extends in every direction (dots are "
        "seeds; dashed, with crosses: U-Nets on patches, of which those as large as the picture were "
        "trained more briefly and prompted for fewer locations); dotted, the largest number of "
        "objects in training. Middle: "
        "false positives per location, up to twice that number, where training conditions on all "
        "objects; and what the world says: the share of objects that a patch cuts. Right: the "
        f"share of {number} locations that each network misses, over the share of patches that "
        "hold more of them than training conditions on; the number beside a point is its reach.",
    )
    with canvas(folder, figure, 1, 3, size=(11.5, 3.4)) as axes:
        for base in bases_of(rows):
            lengths(axes[0], rows, base)
            misses(axes[2], rows, base)
        false_positives(axes[1], rows)
        ticks = sorted(rows.where(kind="fit").unique("reach"))
        for axis in axes[:2]:
            axis.set(xlabel="reach, in cells", xticks=ticks)
        for axis in axes:
            axis.legend(fontsize=8)
        axes[2].set(xlabel="patches too full", ylabel=f"of {number} locations missed")
        axes[2].set(xlim=(-0.04, 1.09), ylim=(-0.02, None))
    return figure


def lengths(axis: Any, rows: Table, base: str) -> None:
    """K_max over the reach of one experiment."""
    variants, ink = reaches_of(rows, base), color(base)
    each = {r: list(reached(rows, variant).values()) for r, variant in variants.items()}
    style = {"color": ink, "ls": "-" if shape(base) == "o" else "--"}
    axis.plot(list(each), [fmean(v) for v in each.values()], label=title(base), **style)
    for r, values in each.items():
        axis.plot([r] * len(values), values, shape(base), color=ink, ms=5)
    trained = variant_facts_of(rows, next(iter(variants.values())))["trained"]
    axis.axhline(trained, color=GREY, lw=0.8, ls=":")
    axis.set(ylabel="K_max", ylim=(-0.2, numbers_of(rows)[-1] + 0.5))


def false_positives(axis: Any, rows: Table) -> None:
    """Only where training conditions on all objects is a further one an error."""
    for base in bases_of(rows):
        variants = reaches_of(rows, base)
        about = variant_facts_of(rows, next(iter(variants.values())))
        if about["strict"]:
            few = [k for k in numbers_of(rows) if k <= 2 * about["trained"]]
            each = {
                r: [surplus(s, few) for s in last(rows, v).values()] for r, v in variants.items()
            }
            ends = [fmean(v) for v in each.values()]
            style = {"color": color(base), "ls": "-" if shape(base) == "o" else "--"}
            axis.plot(list(each), ends, label=f"false positives, {title(base)}", **style)
            for r, seeds in each.items():
                axis.plot([r] * len(seeds), seeds, shape(base), color=color(base), ms=4)
    cut = {r["reach"]: 1 - r["inside"] for r in rows.where(kind="fit")}
    style = {"color": GREY, "ls": "--", "marker": "s", "ms": 3, "label": "objects that are cut"}
    axis.plot(list(cut), list(cut.values()), **style)
    axis.set(ylabel="share", ylim=(-0.03, None))


def surplus(some: Table, few: list[int]) -> float:
    """Objects beyond the number of locations, per location, at some numbers of locations."""
    rows = [r for r in some if r["locations"] in few]
    return fmean(max(0.0, r["total"] - r["locations"]) / r["locations"] for r in rows)


def misses(axis: Any, rows: Table, base: str) -> None:
    """What the networks of one experiment miss over how full their patches are."""
    lost, share, ink = missed(rows), fullness(rows), color(base)
    ends = []
    for r, variant in reaches_of(rows, base).items():
        if variant not in lost:
            continue
        values, full = list(lost[variant].values()), share[variant]
        axis.plot([full] * len(values), values, shape(base), color=ink, ms=4, alpha=0.6)
        beside = {"textcoords": "offset points", "fontsize": 8, "va": "center"}
        axis.annotate(str(r), (full, fmean(values)), (5, 0), color=ink, **beside)
        ends.append((full, fmean(values)))
    style = {"lw": 1, "ls": "-" if shape(base) == "o" else "--"}
    axis.plot(*zip(*sorted(ends), strict=True), color=ink, label=title(base), **style)


def samples(rows: Table, folder: Path) -> list[Figure]:
    figure = Figure(
        "samples",
        "Samples of each reach",
        "The first picture for each number of locations, not chosen; the first seed. Green cross: "
        "the location was located; red: it was not. The same locations and noise in every row.",
    )
    sheets = {
        v: (run_sheet(rows, v, folder), numbers_of(rows.where(variant=v)))
        for v in rows.where(kind="fit").column("variant")
    }
    return strips(folder, figure, sheets, tuple(numbers_of(rows)))
