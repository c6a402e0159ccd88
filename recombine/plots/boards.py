"""Samples of unseen combinations of the paper's shapes, colours and sizes: a panel for each model."""

from pathlib import Path

import numpy as np

from recombine.analysis.frames import pl
from recombine.analysis.levels import per_seed
from recombine.analysis.paper_probe import PAPER
from recombine.analysis.table import Table
from recombine.plots.scene_pictures import cut
from recombine.plots.sheets import sheet_path
from recombine.plots.style import Figure, canvas, display

VALUES = (("circle", "triangle"), ("red", "blue"), ("large", "small"))
SHOWN = 4
"""Samples of a combination."""


def boards(rows: Table, folder: Path, variants: dict[str, str], which: str) -> list[Figure]:
    """At the end of training, of the seeds of which all sheets are on disk; a line for each variant,
    with what it is called. Nothing where there is no such seed. `rows` have the paper's probe."""
    read = {v: per_seed(rows, v, 2, probe=PAPER) for v in variants}
    seeds = [s for s in sorted(set().union(*read.values())) if whole(rows, folder, read, s)]
    if not seeds:
        return []
    scored = rows.where(kind="accuracy")
    codes = sorted(scored.unique("composition"))
    unseen = sorted(scored.filter(pl.col("level") > 0).unique("composition"))
    figure = Figure(
        "samples",
        "Samples of unseen combinations, by seed",
        f"{which} Lines of a panel, from above: {', '.join(map(name_of, unseen))}, of which the "
        "last is level 2; above a panel the share of these that the paper's linear probe (the mean over "
        "its seeds) reads as prompted.",
    )
    size = (1.45 * len(seeds) + 0.6, (0.37 * len(unseen) + 0.3) * len(variants))
    with canvas(folder, figure, len(variants), len(seeds), size=size, squeeze=False) as axes:
        for line, (variant, name) in zip(axes, variants.items(), strict=True):
            for axis, seed in zip(line, seeds, strict=True):
                sheet = sheet_path(folder, variant, seed, last_step(rows, variant))
                lines = [
                    [cut(sheet, len(codes), codes.index(c), k) for k in range(SHOWN)]
                    for c in unseen
                ]
                board = np.concatenate([np.concatenate(cells, 1) for cells in lines])
                axis.imshow(board, interpolation="nearest")
                axis.set_title(f"seed {seed}: {read[variant][seed]:.2f}", fontsize=7)
                axis.set(xticks=(), yticks=())
                axis.spines[:].set_visible(False)
            line[0].set_ylabel(display(name).replace(", ", ",\n"))
    return [figure]


def whole(rows: Table, folder: Path, read: dict[str, dict[int, float]], seed: int) -> bool:
    sheets = (sheet_path(folder, v, seed, last_step(rows, v)) for v in read)
    return all(seed in each for each in read.values()) and all(sheet.is_file() for sheet in sheets)


def last_step(rows: Table, variant: str) -> int:
    return max(rows.where(kind="accuracy", variant=variant).unique("step"))


def name_of(composition: str) -> str:
    """011 -> small blue circle."""
    return " ".join(VALUES[i][int(composition[i])] for i in (2, 1, 0))
