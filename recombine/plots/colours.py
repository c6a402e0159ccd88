"""The figure of `colours`: cosines between all colours."""

from pathlib import Path
from statistics import fmean

import numpy as np

from recombine.analysis.table import Table
from recombine.plots.style import INK, Figure, canvas


def figures(rows: Table, folder: Path) -> list[Figure]:
    figure = Figure(
        "cosines",
        "What colours add to an empty floor",
        "Cosine between the mean differences that two colours make to pictures of an empty floor, "
        "mean over sets of scenes. Colours are ordered by their cosine with yellow. Low: they act "
        "on different channels and can be composed. The paper composes yellow with blue, cyan and "
        "purple, and not with gray, green, red and brown.",
    )
    found = rows.where(kind="cosine")
    values: dict[frozenset[str], list[float]] = {}
    for row in found:
        values.setdefault(frozenset((row["color"], row["other"])), []).append(row["cosine"])
    means = {pair: fmean(some) for pair, some in values.items()}
    names = sorted({name for pair in means for name in pair} - {"yellow"})
    names.sort(key=lambda name: means.get(frozenset(("yellow", name)), 1.0))
    names = [*(["yellow"] if any("yellow" in pair for pair in means) else []), *names]
    table = np.array([[1.0 if a == b else means[frozenset((a, b))] for b in names] for a in names])
    with canvas(folder, figure, 1, 1, (5.6, 4.8)) as axis:
        image = axis.imshow(table, vmin=0, vmax=1, cmap="viridis")
        axis.grid(visible=False)
        axis.set_xticks(range(len(names)), names, rotation=45, ha="right")
        axis.set_yticks(range(len(names)), names)
        for (i, j), value in np.ndenumerate(table):
            ink = INK if value > 0.6 else "white"
            axis.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8, color=ink)
        bar = axis.figure.colorbar(image, ax=axis, shrink=0.85, ticks=[0, 0.5, 1])
        bar.outline.set_visible(False)
    return [figure]
