"""Two trained models beside the exact model of the same two worlds."""

from pathlib import Path

from recombine.analysis.levels import curve, seeds_of
from recombine.analysis.table import Table
from recombine.plots.accuracy_panels import variants_of
from recombine.plots.style import CYCLE, Figure, canvas

LEVEL2 = "111"


def beside_theory(rows: Table, folder: Path) -> Figure:
    """Left: accuracy of both models over updates; right: the exact model's output over time."""
    figure = Figure(
        "beside-theory",
        "Small blue triangles, never seen: trained models and exact theory",
        "Left: share of samples that the open-set probe accepts as small blue triangles (bold, a "
        "line per seed) and as the seen combinations (thin). Both models learn what they saw; only "
        "the one trained with wide within-class jitter draws what it did not. Right: the exact "
        "model's output for small blue triangles, 1 as prompted, -1 the opposite. Without jitter, "
        "four points cannot tell a sum from a product.",
    )
    variants = variants_of(rows)
    with canvas(folder, figure, 1, 2, size=(9.6, 3.4)) as (left, right):
        for variant, color in zip(variants, CYCLE, strict=False):
            for seed in seeds_of(rows, variant):
                for level, style in ((0, {"lw": 0.9, "ls": ":"}), (2, {"lw": 2.0})):
                    points = curve(rows, variant, seed, level)
                    left.plot(*zip(*points, strict=True), color=color, **style)
            left.annotate(
                variant, points[-1], (5, 0), textcoords="offset points", color=color, va="center"
            )
            line = rows.where(kind="answer", world=variant, composition=LEVEL2)
            times, agreement = line.column("time"), line.column("agreement")
            right.plot(times, agreement, color=color, lw=2.0)
            right.annotate(
                variant, (times[-1], agreement[-1]), (-4, -12), textcoords="offset points",
                color=color, ha="right",
            )  # fmt: skip
        left.set(title="trained U-Nets", xlabel="updates", ylabel="accuracy", ylim=(-0.04, 1.04))
        left.margins(x=0.16)
        left.set_xlim(left=0)
        right.axhline(0, color="0.6", lw=0.8, ls="--")
        right.set(title="exact model", xscale="log", xlabel="time", ylim=(-1.08, 1.08))
        right.set_ylabel("agreement with the prompt")
    return figure
