"""The figures of `swing-by` that show the detour and why it happens."""

import math
from pathlib import Path
from typing import Any

import torch

from recombine.analysis.table import Table
from recombine.plots.style import INK, Figure, canvas
from recombine.plots.swing_by_evidence import BLUE, GOLD, GREEN, GREY, PURPLE, RED, curve
from recombine.theory.detect import turns


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [make(rows, folder) for make in (trajectory, story)]


def turning_points(ood: list[float]) -> list[int]:
    return turns(torch.tensor(ood, dtype=torch.float64))


def _path(axis: Any, x: list[float], y: list[float], ood: list[float]) -> None:
    """A trajectory whose colour says whether the OOD loss is falling or rising, with arrows along
    it."""
    cuts = [0, *turning_points(ood), len(x) - 1]
    for i, (first, last) in enumerate(zip(cuts, cuts[1:], strict=False)):
        colour = RED if i % 2 else BLUE
        axis.plot(
            x[first : last + 1],
            y[first : last + 1],
            color=colour,
            lw=2.4,
            solid_capstyle="round",
            zorder=3,
        )
        reach = [0.0]
        for k in range(first, last):
            reach.append(reach[-1] + math.hypot(x[k + 1] - x[k], y[k + 1] - y[k]))
        middle = first + next((k for k, r in enumerate(reach) if r > reach[-1] / 2), 0)
        if middle + 1 < len(x) and reach[-1] > 0:
            axis.annotate(
                "",
                (x[middle + 1], y[middle + 1]),
                (x[middle], y[middle]),
                arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.6, "mutation_scale": 16},
                zorder=4,
            )
    axis.plot(x[0], y[0], "o", color=INK, ms=4, zorder=5)
    axis.annotate("start", (x[0], y[0]), (4, -13), textcoords="offset points", fontsize=8.5)
    for name, shift, side, at in zip(
        ("best", "worst"), ((9, 1), (-2, 8)), ("left", "right"), cuts[1:-1], strict=False
    ):
        axis.plot(x[at], y[at], "o", color="white", mec=INK, mew=1.2, ms=6, zorder=5)
        axis.annotate(
            name, (x[at], y[at]), shift, textcoords="offset points", fontsize=8.5, ha=side
        )


def _clusters(
    axis: Any, weak: float, strong: float, spread: tuple[float, float], labels: tuple[str, str]
) -> None:
    """The two training clusters (one and two standard deviations) and the test point."""
    from matplotlib.patches import Ellipse

    for centre in ((weak, 0), (0, strong)):
        for k in (1, 2):
            axis.add_patch(
                Ellipse(
                    centre,
                    2 * k * spread[0] or 0.02,
                    2 * k * spread[1] or 0.02,
                    color=GOLD,
                    alpha=0.28,
                    lw=0,
                )
            )
        axis.plot(*centre, "o", color=GOLD, ms=4)
    label = {"textcoords": "offset points", "fontsize": 8.5, "ha": "center"}
    axis.annotate("training cluster", (weak, 0), (0, 20), color=GOLD, **label)
    axis.plot(weak, strong, marker="*", ms=15, color=GREEN, mec=INK, mew=0.7, zorder=6)
    axis.annotate(r"$\hat{x}$, never shown", (weak, strong), (-18, -20), color=GREEN, **label)
    axis.set(
        xlim=(-0.2 * weak - 0.02, 1.45 * weak + 0.02),
        ylim=(-0.16 * strong - 0.02, 1.25 * strong + 0.02),
    )
    axis.set(xlabel=f"answer, concept {labels[0]}", ylabel=f"answer, concept {labels[1]}")


