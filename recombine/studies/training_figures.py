"""The figures of the trained composition studies, from rows alone: accuracy per level, and factor by factor."""

from pathlib import Path
from typing import Any

from recombine.figures import CYCLE, LEVELS, Figure, canvas
from recombine.studies.base import Rows
from recombine.studies.levels import curve, probe_of, seeds_of

NOT_FACTORS = {
    "kind",
    "step",
    "composition",
    "level",
    "probe",
    "n",
    "joint",
    "low",
    "high",
    "variant",
    "seed",
    "run",
    "scale",
}


def draw(rows: Rows, folder: Path) -> list[Figure]:
    return [levels(rows, folder), factors(rows, folder)]


def variants_of(rows: Rows) -> list[str]:
    return list(dict.fromkeys(rows.where(kind="accuracy").column("variant")))


def level_name(level: int) -> str:
    return "seen" if level == 0 else f"level {level}"


def plot_level(axis: Any, rows: Rows, variant: str, level: int, column: str, color: str, label: str) -> None:
    """Each seed thin, their mean bold."""
    curves = [curve(rows, variant, seed, level, column) for seed in seeds_of(rows, variant)]
    for points in curves if len(curves) > 1 else []:
        axis.plot(*zip(*points, strict=True), color=color, lw=0.7, alpha=0.5)
    mean = [(points[0][0], sum(y for _, y in points) / len(points)) for points in zip(*curves, strict=True)]
    axis.plot(*zip(*mean, strict=True), color=color, label=label, marker="o", ms=3)


def finish(axis: Any, title: str, legend: bool) -> None:
    """A step axis that shows the start and spreads the early steps; the legend above the curves, where none can run."""
    last = max(line.get_xdata()[-1] for line in axis.lines)
    axis.set_xscale("symlog", linthresh=max(1, last / 50))
    axis.set(title=title, xlabel="training step", ylim=(-0.03, 1.03), xlim=(0, 1.15 * last))
    ticks = [t for t in (0, *(10**k for k in range(1, 7))) if t == 0 or last / 60 <= t <= last]
    axis.set_xticks(ticks, [f"{t:,}" for t in ticks])
    axis.minorticks_off()
    if legend:
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))


def levels(rows: Rows, folder: Path) -> Figure:
    variants = variants_of(rows)
    figure = Figure(
        "levels",
        "Accuracy per level over training",
        "Share of samples that show all factors asked for, by the number of factors in which the composition differs from "
        f"any seen one. Thin lines are seeds. Judged by the probe '{probe_of(rows)}'.",
    )
    with canvas(
        folder, figure, 1, len(variants), size=(3.2 * len(variants) + 2.2, 3.4), sharey=True, squeeze=False
    ) as axes:
        for axis, variant in zip(axes[0], variants, strict=True):
            for level in sorted({r["level"] for r in rows.where(kind="accuracy", variant=variant)}):
                plot_level(axis, rows, variant, level, "joint", LEVELS[min(level, 4)], level_name(level))
            finish(axis, variant, legend=axis is axes[0][-1])
        axes[0][0].set_ylabel("joint accuracy")
    return figure


def factors(rows: Rows, folder: Path) -> Figure:
    """Which factor fails, at the furthest level."""
    variants, furthest = variants_of(rows), max(rows.where(kind="accuracy").column("level"))
    names = [k for k in rows.where(kind="accuracy")[0] if k not in NOT_FACTORS]
    figure = Figure(
        "factors",
        f"Factor by factor at {level_name(furthest)}",
        "Share of samples that show each factor as asked for. The joint accuracy (dotted) is what a composition needs.",
    )
    with canvas(
        folder, figure, 1, len(variants), size=(3.2 * len(variants) + 2.2, 3.4), sharey=True, squeeze=False
    ) as axes:
        for axis, variant in zip(axes[0], variants, strict=True):
            for name, color in zip(names, CYCLE, strict=False):
                plot_level(axis, rows, variant, furthest, name, color, name)
            plot_level(axis, rows, variant, furthest, "joint", "#7A7F87", "joint")
            axis.lines[-1].set_linestyle(":")
            finish(axis, variant, legend=axis is axes[0][-1])
        axes[0][0].set_ylabel("accuracy")
    return figure
