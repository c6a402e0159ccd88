"""Accuracies of trained models, from rows: curves over training in panels, and late means of many
variants one below the other."""

from pathlib import Path
from typing import Any, NamedTuple

from recombine.analysis.levels import Curve, curve, late_mean, level_name, seeds_of
from recombine.analysis.table import Table
from recombine.plots.style import BESIDE, GREY, LEVELS, Figure, canvas, display, seed_lines

ABREAST = 5
"""Panels side by side, at most."""
MARKERS = "osD^v"


class Line(NamedTuple):
    """What one curve shows."""

    variant: str
    level: int
    column: str
    probe: str


Lines = dict[str, tuple[Line, str]]
"""What is shown under each label, and its colour; the variant is "" where it is that of any."""


def variants_of(rows: Table) -> list[str]:
    return list(dict.fromkeys(rows.where(kind="accuracy").column("variant")))


def last_of(rows: Table) -> int:
    return max(rows.where(kind="accuracy").column("step"))


def furthest(rows: Table) -> int:
    """The level that is furthest from the seen compositions."""
    return max(rows.where(kind="accuracy").column("level"))


def abreast(count: int) -> int:
    """Columns of a grid of so many panels, full lines where that can be."""
    return count if count < ABREAST else next((c for c in (5, 3, 4) if count % c == 0), 4)


def level_lines(rows: Table, probe: str, variant: str = "") -> Lines:
    """All levels, each in its colour."""
    levels = range(furthest(rows) + 1)
    return {level_name(k): (Line(variant, k, "joint", probe), LEVELS[min(k, 4)]) for k in levels}


def curves_of(rows: Table, line: Line) -> list[Curve]:
    """The curve of each seed; nothing where it was not measured."""
    seeds = seeds_of(rows, line.variant)
    curves = [curve(rows, line.variant, s, line.level, line.column, line.probe) for s in seeds]
    return [points for points in curves if points]


def late_values(rows: Table, line: Line) -> list[float]:
    """The late mean of each seed; nothing where it was not measured."""
    return [late_mean(points) for points in curves_of(rows, line)]


def panels(
    rows: Table, folder: Path, figure: Figure, each: list[tuple[str, Lines]], columns: int, y: str
) -> Figure:
    """Over training: a panel for each title, room for a legend beside the first line of them. Each
    seed thin, their mean bold, dotted in grey. `y`: what the curves show."""
    high = -(-len(each) // columns)
    size = (3.0 * columns + 1.4, 2.9 * high + 0.3)
    with canvas(
        folder, figure, high, columns, size=size, sharey=True, sharex=True, squeeze=False
    ) as axes:
        for axis in axes.flat[len(each) :]:
            axis.axis("off")
        for axis, (title, lines) in zip(axes.flat, each, strict=False):
            for label, (line, color) in lines.items():
                if curves := curves_of(rows, line):
                    steps = [step for step, _ in curves[0]]
                    values = [[value for _, value in points] for points in curves]
                    style = ":" if color == GREY else "-"
                    seed_lines(axis, steps, values, color, label, ls=style)
            step_axis(axis, title, last_of(rows))
        axes[0][-1].legend(**BESIDE)
        for row in axes:
            row[0].set_ylabel(y)
        for axis in axes.flat if axes.size == len(each) else ():
            axis.label_outer()
    return figure


def step_axis(axis: Any, title: str, last: int) -> None:
    """A step axis, to the `last` step of all panels, that shows the start and spreads the early
    steps."""
    axis.set_xscale("symlog", linthresh=max(1, last / 50))
    axis.set(title=title, xlabel="updates", ylim=(-0.03, 1.03), xlim=(0, 1.15 * last))
    known = (m * 10**k for k in range(7) for m in (1, 3))
    ticks = [0, *(t for t in known if last / 30 <= t <= last)]
    axis.set_xticks(ticks, [f"{t:,}" for t in ticks])
    axis.minorticks_off()


def dots(rows: Table, folder: Path, figure: Figure, lines: Lines) -> Figure:
    """Late means of all variants, one below the other: the mean over seeds large, each seed
    small."""
    variants, levels = variants_of(rows), {line.level for line, _ in lines.values()}
    with canvas(folder, figure, size=(7.6, 0.36 * len(variants) + 1.2)) as axis:
        for i, (label, (line, color)) in enumerate(lines.items()):
            for y, variant in enumerate(variants):
                values = late_values(rows, line._replace(variant=variant))
                if not values:
                    continue
                at = y + 0.7 * ((i + 0.5) / len(lines) - 0.5)
                axis.scatter(values, [at] * len(values), s=9, color=color, alpha=0.5, lw=0)
                mean = [sum(values) / len(values)]
                named = {"label": label} if label not in axis.get_legend_handles_labels()[1] else {}
                axis.scatter(mean, [at], s=30, color=color, marker=MARKERS[i % 5], **named)
        for y in range(1, len(variants)):
            axis.axhline(y - 0.5, color=GREY, lw=0.5, alpha=0.5)
        at = f" at {level_name(*levels)}" if len(levels) == 1 else ""
        axis.set(xlim=(-0.03, 1.03), ylim=(len(variants) - 0.5, -0.5))
        axis.set_xlabel(f"accuracy{at}, late mean")
        axis.set_yticks(range(len(variants)), map(display, variants))
        axis.grid(visible=False, axis="y")
        axis.legend(**BESIDE)
    return figure
