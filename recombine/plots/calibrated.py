"""Figures of the paper's probable setting: what the paper's probe reads of seen classes,
level 2 of every family over updates by the paper's probe and the oracle, and all levels by the
paper's probe."""

from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.analysis.calibrated import NAMES, READS, gate_values
from recombine.analysis.levels import curve, seeds_of
from recombine.analysis.paper_curves import family_points
from recombine.analysis.paper_probe import PAPER, seeds_of_probe
from recombine.analysis.table import NotMeasured, Table
from recombine.plots.accuracy_panels import last_of, variants_of
from recombine.plots.style import BESIDE, CYCLE, GREY, Figure, canvas, display
from recombine.plots.training import by_level

FAMILIES = ("maskgit", "givt", "givt on vae", "mar", "dit", "dit on vae")
BAR = 0.27
"""The width of a bar."""
TICKS = 6
"""More have no room below a panel."""


def level_two(
    rows: Table, folder: Path, named: Mapping[str, tuple[str, str]] | None = None
) -> Figure:
    """`named`: what follows the family in a variant's name -> its label and colour, where they are
    not to be made up here."""
    figure = Figure(
        "level-2",
        "Level 2 over updates",
        "Share of samples that show a small blue triangle, which no training picture is labelled. "
        "Above by the paper's linear probe: the mean over its seeds, the band from the lowest to "
        "the highest. Below by the oracle. Lines are means over the seeds of a model. Dashed: the "
        "paper's own curve. Early networks draw noise, which the closed-set probe reads by chance.",
    )
    families = [f for f in FAMILIES if f in {family_of(v) for v in variants_of(rows)}]
    size = (3.1 * len(families), 6.4)
    with canvas(folder, figure, 2, len(families), size=size, sharey=True, squeeze=False) as axes:
        for column, family in zip(axes.T, families, strict=True):
            mine = [v for v in variants_of(rows) if family_of(v) == family]
            for variant, next_color in zip(mine, cycle(CYCLE), strict=False):
                change = variant.removeprefix(family)
                label, color = (named or {}).get(change, (change[2:] or "base", next_color))
                plot_paper(column[0], rows, variant, label, color)
                plot_mean(column[1], rows, variant, color)
            paper = dict(family_points(family, 2))
            for axis in column:
                update_axis(axis, display(family), last_of(rows), max(paper, default=0))
            if paper:
                plot_dashed(column[0], paper, GREY)
            column[0].set_xlabel("")
            column[1].set_title("")
            handles, labels = column[0].get_legend_handles_labels()
            column[1].legend(
                handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.2), fontsize=8.5
            )
        for axis, probe in zip(axes[:, 0], ("paper's probe", "oracle"), strict=True):
            axis.set_ylabel(f"level 2, {probe}")
    return figure


def plot_dashed(axis: Any, paper: dict[int, float], color: str) -> None:
    axis.plot(paper.keys(), paper.values(), color=color, lw=1, ls="--", label="the paper")


def update_axis(axis: Any, title: str, last: int, end: int) -> None:
    """Updates on a log scale, from where a network with so many (`last`) has begun to learn."""
    first, end = last / 80, max(last, end)
    axis.set_xscale("symlog", linthresh=max(1, first))
    axis.set(title=title, xlabel="updates", ylim=(-0.03, 1.03), xlim=(first, 1.15 * end))
    ticks = [t for k in range(7) for t in (10**k, 3 * 10**k) if first <= t <= end]
    if len(ticks) > TICKS:
        ticks = [t for t in ticks if str(t)[0] == "1"]
    axis.set_xticks(ticks, [f"{t // 1000}k" if t >= 1000 else str(t) for t in ticks])
    axis.minorticks_off()


def plot_paper(axis: Any, rows: Table, variant: str, label: str, color: str) -> None:
    """The mean over the seeds of the paper's probe, and a band over them."""
    each = [mean_curve(rows, variant, probe) for probe in seeds_of_probe(rows)]
    steps = sorted(each[0])
    values = [[one[step] for one in each] for step in steps]
    low, high = [min(v) for v in values], [max(v) for v in values]
    axis.fill_between(steps, low, high, color=color, alpha=0.15, lw=0)
    axis.plot(steps, list(map(fmean, values)), color=color, label=label, marker="o", ms=3)


def plot_mean(axis: Any, rows: Table, variant: str, color: str) -> None:
    points = sorted(mean_curve(rows, variant, "oracle").items())
    if points:
        axis.plot(*zip(*points, strict=True), color=color, marker="o", ms=3)


def mean_curve(rows: Table, variant: str, probe: str) -> dict[int, float]:
    """Level 2 at every checkpoint, the mean over the seeds of the model."""
    curves = [dict(curve(rows, variant, s, 2, probe=probe)) for s in seeds_of(rows, variant)]
    return {step: fmean(c[step] for c in curves if step in c) for step in curves[0]}


def family_of(variant: str) -> str:
    return variant.partition(", ")[0]


def all_levels(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "levels",
        "Accuracy per level over updates",
        "By the paper's linear probe, the mean over its seeds. Of real pictures of seen classes it "
        "reads 0.80, since sizes overlap. Thin lines are seeds.",
    )
    return by_level(rows, folder, figure, PAPER)


def gate(rows: Table, folder: Path) -> list[Figure]:
    """Nothing where no DiT was run."""
    figure = Figure(
        "gate",
        "What the paper's probe reads of seen classes",
        "Left of each group the paper's own number for samples of its DiT; then real pictures of "
        "this world, a dot per seed of the probe; then samples of DiT here, a dot per seed of DiT.",
    )
    try:
        values = gate_values(rows)
    except NotMeasured:
        return []
    bars = {
        "in the paper": [[READS[c]] for c in READS],
        "real pictures": [values[c][0] for c in READS],
        "DiT here": [values[c][1] for c in READS],
    }
    with canvas(folder, figure, size=(7.4, 3.2)) as axis:
        for i, (label, groups) in enumerate(bars.items()):
            color, at = (GREY, CYCLE[0], CYCLE[1])[i], [k + BAR * (i - 1) for k in range(4)]
            axis.bar(at, list(map(fmean, groups)), 0.9 * BAR, color=color, alpha=0.55, label=label)
            for x, group in zip(at, groups, strict=True):
                axis.scatter([x] * len(group), group, s=10, color=color, zorder=3)
        axis.set(ylim=(0, 1.03), ylabel="read as labelled", xticks=range(4))
        axis.set_xticklabels([NAMES[c] for c in READS])
        axis.legend(**BESIDE)
    return [figure]
