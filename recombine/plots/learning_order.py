"""Figures of `learning-order`: when colour and size are learned, beside the published times, and
what masked captions do."""

from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.analysis.concepts import smoothed
from recombine.analysis.learning_order import (
    SMOOTH,
    T_COLOR,
    T_SIZE,
    World,
    by_masked_share,
    grid,
    worlds,
)
from recombine.analysis.table import NotMeasured, Table
from recombine.plots.log_axes import log_ticks
from recombine.plots.style import BESIDE, CYCLE, GREY, Figure, canvas, seed_lines

LINES = {"color": (T_COLOR, CYCLE[0], "o"), "size": (T_SIZE, CYCLE[1], "s")}
"""For each factor its published times, its colour and its marker."""


def figures(rows: Table, folder: Path) -> list[Figure]:
    found = worlds(rows)
    made = [times(grid(found), folder)]
    try:
        return [*made, masked(by_masked_share(found), folder)]
    except NotMeasured:
        return made


def times(found: list[World], folder: Path) -> Figure:
    figure = Figure(
        "times",
        "Steps to learn colour and size, ours and published",
        "Step at which each factor of the unseen composition is learned, over the colour signal, "
        "for each size signal. Filled: ours, the mean over seeds; small dots are seeds, crosses "
        "seeds that had not learned it at their last step. Open, dashed: published by Park et al. "
        "Where the two lines of a pair cross, the order of learning flips.",
    )
    sizes = sorted({w.size for w in found})
    size = (3.7 * len(sizes) + 1.6, 3.6)
    with canvas(folder, figure, 1, len(sizes), size=size, sharey=True, squeeze=False) as axes:
        for axis, signal in zip(axes[0], sizes, strict=True):
            line = sorted((w for w in found if w.size == signal), key=lambda w: w.color)
            for factor in LINES:
                one_factor(axis, line, factor)
            axis.set(yscale="log", xlabel="colour signal", title=f"size signal {signal:g}")
            axis.set_xticks(sorted({w.color for w in found}))
        log_ticks(axes[0][0].yaxis)
        axes[0][0].set_ylabel("updates")
        axes[0][-1].legend(fontsize=9, **BESIDE)
    return figure


def one_factor(axis: Any, line: list[World], factor: str) -> None:
    """Our times of one factor over the colour signal, and the published ones."""
    published, ink, marker = LINES[factor]
    theirs = published.get(line[0].size, {})
    ours = [fmean(w.times(factor).values()) for w in line]
    label = f"T_{factor}"
    axis.plot([w.color for w in line], ours, marker=marker, ms=6, color=ink, label=f"{label}, ours")
    axis.plot(
        theirs.keys(), theirs.values(), marker=marker, ms=6, mfc="none", ls="--", lw=1.2,
        color=ink, label=f"{label}, published",
    )  # fmt: skip
    for w in line:
        for seed, run in w.runs.items():
            known = run.time(factor) <= float(run.steps[-1])
            axis.plot(
                [w.color], [w.times(factor)[seed]], "." if known else "x",
                ms=3 if known else 5, color=ink, alpha=0.5,
            )  # fmt: skip


def masked(line: list[World], folder: Path) -> Figure:
    figure = Figure(
        "masked",
        "Captions that leave out the colour",
        "Accuracy of colour, of samples prompted for the unseen small blue circle, over training "
        "steps, by the share of captions of small red circles that leave out the colour. Thin "
        "lines are seeds.",
    )
    with canvas(folder, figure, size=(5.6, 3.4)) as axis:
        for w, ink in zip(line, (GREY, *CYCLE), strict=False):
            each = [smoothed(run.accuracy["color"], SMOOTH).tolist() for run in w.runs.values()]
            steps = next(iter(w.runs.values())).steps.tolist()
            seed_lines(axis, steps, each, ink, f"{w.masked:.0%} masked", marker="")
        axis.set(ylim=(-0.03, 1.03), xlabel="updates", ylabel="blue, unseen composition")
        axis.legend(fontsize=9, **BESIDE)
    return figure