def trajectory(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "trajectory",
        "The output for the unseen combination takes a detour",
        "The model's answer to the unseen combination, in concept space. Blue: its loss falls; "
        "red: it rises, while the answer is pulled towards the training cluster of the stronger "
        "concept; circles mark where it turns. Left: the exact two-layer flow. Right: a four-layer"
        " linear network trained by SGD (the seed with the largest rise).",
    )
    own = rows.one(kind="yours.summary")
    with canvas(folder, figure, 1, 2, size=(9.2, 4.3)) as (left, right):
        weak, strong = own["mu_weak"], own["mu_strong"]
        _clusters(
            left,
            weak,
            strong,
            (own["sigma_weak"], own["sigma_strong"]),
            (str(own["weak"]), str(own["strong"])),
        )
        _path(left, *curve(rows, "yours.curve", "x", "y", "ood"))
        left.set_title(
            f"two layers, exact (μ = {own['mus']}, ω = {own['omega']:g}, ρ = {own['rho']:g})",
            fontsize=9.5,
        )
        _clusters(right, 1.0, 2.0, (0.05**0.5, 0.05**0.5), ("1", "2"))
        _path(right, *curve(rows, "t12.curve", "x", "y", "ood"))
        right.set_title("four layers, SGD (μ = 1 2, d = 3)", fontsize=9.5)
    return figure


def _shade(axis: Any, t: list[float], ood: list[float], words: bool) -> None:
    """The stages as bands: what the OOD loss does."""
    cuts = [0, *turning_points(ood), len(t) - 1]
    names = ["initial growth", "suppression", "next growth"] if len(cuts) == 4 else [""] * len(cuts)
    for i, (first, last) in enumerate(zip(cuts, cuts[1:], strict=False)):
        if i % 2:
            axis.axvspan(t[first], t[last], color=RED, alpha=0.08, lw=0)
        if words and names[i]:
            axis.text(
                (t[first] + min(t[last], 2.2 * t[first] + 1)) / 2,
                1.04,
                names[i],
                ha="center",
                fontsize=8.5,
                transform=axis.get_xaxis_transform(),
            )


def story(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "story",
        "Why swing-by happens",
        "Above: entries of the model W = U Uᵀ over paper time. A minor (off-diagonal) entry grows "
        "along and fakes the weak concept, until the strong concept, saturating, suppresses it; "
        "the weak concept then has to grow by itself. Below: what that does to the losses. The "
        "training loss never rises.",
    )
    found = rows.where(kind="yours.curve")
    t, ood, train = curve(rows, "yours.curve", "t", "ood", "train")
    names = [k for k in found.frame.columns if k.startswith("w")]
    major = [k for k in names if _diagonal(k[1:])]
    minor = [k for k in names if k not in major]
    with canvas(folder, figure, 2, 1, size=(7.4, 5.2), sharex=True, height_ratios=(1.25, 1)) as (
        top,
        bottom,
    ):
        for k, name in enumerate(major):
            top.plot(
                t,
                found.column(name),
                color=(GREEN, BLUE, PURPLE, GOLD)[k % 4],
                label=f"${_index(name)}$ (major)",
            )
        for k, name in enumerate(minor):
            top.plot(
                t,
                found.column(name),
                color=RED,
                ls=("-", "--", ":", "-.")[k % 4],
                label=f"${_index(name)}$ (minor)",
            )
        top.axhline(1, color=GREY, lw=0.8, ls=":")
        top.set(ylabel="entry of W")
        top.legend(fontsize=8.5, loc="center right", ncols=1 if len(names) < 5 else 2)
        bottom.semilogy(t, ood, color=RED, label="unseen combination (OOD)")
        bottom.semilogy(t, [max(v, 1e-9) for v in train], color=BLUE, label="training")
        bottom.set(ylabel="loss / loss at start", xlabel="paper time", ylim=(1e-2, 1.4))
        bottom.legend(fontsize=8.5, loc="lower left")
        for stage in list(rows.where(kind="yours.stage", stage="suppression"))[:1]:
            peak = (stage["start"], max(map(abs, found.column(stage["entry"]))))
            text = f"${_index(stage['by'])}$ suppresses ${_index(stage['entry'])}$"
            arrow = {"arrowstyle": "-|>", "color": INK, "lw": 0.9, "shrinkB": 4}
            top.annotate(
                text, peak, (12, 52), textcoords="offset points", fontsize=8.5, arrowprops=arrow
            )
        _shade(top, t, ood, True)
        _shade(bottom, t, ood, False)
    return figure


def _diagonal(index: str) -> bool:
    """Does "22" or "12,12" name an entry of the diagonal?"""
    i, _, j = index.partition(",")
    return i == j if j else index[0] == index[1]


def _index(name: str) -> str:
    return f"w_{{{name[1:]}}}"
