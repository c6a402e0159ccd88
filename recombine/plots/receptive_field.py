"""Figures of `receptive-field`: K_max of each reach, what fits into its patch, and samples."""

from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.analysis.receptive_field import bases_of, fullness, many, missed, reaches_of
from recombine.analysis.scenes import PAPER, numbers_of, reached, variant_facts_of
from recombine.analysis.table import Table
from recombine.plots.scene_pictures import color, run_sheet, shape, strips, title
from recombine.plots.style import GREY, Figure, canvas

PAPERS_REACH = 2
"""The reach of paper B's local networks, of 16 cells across the picture."""


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [reach(rows, folder), *samples(rows, folder)]


def reach(rows: Table, folder: Path) -> Figure:
    number = many(rows)
    figure = Figure(
        "reach",
        "K_max falls as patches grow",
        "Left: K_max over the reach, the number of cells that a patch extends in every direction (dots "
        "are seeds; solid: tokens; dashed, with crosses: U-Nets on patches, of which those as large as "
        "the picture were trained more briefly and prompted for fewer locations); diamond: the paper; "
        "dotted: the largest number of objects in training. Middle, known from the world alone: the "
        f"share of objects that a patch cuts, and of patches that hold more of {number} locations than "
        f"training conditions on. Right: the share of {number} locations that each network misses, "
        "over the share of patches too full; the number beside a point is its reach.",
    )
    with canvas(folder, figure, 1, 3, size=(11.5, 3.4)) as axes:
        for base in bases_of(rows):
            lengths(axes[0], rows, base)
            misses(axes[2], rows, base)
        of_the_world(axes[1], rows)
        ticks = sorted(rows.where(kind="fit").unique("reach"))
        for axis in axes[:2]:
            axis.set(xlabel="reach of a patch, in cells", xticks=ticks)
        for axis in axes:
            axis.legend(fontsize=8)
        axes[2].set(xlabel="patches too full", ylabel=f"of {number} locations missed")
        axes[2].set(xlim=(-0.04, 1.09), ylim=(-0.02, None))
    return figure


def lengths(axis: Any, rows: Table, base: str) -> None:
    """K_max over the reach of one experiment."""
    variants, ink = reaches_of(rows, base), color(base)
    each = {r: list(reached(rows, variant).values()) for r, variant in variants.items()}
    axis.plot(list(each), [fmean(v) for v in each.values()], label=title(base), **line_of(base))
    for r, values in each.items():
        axis.plot([r] * len(values), values, shape(base), color=ink, ms=5)
    if base in PAPER and PAPERS_REACH in each:
        axis.plot([PAPERS_REACH], [PAPER[base]], "D", mfc="none", mec=ink, ms=8)
    trained = variant_facts_of(rows, next(iter(variants.values())))["trained"]
    axis.axhline(trained, color=GREY, lw=0.8, ls=":")
    axis.set(ylabel="K_max", ylim=(-0.2, numbers_of(rows)[-1] + 0.5))


def line_of(base: str) -> dict[str, Any]:
    """Networks on tokens and U-Nets on patches differ in their lines."""
    return {"color": color(base), "ls": "-" if shape(base) == "o" else "--"}


def of_the_world(axis: Any, rows: Table) -> None:
    """What is known of each reach before training; patches too full where experiments are conditioned
    alike are the same for tokens and U-Nets."""
    cut = {r["reach"]: 1 - r["inside"] for r in rows.where(kind="fit")}
    ends = {"marker": "s", "ms": 3}
    axis.plot(list(cut), list(cut.values()), color=GREY, ls="--", label="objects cut", **ends)
    full = fullness(rows)
    for base in (b for b in bases_of(rows) if "patches" not in b):
        share = {r: full[v] for r, v in reaches_of(rows, base).items()}
        name = f"patches too full, {title(base).partition(':')[0]}"
        axis.plot(list(share), list(share.values()), color=color(base), label=name, **ends)
    axis.set(ylabel="share", ylim=(-0.03, 1.03))


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
    axis.plot(*zip(*sorted(ends), strict=True), label=title(base), lw=1, **line_of(base))


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
