"""Overlaps of circuits, with and without the auxiliary loss, and how good attribution is; from rows
alone."""

from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.analysis.circuits import (
    PAPER_PAIRS,
    VARIANTS,
    WORDS,
    Pair,
    agreement,
    circuit_size,
    overlap_table,
    paired_seeds,
    pairs_of,
    papers,
)
from recombine.analysis.table import Table
from recombine.metrics.circuits import chance
from recombine.plots.heads import COLORS, cut_heads, lines, polysemantic_layers, thresholds
from recombine.plots.style import INK, LEVELS, Figure, canvas, write_values


def figures(rows: Table, folder: Path) -> list[Figure]:
    """Heads first, then units."""
    makers = (polysemantic_layers, thresholds, cut_heads, overlap_maps, overlap_pairs, attributions)
    return [make(rows, folder) for make in makers]


def matrix(rows: Table, variant: str, codes: list[str]) -> Float[Tensor, "n n"]:
    """The mean overlap over seeds, every composition against every other; itself twice on the
    diagonal."""
    pairs, table = (
        pairs_of(rows) + pairs_of(rows, same=True),
        torch.full((len(codes),) * 2, torch.nan),
    )
    for p, value in zip(pairs, overlap_table(rows, variant, pairs).mean(0).tolist(), strict=True):
        i, j = codes.index(p.first), codes.index(p.second)
        table[i, j] = table[j, i] = value
    return table


def overlap_maps(rows: Table, folder: Path) -> Figure:
    same = sorted(pairs_of(rows, same=True), key=lambda p: (p.levels, p.first))
    codes = [p.first for p in same]
    without, with_it = (matrix(rows, v, codes) for v in VARIANTS)
    figure = Figure(
        "overlap",
        "Circuits of two compositions",
        f"Jaccard overlap of the {100 * circuit_size(rows):g} % most influential units, in per "
        "cent, mean over seeds. Each circuit is estimated twice, from two halves of the "
        "composition's pictures, and the first of one is compared with the second of the other; so "
        "the diagonal shows how reliable a circuit is. Right: the change in points. Labels are "
        "coloured by level.",
    )
    with canvas(folder, figure, 1, 3, size=(11.4, 4.1)) as axes:
        for axis, table, title in zip(axes, (without, with_it), WORDS.values(), strict=False):
            heat(axis, 100 * table, same, title, cmap="Blues", vmin=0, vmax=100)
        change = 100 * (with_it - without)
        most = max(1.0, float(change.abs().max()))
        heat(axes[2], change, same, "with - without", cmap="RdBu_r", vmin=-most, vmax=most)
    return figure


def heat(axis: Any, table: Float[Tensor, "n n"], same: list[Pair], title: str, **how: Any) -> None:
    axis.imshow(table, **how)
    if len(same) <= 10:
        write_values(axis, table.tolist(), ".0f", float(max(abs(how["vmin"]), how["vmax"])))
    names = [p.first for p in same]
    axis.set_xticks(range(len(names)), names, rotation=45)
    axis.set_yticks(range(len(names)), names)
    for labels in (axis.get_xticklabels(), axis.get_yticklabels()):
        for label, pair in zip(labels, same, strict=True):
            label.set_bbox(
                {
                    "boxstyle": "round,pad=0.15",
                    "fc": LEVELS[min(pair.levels[0], 4)],
                    "ec": "none",
                    "alpha": 0.35,
                }
            )
    axis.grid(visible=False)
    axis.set_title(title)


def overlap_pairs(rows: Table, folder: Path) -> Figure:
    pairs, same = (papers(pairs_of(rows, same)) for same in (False, True))
    figure = Figure(
        "pairs",
        "More shared factors, more shared units",
        "Left: Jaccard overlap of the paper's six pairs, which differ in shape, colour or both, "
        "mean over seeds (pale: with an unseen composition; the last group is one composition "
        "twice, from two halves of its pictures). Middle: the paper's numbers. Right: other shares "
        "of units than the one that decides the claim, at which the models without the auxiliary "
        "loss come nearest to the paper's mean (solid: different compositions; dashed: the same "
        "twice; dotted: chance level).",
    )
    with canvas(folder, figure, 1, 3, size=(11.4, 3.7), width_ratios=(1.25, 0.75, 1.0)) as (
        left,
        middle,
        right,
    ):
        by_count(left, rows, [*pairs, *same])
        paper_pairs(middle)
        every = sorted(rows.where(kind="overlap").unique("share"))
        for v in VARIANTS:
            for some, how in ((pairs, {}), (same, {"ls": "--", "lw": 1.0, "ms": 0})):
                each = [overlap_table(rows, v, some, share).mean(1) for share in every]
                lines(right, every, torch.stack(each, 1), v, "_" if how else "", **how)
        right.plot(every, [chance(s) for s in every], ":", color=INK, lw=1)
        right.axvline(circuit_size(rows), color=INK, lw=0.6, alpha=0.5)
        right.set(
            xscale="log", xlabel="share of units in a circuit", title="other circuits", ylim=(0, 1)
        )
        right.set_xticks(every, [f"{100 * s:g} %" for s in every])
        right.minorticks_off()
        left.legend(loc="upper left")
    return figure


