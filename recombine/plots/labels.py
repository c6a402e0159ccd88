"""The figures of `labels`: all levels over updates beside the paper's, and the composition that may
be lost."""

from pathlib import Path
from typing import Any

from matplotlib.lines import Line2D

from recombine.analysis.labels import CURVES, LOST
from recombine.analysis.levels import curves_at, level_name
from recombine.analysis.paper_curves import paper_points
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.table import Table
from recombine.plots.accuracy_panels import Line, curves_of, last_of, variants_of
from recombine.plots.calibrated import update_axis
from recombine.plots.style import CYCLE, INK, LEVELS, Figure, canvas, display, seed_lines

ABREAST = 4
TITLES = {
    "values, raw": "raw values",
    "values, raw, dropout": "raw values, dropout",
    "values, theirs": "raw values, dropout and zeros",
    "values": "balanced values",
    "values, dropout": "balanced values, dropout",
    "values, zero": "balanced values, zeros",
    "values, dropout, sampling": "balanced, dropout in prompts",
    "classes, zero": "classes, zeros",
}
"""Of panels, where a variant's name does not say it. Zeros: zero in place of a missing label."""


def figures(rows: Table, folder: Path) -> list[Figure]:
    rows = with_paper_probe(rows)
    there = variants_of(rows)
    ordered = [*(v for v in CURVES if v in there), *(v for v in there if v not in CURVES)]
    return [beside_the_paper(rows, ordered, folder), learned_and_lost(rows, ordered, folder)]


def grid(variants: list[str], height: float) -> tuple[int, int, tuple[float, float]]:
    """Rows and columns of panels, and the size of all together."""
    columns = min(ABREAST, len(variants))
    count = -(-len(variants) // columns)
    return count, columns, (2.6 * columns, height * count)


def beside_the_paper(rows: Table, variants: list[str], folder: Path) -> Figure:
    figure = Figure(
        "levels",
        "Accuracy per level over updates, ours and the paper's",
        "By the paper's linear probe, the mean over its seeds; thin lines are seeds. Dashed: the "
        "paper's curves of Fig 4 a to d, the second of them smoothed by its authors. Models given "
        "classes draw sizes that overlap; the probe reads about 0.80 of the seen ones, as of real "
        "pictures. Balanced: in units of the distance between classes. Dropout: single labels are left "
        "out in training; zeros: zero in place of them.",
    )
    lines, columns, size = grid(variants, 2.7)
    with canvas(folder, figure, lines, columns, size=size, sharey=True, squeeze=False) as axes:
        for axis, variant in zip(axes.flat, variants, strict=False):
            end = max([0, *(step for step, _ in papers_of(variant, 0))])
            update_axis(axis, titled(variant), last_of(rows), end)
            for level in range(3):
                plot_level(axis, rows, variant, level)
        finish(axes, variants, "accuracy")
        legend(axes)
    return figure


def titled(variant: str) -> str:
    return TITLES.get(variant, display(variant))


def legend(axes: Any) -> None:
    """Of the first panel, below all of them."""
    lines, names = axes[0][0].get_legend_handles_labels()
    dashed = Line2D([], [], color=INK, lw=1, ls="--")
    where = {"loc": "outside lower center", "ncols": len(names) + 1}
    axes[0][0].figure.legend([*lines, dashed], [*names, "the paper"], **where)


def papers_of(variant: str, level: int) -> list[tuple[int, float]]:
    return paper_points(CURVES[variant], level) if variant in CURVES else []


def plot_level(axis: Any, rows: Table, variant: str, level: int) -> None:
    color, each = LEVELS[level], curves_of(rows, Line(variant, level, "joint", PAPER))
    if each:
        steps, values = [s for s, _ in each[0]], [[y for _, y in points] for points in each]
        seed_lines(axis, steps, values, color, level_name(level))
    if paper := papers_of(variant, level):
        axis.plot(*zip(*paper, strict=True), color=color, lw=1, ls="--")


def learned_and_lost(rows: Table, variants: list[str], folder: Path) -> Figure:
    figure = Figure(
        "lost",
        f"The large blue triangle ({LOST}) over updates",
        f"Share of samples read as {LOST} where that was prompted, by the paper's linear probe (mean "
        "over its seeds). Thin lines are seeds, bold ones their mean.",
    )
    lines, columns, size = grid(variants, 2.5)
    with canvas(folder, figure, lines, columns, size=size, sharey=True, squeeze=False) as axes:
        for axis, variant in zip(axes.flat, variants, strict=False):
            each = curves_at(rows, variant, LOST, PAPER)
            steps = [step for step, _ in each[0]]
            seed_lines(axis, steps, [[y for _, y in points] for points in each], CYCLE[0])
            axis.set(title=titled(variant), xlabel="updates", ylim=(-0.03, 1.03))
        finish(axes, variants, "share")
    return figure


def finish(axes: Any, variants: list[str], label: str) -> None:
    """Labels at the edges, and no axes where there is no variant."""
    for axis in axes.flat[len(variants) :]:
        axis.remove()
    for line in axes:
        line[0].set_ylabel(label)
