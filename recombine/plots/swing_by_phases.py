"""The figures of `swing-by` on when it happens: phase diagrams, and how many descents there are."""

import math
from pathlib import Path
from typing import Any

from recombine.analysis.table import Table
from recombine.plots.style import Figure, canvas, color_bar
from recombine.plots.swing_by import turning_points
from recombine.plots.swing_by_evidence import BLUE, GREEN, GREY, PURPLE, RED, curve
from recombine.theory.detect import RISE


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [phase(rows, folder), descents(rows, folder)]


def phase(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "phase",
        "Where swing-by happens",
        f"How far the OOD loss rises again, as a share of its start (the line is {RISE:.0%}; the "
        "cross is the reference setting). Left: it needs a positive correlation of the start and "
        "unequal signals. Right: it "
        "fades as the clusters widen and grows with the size of the start.",
    )
    plots = (
        (
            "phase.signal",
            "ratio",
            "rho",
            "signal ratio μ₂ / μ₁",
            "correlation of the start ρ",
            (2.0, 0.9),
            False,
        ),
        ("phase.start", "sigma", "omega", "diversity σ", "size of the start ω", (0.05, -2.0), True),
    )
    with canvas(folder, figure, 1, 2, size=(9.4, 3.9)) as axes:
        for axis, (kind, x, y, xlabel, ylabel, cross, log) in zip(axes, plots, strict=True):
            found = rows.where(kind=kind)
            xs, ys = sorted(set(found.column(x))), sorted(set(found.column(y)))
            heights = [math.log10(v) for v in ys] if log else ys
            cells = {(r[x], r[y]): r["rise"] for r in found}
            rise = [[cells[a, b] for a in xs] for b in ys]
            image = axis.imshow(
                rise,
                origin="lower",
                aspect="auto",
                extent=(xs[0], xs[-1], heights[0], heights[-1]),
                cmap="magma_r",
                vmin=0,
            )
            axis.contour(xs, heights, rise, levels=[RISE], colors=[BLUE], linewidths=1.6)
            axis.plot(*cross, "x", color=BLUE, ms=8, mew=2)
            axis.set(xlabel=xlabel, ylabel=ylabel)
            axis.grid(False)
            if log:
                ticks = [k for k in range(-6, 1) if heights[0] <= k <= heights[-1]]
                axis.set_yticks(ticks, [f"$10^{{{k}}}$" for k in ticks])
            color_bar(image, axis, label="relative rise")
    return figure


def descents(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "descents",
        "Three concepts, three descents",
        "Left: the OOD loss from the published start with three concepts, μ = (1, 1.5, 2.2), with "
        "the second moment A and with A² (as the published figures were integrated). Right: how "
        "many descents random positive starts give.",
    )
    with canvas(folder, figure, 1, 2, size=(9.4, 3.7), width_ratios=(1.15, 1)) as (left, right):
        _published(left, rows)
        _shares(right, rows.where(kind="t9.share"))
    return figure


def _published(axis: Any, rows: Table) -> None:
    """The loss from the published start, its turns marked."""
    for variant, colour in (("A", BLUE), ("A^2", RED)):
        t, loss = curve(rows, "t9.curve", "t", "loss", variant=variant)
        axis.loglog(t, loss, color=colour, label=variant.replace("^2", "²"))
        at = turning_points(loss)
        axis.plot([t[k] for k in at], [loss[k] for k in at], "o", color="white", mec=colour, ms=5)
    axis.set(xlabel="paper time", ylabel="OOD loss / loss at start")
    axis.set(ylim=(1e-3, 1.4), xlim=(0.04, 110))
    axis.legend()


def _shares(axis: Any, rows: Table) -> None:
    """How many descents random starts give, a bar for each setting."""
    bars = [("triple", "A"), ("triple", "A^2"), ("quadruple", "A"), ("quadruple", "A^2")]
    for place, (setting, variant) in enumerate(bars):
        base, y = 0.0, 3 - place
        mine = rows.where(setting=setting, variant=variant)
        for row in sorted(mine, key=lambda r: r["descents"]):
            k, share = row["descents"], row["share"]
            colour = (GREY, GREEN, BLUE, PURPLE)[k - 1]
            label = f"{k}" if place == 3 else None
            axis.barh(y, share, left=base, color=colour, height=0.62, label=label)
            if share > 0.04:
                style = {"ha": "center", "va": "center", "color": "white", "fontsize": 8.5}
                axis.text(base + share / 2, y, f"{share:.0%}", **style)
            base += share
    concepts = {"triple": 3, "quadruple": 4}
    names = [f"{concepts[s]} concepts, {v.replace('^2', '²')}" for s, v in reversed(bars)]
    axis.set_yticks(range(4), names)
    axis.set(xlim=(0, 1), xlabel=f"share of {rows.unique('seeds')[0]} starts")
    axis.grid(False)
    above = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
    axis.legend(title="descents", ncols=4, fontsize=8.5, title_fontsize=8.5, **above)
