"""Attention heads of opened models, with and without the auxiliary loss, from rows alone."""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.analysis.circuits import (
    PAPER_HEADS,
    THRESHOLDS,
    VARIANTS,
    WORDS,
    accuracy_drops,
    factors_of,
    head_table,
    paired_seeds,
    shares,
    sweep,
    threshold,
)
from recombine.analysis.table import Table
from recombine.metrics.attention_heads import breadth
from recombine.plots.style import BESIDE, CYCLE, FAMILY, GREY, INK, Figure, canvas, seed_lines

COLORS = {"maskgit": FAMILY["maskgit"], "jepa": FAMILY["jepa"]}


def paired_bars(
    axis: Any, heights: dict[str, Float[Tensor, "seeds n"]], width: float = 0.38
) -> None:
    """A bar per variant and place, every seed a dot on it."""
    for i, (v, each) in enumerate(heights.items()):
        x = torch.arange(each.shape[1]) + (i - 0.5) * width
        axis.bar(x, each.mean(0), width, color=COLORS[v], label=WORDS[v], alpha=0.85)
        for seed in each if len(each) > 1 else []:
            axis.plot(x, seed, ".", color=INK, ms=4, alpha=0.6)


def polysemantic_layers(rows: Table, folder: Path) -> Figure:
    at = threshold(rows)
    each = {v: shares(rows, v, at) for v in VARIANTS}
    layers, heads = each["maskgit"].shape[1], head_table(rows, "maskgit").shape[-1]
    figure = Figure(
        "polysemantic",
        "Heads that are sensitive to more than one factor",
        f"Share of each layer's {heads} heads whose sensitivity lies above {at:.2g} for two "
        "factors "
        "or more. At this threshold the models without the auxiliary loss have the paper's mean "
        "share. Bars are means over seeds, dots are seeds (one head more or less moves a dot by "
        f"{1 / heads:.2f}). Right: the paper's bars.",
    )
    with canvas(
        folder, figure, 1, 2, size=(9.6, 3.4), sharey=True, width_ratios=(max(layers, 4), 12)
    ) as (left, right):
        paired_bars(left, each)
        paired_bars(right, {v: torch.tensor([PAPER_HEADS[v]]) for v in VARIANTS})
        for axis, title, count in ((left, "here", layers), (right, "paper", 12)):
            axis.set(title=title, xlabel="layer", ylim=(0, 1.02))
            axis.set_xticks(range(count))
            axis.grid(axis="x", visible=False)
        left.set_ylabel("polysemantic heads")
        right.legend(loc="upper right")
    return figure


def thresholds(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "thresholds",
        "Polysemantic heads at other thresholds",
        "Left: the share of polysemantic heads as the threshold is swept; the dotted line is the "
        "one that decides the claim. Right: without a threshold, the number of factors to which a "
        "head is sensitive (participation ratio of its sensitivities: 1 = one factor only). Thin "
        "lines are seeds.",
    )
    with canvas(folder, figure, 1, 2, size=(9.0, 3.3)) as (left, right):
        for v in VARIANTS:
            lines(left, THRESHOLDS, sweep(rows, v), v)
            wide = breadth(head_table(rows, v)).mean(-1)
            lines(right, range(wide.shape[1]), wide, v)
        left.axvline(threshold(rows), color=INK, lw=1, ls=":")
        left.set(
            xscale="log",
            xlabel="threshold (1 - cosine)",
            ylabel="polysemantic heads",
            title="swept",
        )
        right.set(
            xlabel="layer",
            ylabel="factors per head",
            title="without a threshold",
            ylim=(0.95, len(factors_of(rows))),
        )
        right.set_xticks(range(wide.shape[1]))
        left.legend(loc="lower left")
    return figure


def lines(
    axis: Any, x: Any, each: Float[Tensor, "seeds n"], variant: str, label: str = "", **how: Any
) -> None:
    seed_lines(axis, x, each.tolist(), COLORS[variant], label or WORDS[variant], **how)


def cut_heads(rows: Table, folder: Path) -> Figure:
    seed, factors = paired_seeds(rows)[0], factors_of(rows)
    fall = {v: accuracy_drops(rows, v)[:, 0] for v in VARIANTS}
    most = max(0.05, *(float(f.max()) for f in fall.values()))
    figure = Figure(
        "heads",
        "Which factor suffers when a head is cut",
        f"Models of seed {seed}. Each cell is a head; its bars say by how much each factor's "
        "accuracy falls over samples of all compositions when the head's output is set to zero (a "
        f"full cell: {most:.2f}).",
    )
    layers, heads = fall["maskgit"].shape[1:]
    with canvas(
        folder, figure, 1, 2, size=(9.4, 0.9 + max(1.6, 0.44 * layers)), sharey=True
    ) as axes:
        for axis, v in zip(axes, VARIANTS, strict=True):
            for k, name in enumerate(factors):
                cells(
                    axis,
                    (fall[v][k] / most).clamp(0, 1),
                    k,
                    len(factors),
                    CYCLE[k % len(CYCLE)],
                    name,
                )
            axis.set(
                title=WORDS[v], xlabel="head", xlim=(-0.5, heads - 0.5), ylim=(-0.5, layers - 0.5)
            )
            axis.set_xticks(range(heads))
            axis.set_yticks(range(layers))
            axis.grid(visible=False)
            for edge in range(layers + 1):
                axis.axhline(edge - 0.5, color=GREY, lw=0.5, alpha=0.5)
            for edge in range(heads + 1):
                axis.axvline(edge - 0.5, color=GREY, lw=0.5, alpha=0.5)
        axes[0].set_ylabel("layer")
        axes[1].legend(**BESIDE)
    return figure


def cells(
    axis: Any, sizes: Float[Tensor, "layers heads"], k: int, factors: int, color: str, label: str
) -> None:
    """One bar in every cell, `k` of `factors` side by side, standing on the cell's floor."""
    layer, head = (
        x.flatten() for x in torch.meshgrid(*map(torch.arange, sizes.shape), indexing="ij")
    )
    width = 0.84 / factors
    left = head - 0.42 + k * width
    axis.bar(
        left,
        0.92 * sizes.flatten(),
        0.9 * width,
        bottom=layer - 0.48,
        align="edge",
        color=color,
        label=label,
        lw=0,
    )
