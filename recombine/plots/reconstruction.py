"""What tokenizers leave of real pictures, beside these pictures themselves, from rows alone."""

from pathlib import Path
from typing import Any

from recombine.analysis.levels import PROBES, level_mean, level_name
from recombine.analysis.paper_probe import PAPER
from recombine.analysis.reconstruction import REAL, ceilings
from recombine.analysis.table import Table
from recombine.plots.style import BESIDE, INK, LEVELS, Figure, canvas, display

SHOWN = {"oracle": PROBES["oracle"], PAPER: "paper's linear probe, mean over its seeds"}
BAR = 0.26
"""From one bar to the next."""


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [reconstructions(ceilings(rows), folder)]


def reconstructions(read: Table, folder: Path) -> Figure:
    """Bars per tokenizer and level: trained on all compositions, and on the seen ones alone."""
    figure = Figure(
        "ceilings",
        "What tokenizers reconstruct",
        "Share of real pictures that are read as labelled after encoding and decoding. 'all': the "
        "tokenizer was trained on every composition; 'seen': on the seen ones alone. Means over "
        "seeds, with numbers at the highest level; each dot is a seed. Black lines: the same pictures "
        "as they are; since sizes overlap, "
        "not all of them are read as labelled.",
    )
    probes = [probe for probe in SHOWN if read.where(probe=probe)]
    size = (4.4 * max(1, len(probes)) + 1.6, 3.2)
    with canvas(folder, figure, 1, max(1, len(probes)), size, sharey=True, squeeze=False) as axes:
        for axis, probe in zip(axes[0], probes, strict=False):
            plot_probe(axis, read.where(probe=probe))
            axis.set(title=SHOWN[probe], ylim=(-0.03, 1.05))
            axis.grid(axis="x", visible=False)
        axes[0][0].set_ylabel("share read as labelled")
        axes[0][-1].legend(**BESIDE)
    return figure


def plot_probe(axis: Any, rows: Table) -> None:
    names = [v for v in rows.unique("variant") if v != REAL]
    for level in sorted(rows.unique("level")):
        plot_level(axis, rows, names, level)
    if rows.where(variant=REAL):
        axis.plot([], [], color=INK, lw=1.6, label=REAL)
    axis.set_xticks(range(len(names)), [ticked(name) for name in names])


def ticked(variant: str) -> str:
    """ "vae, seen" -> its name above what it was trained on."""
    kind, data = variant.split(", ")
    return f"{display(kind)}\ntrained\non {data}"


def plot_level(axis: Any, rows: Table, names: list[str], level: int) -> None:
    """A bar per tokenizer at one level, a dot per seed, a line where real pictures are."""
    left = BAR * (min(level, 2) - 1)
    for i, name in enumerate(names):
        some = rows.where(variant=name)
        label = level_name(level) if i == 0 else None
        height = level_mean(some, level)
        axis.bar(i + left, height, BAR - 0.02, color=LEVELS[min(level, 4)], label=label)
        seeds = sorted(some.unique("seed"))
        each = [level_mean(some.where(seed=s), level) for s in seeds]
        if len(seeds) > 1:
            axis.plot([i + left] * len(each), each, ".", color=INK, ms=3, alpha=0.6)
        if level == max(rows.unique("level")):
            tall = height > 0.2
            how = {"color": "white" if tall else INK, "rotation": 90, "ha": "center", "fontsize": 7}
            axis.text(i + left, 0.03 if tall else max(height, *each) + 0.03, f"{height:.2f}", **how)
        if real := rows.where(variant=REAL):
            ends = [i + left - BAR / 2, i + left + BAR / 2]
            axis.plot(ends, [level_mean(real, level)] * 2, color=INK, lw=1.6)
