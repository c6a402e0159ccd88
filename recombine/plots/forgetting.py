"""The figure of `forgetting`: level 2 over updates, with one thing changed at a time."""

from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.analysis.forgetting import BASE
from recombine.analysis.levels import curve, seeds_of
from recombine.analysis.paper_probe import PAPER, with_paper_probe
from recombine.analysis.table import Table
from recombine.plots.accuracy_panels import variants_of
from recombine.plots.style import CYCLE, GREY, Figure, canvas, seed_lines

PROBES = {PAPER: "paper's probe", "oracle": "oracle"}
TITLES = {
    "": "as in label-dropout",
    "averaged": "weights averaged",
    "decayed": "rate falls to nothing",
    "lr 3e-4": "three times the learning rate",
    "clipped": "gradients clipped",
    "longer": "24,000 updates",
}


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [over_updates(with_paper_probe(rows), folder)]


def over_updates(rows: Table, folder: Path) -> Figure:
    figure = Figure(
        "level-2",
        "Level 2 over updates, one thing changed at a time",
        "Share of samples that are read as prompted, above by the paper's linear probe (the mean over "
        "its seeds), below by the oracle. Thin lines are seeds, bold ones their mean; dashed: the mean "
        "of the first panel.",
    )
    known = [*TITLES, *map(change_of, variants_of(rows))]
    variants = sorted(variants_of(rows), key=lambda name: known.index(change_of(name)))
    size = (2.5 * len(variants), 5.0)
    with canvas(folder, figure, 2, len(variants), size=size, sharey=True, squeeze=False) as axes:
        for line, (probe, name) in zip(axes, PROBES.items(), strict=True):
            for axis, variant in zip(line, variants, strict=True):
                plot(axis, rows, variant, probe)
            line[0].set_ylabel(f"level 2, {name}")
        for axis, variant in zip(axes[0], variants, strict=True):
            axis.set_title(TITLES.get(change_of(variant), variant))
        for axis in axes[1]:
            axis.set_xlabel("updates")
    return figure


def change_of(variant: str) -> str:
    """What differs from the first panel."""
    return variant.partition(", ")[2]


def plot(axis: Any, rows: Table, variant: str, probe: str) -> None:
    steps, each = curves(rows, variant, probe)
    seed_lines(axis, steps, each, CYCLE[0])
    if variant != BASE and seeds_of(rows, BASE):
        steps, base = curves(rows, BASE, probe)
        axis.plot(steps, [fmean(y) for y in zip(*base, strict=True)], color=GREY, ls="--", lw=1)
    axis.set(ylim=(-0.03, 1.03))


def curves(rows: Table, variant: str, probe: str) -> tuple[list[int], list[list[float]]]:
    """Updates, and level 2 by seed."""
    each = [curve(rows, variant, seed, 2, probe=probe) for seed in seeds_of(rows, variant)]
    return [step for step, _ in each[0]], [[y for _, y in points] for points in each]
