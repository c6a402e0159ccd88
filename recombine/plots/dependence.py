"""Condition dependence against composition, as a scatter of checkpoints."""

from pathlib import Path

from recombine.analysis.condition_dependence import MEASURES, Point, at_the_end, dependence_points
from recombine.analysis.table import Table
from recombine.plots.style import BESIDE, Figure, canvas, colors_of, display


def figures(rows: Table, folder: Path) -> list[Figure]:
    """Nothing where it was not measured."""
    measured = dependence_points(rows)
    return [scatter(measured, folder)] if measured else []


def scatter(measured: list[Point], folder: Path) -> Figure:
    figure = Figure(
        "condition-dependence",
        "Condition dependence and composition",
        "Each point is a run at a checkpoint at which it has learned what it saw, the large ones "
        "at the end. Left: how far "
        "every place depends on one condition alone. Right: how little the effect of one "
        "condition depends on the others. "
        "Vertical: level-2 accuracy by the primary probe.",
    )
    variants, last = (
        list(dict.fromkeys(p.variant for p in measured)),
        {id(p) for p in at_the_end(measured)},
    )
    with canvas(folder, figure, 1, 2, size=(9.4, 3.6), sharey=True) as axes:
        for axis, (name, label) in zip(axes, MEASURES.items(), strict=True):
            for variant, color in colors_of(variants).items():
                mine = [p for p in measured if p.variant == variant]
                sizes = [60 if id(p) in last else 12 for p in mine]
                x, y = [getattr(p, name) for p in mine], [p.level2 for p in mine]
                axis.scatter(x, y, s=sizes, color=color, alpha=0.65, lw=0, label=display(variant))
            axis.set(xlabel=f"{name}: {label}", ylim=(-0.03, 1.03))
        axes[0].set_ylabel("level 2, joint accuracy")
        for handle in axes[1].legend(**BESIDE).legend_handles:
            handle.set_sizes([40])
    return figure
