"""docs/between.png: the way from one composition to its neighbours, and what each judge still takes for where it began."""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from PIL import Image

from recombine.plots.style import CYCLE
from recombine.evaluate.interpolation import SHARES, ways
from recombine.report.plate import plate
from recombine.rng import seeded
from recombine.store import read_rows
from recombine.studies.base import Rows
from recombine.studies.levels import way
from recombine.worlds.factors import at_most_one_new
from recombine.worlds.shapes2d import Shapes2D

JUDGES = {
    (1, "wary"): "judge of the shipped runs",
    (1, "cnn"): "the same, made to choose",
    (0, "read"): "strict reader",
    (2, "wary"): "judge from now on",
}


def between(results: Path) -> Image.Image:
    return plate((10.4, 4.7), partial(draw, Rows(read_rows(results / "judges" / "rows.jsonl"))))


def draw(rows: Rows, page: Any) -> None:
    world = Shapes2D()
    along = list(ways(world, at_most_one_new(world.space)))
    upper, lower = page.subfigures(2, 1, height_ratios=(1.1, 1.6))
    for axis, (here, there, factor), color in zip(upper.subplots(len(along), 1), along, CYCLE, strict=False):
        axis.imshow(strip(world, here, there), extent=(-0.05, 1.05, 0, 0.1), interpolation="nearest")
        axis.set_ylabel(factor, rotation=0, ha="right", va="center", color=color)
        axis.set(xticks=(), yticks=())
        axis.grid(visible=False)
        axis.spines[:].set_visible(False)
    axes = lower.subplots(1, len(JUDGES), sharey=True)
    for axis, ((version, probe), title) in zip(axes, JUDGES.items(), strict=True):
        for (_, _, factor), color in zip(along, CYCLE, strict=False):
            points = way(rows.where(version=version), probe, factor)
            axis.plot(*zip(*points, strict=True), color=color, marker="o", ms=3, label=factor)
        axis.axhline(0.5, color="#7A7F87", lw=0.8, ls=":")
        axis.set(title=title, xlabel="share of the way", xlim=(0, 1), ylim=(-0.03, 1.03))
    axes[0].set_ylabel("read as small blue triangle")
    axes[-1].legend()


def strip(world: Shapes2D, here: tuple[int, ...], there: tuple[int, ...]) -> object:
    """One picture at every tenth of the way, side by side, in the middle of its room."""
    ends = [torch.tensor([c] * len(SHARES)) for c in (here, there)]
    still = Shapes2D(wander=0.0, color_jitter=0.0, size_jitter=0.0, background=1.0)
    images = still.interpolate(*ends, torch.tensor(SHARES), seeded("strip"))
    return torch.cat(list(images[:, :, 2:-2]), 2).permute(1, 2, 0).numpy()
