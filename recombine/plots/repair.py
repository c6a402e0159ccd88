"""The figures of `repair`: samples seed by seed, all levels over updates, and the parts of the
loss."""

from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np

from recombine.analysis.frames import pl
from recombine.analysis.levels import per_seed
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.repair import FAST, LONGER, TOKENIZER
from recombine.analysis.table import Table
from recombine.plots.calibrated import all_levels
from recombine.plots.scene_pictures import cut
from recombine.plots.sheets import sheet_path
from recombine.plots.style import BESIDE, CYCLE, GREY, Figure, canvas, display

PARTS = (
    ("output_loss", "loss on the output"),
    ("error", "error of the prediction"),
    ("spread", "spread of what is predicted"),
)


SHOWN = 6
"""Samples of a model."""


def figures(rows: Table, folder: Path) -> list[Figure]:
    read = with_paper_probe(rows)
    return [
        *seed_by_seed(read, folder),
        all_levels(read, folder),
        *parts_of_the_loss(rows, folder),
    ]


def seed_by_seed(rows: Table, folder: Path) -> list[Figure]:
    """Of the composition furthest away, without variants trained longer, at another rate or on a
    shared tokenizer; nothing where a sheet is not on disk."""
    accuracies = rows.where(kind="accuracy", probe=PAPER)
    others = (TOKENIZER, LONGER, FAST)
    of_seeds = [v for v in accuracies.unique("variant") if not any(word in v for word in others)]
    if not of_seeds:
        return []
    accuracies = accuracies.filter(pl.col("variant").is_in(of_seeds))
    level = max(accuracies.unique("level"))
    codes = sorted(accuracies.unique("composition"))
    variants = accuracies.unique("variant")
    furthest = codes.index(accuracies.where(level=level).unique("composition")[0])
    late = {v: per_seed(rows, v, level, probe=PAPER) for v in variants}
    oracle = {v: per_seed(rows, v, level, probe="oracle") for v in variants}
    seeds = sorted(set.union(*map(set, late.values()))) if late else []
    last = max(accuracies.unique("step"))
    trained = [(s, v) for s in seeds for v in variants if s in late[v]]
    sheets = {(s, v): sheet_path(folder, v, s, last) for s, v in trained}
    if not sheets or not all(path.is_file() for path in sheets.values()):
        return []
    figure = Figure(
        "seeds",
        "The unseen combination furthest away, seed by seed",
        f"Samples of composition {codes[furthest]} by every model at the end of training; above and "
        "below the line beside them, late means by the paper's probe and by the oracle, which "
        "rejects shapes between two classes. A line is a seed; its models share a tokenizer. Paper, "
        "by its own probe: 0.01 without the auxiliary loss, 0.45 with it.",
    )
    size = (2.9 * len(variants) + 0.6, 0.62 * len(seeds) + 0.4)
    with canvas(folder, figure, len(seeds), len(variants), size=size, squeeze=False) as axes:
        for (seed, variant), axis in zip(product(seeds, variants), axes.flat, strict=True):
            axis.set(xticks=(), yticks=())
            axis.grid(visible=False)
            axis.spines[:].set_visible(False)
            if (seed, variant) not in sheets:
                axis.text(0.5, 0.5, "not trained", ha="center", va="center", color=GREY)
                continue
            cells = [cut(sheets[seed, variant], len(codes), furthest, k) for k in range(SHOWN)]
            axis.imshow(np.concatenate(cells, axis=1), interpolation="nearest")
            both = f"{late[variant][seed]:.2f}\n{oracle[variant][seed]:.2f}"
            axis.text(1.02, 0.5, both, va="center", fontsize=8, transform=axis.transAxes)
        for axis, variant in zip(axes[0], variants, strict=True):
            axis.set_title(display(variant))
        for axis, seed in zip(axes[:, 0], seeds, strict=True):
            axis.set_ylabel(f"seed {seed}", rotation=0, ha="right", va="center")
    return [figure]


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
