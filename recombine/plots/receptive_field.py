"""Figures of `receptive-field`: K_max of each reach, what fits into its patch, and samples."""

from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.analysis.receptive_field import bases_of, fullness, many, missed, reaches_of
from recombine.analysis.scenes import PAPER, numbers_of, reached
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
        "K_max over the size of patches",
        "A patch of reach 1 is 3 x 3 cells. Left: dots are seeds; solid: tokens; dashed, with crosses: "
        "U-Nets on patches; open: trained more briefly and prompted for fewer locations; diamond: the "
        "paper; dotted: the most objects in training. Middle, known from the world alone: the share of "
        "objects of which a part lies outside the patch around their location; of patches that hold a "
        f"location, the share that holds more of {number} locations than training conditions on. Right: "
        f"the share of {number} locations that each network misses; numbers are reaches.",
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


def called(base: str) -> str:
    """An experiment and the form of its network."""
    form = "U-Nets on patches" if "patches" in base else "tokens"
    return f"{title(base.partition(',')[0]).partition(':')[0]}, {form}"


def line_of(base: str) -> dict[str, Any]:
    return {"color": color(base), "ls": "--" if "patches" in base else "-"}


def trained(rows: Table, base: str) -> dict[int, str]:
    """The reaches of which there are networks; what the world says needs none."""
    known = set(rows.where(kind="count").unique("variant"))
    return {r: variant for r, variant in reaches_of(rows, base).items() if variant in known}


def lengths(axis: Any, rows: Table, base: str) -> None:
    """K_max over the reach of one experiment; the forms stand side by side."""
    most, ink, aside = numbers_of(rows)[-1], color(base), 0.07 if "patches" in base else -0.07
    joined: dict[int, float] = {}
    for r, variant in trained(rows, base).items():
        values = list(reached(rows, variant).values())
        brief = numbers_of(rows.where(variant=variant))[-1] < most
        face = "none" if brief else ink
        axis.plot([r + aside] * len(values), values, shape(base), color=ink, mfc=face, ms=5)
        if not brief:
            joined[r] = fmean(values)
    axis.plot(list(joined), list(joined.values()), label=called(base), **line_of(base))
    if PAPERS_REACH in joined and PAPER.get(base, most + 1) <= most:
        axis.plot([PAPERS_REACH], [PAPER[base]], "D", mfc="none", mec=ink, ms=9)
    trained_on = max(rows.where(kind="variant").column("trained"))
    axis.axhline(trained_on, color=GREY, lw=0.8, ls=":")
    axis.set(ylabel="K_max", ylim=(-0.2, most + 0.7))


def of_the_world(axis: Any, rows: Table) -> None:
    """What is known of each reach before training. Of two forms of an experiment the first stands for
    both: their patches are alike."""
    cut = dict(sorted((r["reach"], 1 - r["inside"]) for r in rows.where(kind="fit")))
    ends = {"marker": "s", "ms": 3}
    axis.plot(list(cut), list(cut.values()), color=GREY, ls="--", label="objects cut", **ends)
    full = fullness(rows)
    for base in {b.partition(",")[0]: b for b in reversed(bases_of(rows))}.values():
        share = {r: full[v] for r, v in reaches_of(rows, base).items() if v in full}
        name = f"patches too full, {called(base).partition(',')[0]}"
        axis.plot(list(share), list(share.values()), color=color(base), label=name, **ends)
    axis.set(ylabel="share", ylim=(-0.03, 1.03))


def misses(axis: Any, rows: Table, base: str) -> None:
    """What the networks of one experiment miss over how full their patches are."""
    lost, share, ink = missed(rows), fullness(rows), color(base)
    beside = {"textcoords": "offset points", "fontsize": 8, "va": "center", "color": ink}
    ends, below = [], -5 if "patches" in base else 5
    for r, variant in trained(rows, base).items():
        if variant in lost:
            values, full = list(lost[variant].values()), share[variant]
            axis.plot([full] * len(values), values, shape(base), color=ink, ms=4, alpha=0.6)
            axis.annotate(str(r), (full, fmean(values)), (5, below), **beside)
            ends.append((full, fmean(values)))
    full, values = zip(*sorted(ends), strict=True) if ends else ((), ())
    axis.plot(full, values, label=called(base), lw=1, **line_of(base))


def samples(rows: Table, folder: Path) -> list[Figure]:
    figure = Figure(
        "samples",
        "Samples of each reach",
        "The first picture for each number of locations, not chosen; the first seed. Green cross: "
        "the location was located; red: it was not. The same locations and noise in every row. Networks "
        "of which no sheet was kept are left out.",
    )
    sheets = {
        f"{called(base)}\nreach {r}": (
            run_sheet(rows, v, folder),
            numbers_of(rows.where(variant=v)),
        )
        for base in bases_of(rows)
        for r, v in trained(rows, base).items()
    }
    return strips(folder, figure, sheets, tuple(numbers_of(rows)))
