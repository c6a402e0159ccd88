"""Figures of `seed-parts`: level 2 of every cell of the squares, and what each part explains."""

from pathlib import Path

import numpy as np

from recombine.analysis.seed_parts import NAMES, PARTS, Cells, shares, squares
from recombine.analysis.table import Table
from recombine.plots.style import CYCLE, GREY, INK, Figure, canvas, write_values

__all__ = ["figures"]


def figures(rows: Table, folder: Path) -> list[Figure]:
    every = squares(rows)
    differ = {n: cells for n, cells in every.items() if len({value for _, value in cells}) > 1}
    more = [explained(differ, folder)] if differ else []
    return [cells_of_squares(every, folder), *more]


def cells_of_squares(every: dict[int, Cells], folder: Path) -> Figure:
    figure = Figure(
        "squares",
        "Level 2 by the parts of a seed",
        "The best checkpoint by the paper's linear probe (the mean over its seeds). In a line all "
        "networks start from the same weights, in a column all have the same training data; the "
        "tokenizer changes along diagonals.",
    )
    size = (2.6 * len(every) + 0.6, 2.9)
    with canvas(folder, figure, 1, len(every), size=size, squeeze=False) as axes:
        for axis, (number, cells) in zip(axes[0], every.items(), strict=True):
            side = 1 + max(each["start"] for each, _ in cells)
            table = np.full((side, side), np.nan)
            for each, value in cells:
                table[each["start"], each["data"]] = value
            axis.imshow(table, vmin=0, vmax=1, cmap="Blues")
            write_values(axis, table)
            axis.set(
                title=f"square {number}", xlabel="data", xticks=range(side), yticks=range(side)
            )
            axis.grid(visible=False)
        axes[0][0].set_ylabel("start of the network")
    return figure


def explained(every: dict[int, Cells], folder: Path) -> Figure:
    figure = Figure(
        "shares",
        "What each part of a seed explains",
        "Share of the variance of level 2 over the cells of a square. Dots are squares, bars their "
        "mean; dashed: what a part without effect explains by chance.",
    )
    each = [shares(cells) for cells in every.values()]
    side = 1 + max(cell["start"] for cells in every.values() for cell, _ in cells)
    with canvas(folder, figure, 1, 1, size=(4.6, 3.0)) as axis:
        for x, part in enumerate(PARTS):
            values = [one[part] for one in each]
            axis.bar(x, np.mean(values), 0.6, color=CYCLE[0])
            axis.plot([x] * len(values), values, "o", color=INK, ms=4, alpha=0.7, mew=0)
        axis.axhline(1 / (side + 1), color=GREY, ls="--", lw=1)
        axis.set_xticks(range(len(PARTS)), [NAMES[part] for part in PARTS])
        axis.set(ylim=(0, 1), ylabel="share of the variance")
        axis.grid(axis="x", visible=False)
    return figure
