"""Where the variation inside classes points in a tokenizer's latents, against how well the models on it compose: from rows to
points and a figure. An observation, not a claim."""

from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from recombine.figures import CYCLE, Figure, canvas
from recombine.studies.base import Rows
from recombine.studies.levels import curve, late, seeds_of


class Point(NamedTuple):
    """One run: the slope of its tokenizer, and its level 2, a late mean."""

    variant: str
    seed: int
    slope: float
    level2: float


def weakest(rows: Rows, variant: str, seed: int) -> float | None:
    """The mean slope towards compositions that were not seen, of the factor that has the smallest one: composing needs all.
    None where it was not measured."""
    some = Rows(r for r in rows.where(kind="slope", variant=variant, seed=seed) if r["level"] > 0)
    each = [fmean(some.where(factor=name).column("slope")) for name in {r["factor"] for r in some}]
    return min(each, default=None)


def points(rows: Rows) -> list[Point]:
    """Every run whose tokenizer was measured and that was asked for level 2."""
    found = []
    for variant in dict.fromkeys(rows.where(kind="accuracy", level=2).column("variant")):
        for seed in seeds_of(rows, variant):
            if (x := weakest(rows, variant, seed)) is not None:
                found.append(Point(variant, seed, x, late(curve(rows, variant, seed, 2))))
    return found


def draw(rows: Rows, folder: Path) -> list[Figure]:
    """Nothing where it was not measured."""
    found = points(rows)
    return [scatter(found, folder)] if found else []


def scatter(found: list[Point], folder: Path) -> Figure:
    figure = Figure(
        "slopes",
        "Where variation inside a class points, and whether models compose",
        "Each point is a run. Across: how far the trend of latents with a factor's true value, inside a seen composition, "
        "reaches towards an unseen one that differs in this factor; of the factor for which it is weakest. 1: all the way, as "
        "in pixels; 0: what varies inside a class says nothing. Up: level 2, late mean by the probe that judges.",
    )
    with canvas(folder, figure, size=(7.4, 3.6)) as axis:
        for variant, color, mark in zip(
            dict.fromkeys(p.variant for p in found), CYCLE * 4, "osD^v<>" * 6, strict=False
        ):
            mine = [(p.slope, p.level2) for p in found if p.variant == variant]
            axis.scatter(*zip(*mine, strict=True), s=46, color=color, marker=mark, alpha=0.8, lw=0, label=variant)
        axis.set(xlabel="slope of the weakest factor", ylabel="level 2, joint accuracy", ylim=(-0.03, 1.03))
        axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
