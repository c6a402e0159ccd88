"""The figures of `labels`: all levels over updates, and the composition that may be lost."""

from pathlib import Path

from recombine.analysis.labels import LOST, curves
from recombine.analysis.paper_probe import with_paper_probe
from recombine.analysis.table import Table
from recombine.plots.accuracy_panels import variants_of
from recombine.plots.calibrated import all_levels
from recombine.plots.style import CYCLE, Figure, canvas, display, seed_lines


def figures(rows: Table, folder: Path) -> list[Figure]:
    rows = with_paper_probe(rows)
    return [all_levels(rows, folder), learned_and_lost(rows, variants_of(rows), folder)]


def learned_and_lost(rows: Table, variants: list[str], folder: Path) -> Figure:
    figure = Figure(
        "lost",
        f"The large blue triangle ({LOST}) over updates",
        f"Share of samples read as {LOST} where that was prompted, by the paper's linear probe (mean "
        "over its seeds). Thin lines are seeds, bold ones their mean.",
    )
    size = (2.6 * len(variants), 2.9)
    with canvas(folder, figure, 1, len(variants), size=size, sharey=True, squeeze=False) as axes:
        for axis, variant in zip(axes[0], variants, strict=True):
            each = curves(rows, variant)
            steps = [step for step, _ in each[0]]
            seed_lines(axis, steps, [[y for _, y in points] for points in each], CYCLE[0])
            axis.set(title=display(variant), xlabel="updates", ylim=(-0.03, 1.03))
        axes[0][0].set_ylabel("share")
    return figure
