"""The figures of `repair`: all levels over updates, and the parts of the loss."""

from pathlib import Path
from statistics import fmean

from recombine.analysis.paper_probe import with_paper_probe
from recombine.analysis.table import Table
from recombine.plots.calibrated import all_levels
from recombine.plots.style import BESIDE, CYCLE, Figure, canvas, display

PARTS = (
    ("output_loss", "loss on the output"),
    ("error", "error of the prediction"),
    ("spread", "spread of what is predicted"),
)


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [all_levels(with_paper_probe(rows), folder), *parts_of_the_loss(rows, folder)]


def parts_of_the_loss(rows: Table, folder: Path) -> list[Figure]:
    """Nothing where no auxiliary loss was trained."""
    some = rows.where(kind="auxiliary loss")
    if not len(some):
        return []
    figure = Figure(
        "parts",
        "The parts of the loss",
        "On real pictures of seen compositions; means over seeds and layers. The error is in units "
        "of what is predicted, normed per token: 1 = no better than its mean. The spread is the "
        "variance from picture to picture: near 0, what is predicted has collapsed.",
    )
    with canvas(folder, figure, 1, len(PARTS), size=(10.0, 3.2)) as axes:
        for axis, (name, title) in zip(axes, PARTS, strict=True):
            for (variant, table), color in zip(some.by("variant").items(), CYCLE, strict=False):
                steps = sorted(table.unique("step"))
                means = [fmean(table.where(step=s).column(name)) for s in steps]
                axis.plot(steps, means, color=color, marker="o", ms=3, label=display(variant))
            axis.set(title=title, xlabel="updates")
            axis.set_ylim(bottom=0)
        axes[-1].legend(**BESIDE)
    return [figure]