def by_count(axis: Any, rows: Table, pairs: list[Pair]) -> None:
    """A dot per pair, a bar at the mean of each group. What all pairs share is not counted."""
    fewest = min(p.shared for p in pairs)
    counts = sorted({p.shared - fewest for p in pairs})
    for i, v in enumerate(VARIANTS):
        overlap = overlap_table(rows, v, pairs).mean(0)
        for k in counts:
            mine = [n for n, p in enumerate(pairs) if p.shared - fewest == k]
            x = k + (i - 0.5) * 0.36
            spread = torch.linspace(-0.11, 0.11, len(mine)) if len(mine) > 1 else torch.zeros(1)
            for n, dx in zip(mine, spread.tolist(), strict=True):
                alpha = 0.35 if any(pairs[n].levels) else 1.0
                axis.plot(x + dx, overlap[n], "o", color=COLORS[v], ms=4, alpha=alpha, mew=0)
            label = {"label": WORDS[v]} if k == counts[0] else {}
            axis.plot(
                [x - 0.16, x + 0.16], [overlap[mine].mean()] * 2, color=COLORS[v], lw=2.5, **label
            )
    axis.set(xlabel="factors shared", ylabel="Jaccard overlap", title="here", ylim=(0, 1.02))
    axis.set_xticks(counts, [*map(str, counts[:-1]), "same"])


def paper_pairs(axis: Any) -> None:
    """The same, of two factors: four pairs share one, two share none."""
    values = list(PAPER_PAIRS.values())
    for shared, some in ((1, values[:4]), (0, values[4:])):
        for i, v in enumerate(VARIANTS):
            each, x = [pair[i] for pair in some], shared + (i - 0.5) * 0.36
            axis.plot(
                [x + (n - (len(each) - 1) / 2) * 0.06 for n in range(len(each))],
                each,
                "o",
                color=COLORS[v],
                ms=4,
                mew=0,
            )
            axis.plot([x - 0.16, x + 0.16], [sum(each) / len(each)] * 2, color=COLORS[v], lw=2.5)
    axis.set(xlabel="factors shared", title="paper", ylim=(0, 1.02), xlim=(-0.5, 1.5))
    axis.set_xticks([0, 1])


def attributions(rows: Table, folder: Path) -> Figure:
    seed = paired_seeds(rows)[0]
    figure = Figure(
        "attribution",
        "Attribution against ablation",
        f"Random units of the models of seed {seed}: how much each changes the loss of a picture, "
        "estimated from one gradient, against the change when it is cut (set to zero). Coloured by "
        "layer, from light (first) to dark (last). Units without any effect are not shown.",
    )
    with canvas(folder, figure, 1, 2, size=(8.6, 3.9), sharex=True, sharey=True) as axes:
        for axis, v in zip(axes, VARIANTS, strict=True):
            units = [
                u
                for u in rows.where(kind="unit", variant=v, seed=seed)
                if min(u["attribution"], u["ablation"]) > 0
            ]
            x, y, layer = ([u[k] for u in units] for k in ("attribution", "ablation", "layer"))
            axis.scatter(
                x,
                y,
                c=[i + max(layer, default=0) / 3 for i in layer],
                cmap="Blues",
                vmin=0,
                s=12,
                lw=0,
                alpha=0.9,
            )
            if units:
                ends = [min(x + y), max(x + y)]
                axis.plot(ends, ends, ":", color=INK, lw=1)
            axis.set(xscale="log", yscale="log", xlabel="attribution")
            axis.set_title(f"{WORDS[v]}: rank correlation {agreement(rows, v)[0]:.2f}")
        axes[0].set_ylabel("ablation")
    return figure
