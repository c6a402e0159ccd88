"""What tokenizers leave of real pictures, from rows alone."""

from pathlib import Path
from typing import Any

from recombine.analysis.levels import PROBES, level_mean, level_name
from recombine.analysis.table import Table
from recombine.plots.style import BESIDE, GREY, LEVELS, Figure, canvas, display


def ceilings(rows: Table, folder: Path) -> Figure:
    """Bars per tokenizer and level: trained on all compositions, and on the seen ones alone."""
    limit = rows.where(kind="ceiling")
    probes = [p for p in ("open-set", "oracle") if limit.where(probe=p)]
    names = [v for v in limit.unique("variant") if ", " in v]
    figure = Figure(
        "ceilings",
        "What tokenizers reconstruct",
        "Share of real pictures that still show their composition after encoding and decoding. "
        "'all': the tokenizer was trained on every composition; 'seen': on the seen ones alone. "
        "Means over seeds; each dot is a seed.",
    )
    size = (4.2 * len(probes) + 1.4, 3.2)
    with canvas(folder, figure, 1, len(probes), size=size, sharey=True, squeeze=False) as axes:
        for axis, probe in zip(axes[0], probes, strict=True):
            for level in sorted(limit.unique("level")):
                plot_level(axis, limit.where(probe=probe), names, level)
            axis.set_xticks(range(len(names)), [display(n).replace(", ", "\n") for n in names])
            axis.set(title=PROBES[probe], ylim=(-0.03, 1.05))
        axes[0][0].set_ylabel("joint accuracy of reconstructions")
        axes[0][-1].legend(**BESIDE)
    return figure


def plot_level(axis: Any, rows: Table, names: list[str], level: int) -> None:
    """A bar per tokenizer at one level, a dot per seed."""
    left = 0.26 * (min(level, 2) - 1)
    for i, name in enumerate(names):
        some = rows.where(variant=name)
        label = level_name(level) if i == 0 else None
        height = level_mean(some, level)
        axis.bar(i + left, height, 0.24, color=LEVELS[min(level, 4)], label=label)
        seeds = sorted(some.unique("seed"))
        if len(seeds) > 1:
            each = [level_mean(some.where(seed=s), level) for s in seeds]
            axis.plot([i + left] * len(each), each, ".", color=GREY, ms=4)
