"""Where does the variance over seeds come from: the tokenizer or the network?

Two trainings that differ in their randomness alone may compose or not. In `objectives` a seed
decides everything at once: which tokenizer is learned, where the network starts, in which order it
sees pictures. Here the two are crossed: every network seed on every tokenizer, for MaskGIT and for
DiT. Where both numbers are the same it is the run of `objectives`. Not in the papers, which show
one run each.

Run: `recombine run seed-variance --scale full` (every seed on three tokenizers for two families, on
a GPU); smaller scales have too few seeds for a verdict.
"""

from collections.abc import Iterator
from dataclasses import field, replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import torch

from recombine.analysis.claims import Check, Finding, Measured, Part, claim
from recombine.analysis.estimates import Estimate
from recombine.analysis.levels import PROBES, curve, late, probe_of, seeds_of
from recombine.analysis.table import Table
from recombine.config import config
from recombine.pipeline.job import Job
from recombine.plots import training
from recombine.plots.style import Figure, canvas, display, write_values
from recombine.rng import seeded
from recombine.runs.models import ModelRun, check_jobs
from recombine.runs.recipe import Recipe
from recombine.studies import objectives
from recombine.studies.objectives import Family, Objectives
from recombine.studies.study import Scale, Study, described, recipe_facts

FAMILIES: tuple[Family, ...] = ("maskgit", "dit")
EXACT = 12
"""Cells of the largest table of which every regrouping is looked at."""
MANY = 5000
"""Random regroupings of a larger table, and random choices of its columns."""


@config("settings/seed-variance")
class SeedVariance:
    """As many `tokenizers`, of consecutive seeds, under each of the network's seeds."""

    recipe: Recipe = field(default_factory=objectives.full)
    tokenizers: int = 3

    def __post_init__(self) -> None:
        if self.tokenizers < 1:
            raise ValueError(f"tokenizers must be positive, not {self.tokenizers}")
        if self.recipe.tokenizer.with_seed(1) == self.recipe.tokenizer:
            raise ValueError("recipe.tokenizer: this study needs a learned one")

    def crossed(self, seeds: int) -> dict[tuple[str, int], Recipe]:
        """All recipes, named by family and tokenizer, and by the seed of the network."""
        made = Objectives(self.recipe, FAMILIES).variants()
        named = {}
        for f, t, s in product(FAMILIES, range(self.tokenizers), range(seeds)):
            tokenizer = made[f].tokenizer.with_seed(t)
            named[name_of(f, t), s] = replace(made[f].with_seed(s), tokenizer=tokenizer)
        return named


def name_of(family: str, tokenizer: int) -> str:
    return f"{family}, tokenizer {tokenizer}"


def settings(scale: Scale) -> SeedVariance:
    recipe = objectives.settings(scale).recipe
    return SeedVariance(recipe, tokenizers=3 if scale == "full" else 2)


def jobs(settings: SeedVariance, seeds: int) -> list[Job]:
    recipes = settings.crossed(seeds)
    models = [Job.of(ModelRun(r), variant=v, seed=s) for (v, s), r in recipes.items()]
    return [*check_jobs(recipes), *models]


def crossed_table(rows: Table, family: str) -> np.ndarray:
    """Level 2, late means: a line per tokenizer, a column per seed. LookupError where there are
    fewer than two of each, or runs are missing."""
    variants = rows.where(kind="accuracy").unique("variant")
    names = [v for v in variants if v.startswith(f"{family}, ")]
    lines = [[late(curve(rows, name, s, 2)) for s in seeds_of(rows, name)] for name in names]
    if len(lines) < 2 or min(map(len, lines)) < 2:
        raise LookupError("at least two tokenizers and two seeds are needed")
    if len(set(map(len, lines))) > 1:
        raise LookupError("some runs are missing: not every seed was trained on every tokenizer")
    return np.array(lines)


def shares_between(tables: np.ndarray) -> np.ndarray:
    """Of each table (..., lines, columns) the share of its variance that lies between the lines."""
    centred = tables - tables.mean((-2, -1), keepdims=True)
    whole = (centred**2).sum((-2, -1))
    between = tables.shape[-1] * (centred.mean(-1) ** 2).sum(-1)
    return np.divide(between, whole, out=np.zeros_like(whole), where=whole > 1e-12)


def share_between(table: np.ndarray) -> Estimate:
    """The share of all variance that lies between the lines; its interval from a bootstrap over
    the columns, which are the seeds: exact where they are few."""
    count = table.shape[1]
    if count**count <= MANY:
        picks = np.array(list(product(range(count), repeat=count)))
    else:
        rng = seeded("seed-variance", "columns")
        picks = torch.randint(count, (MANY, count), generator=rng).numpy()
    shares = shares_between(np.moveaxis(table[:, picks], 1, 0))
    low, high = np.quantile(shares, (0.025, 0.975))
    value = float(shares_between(table))
    return Estimate(value, min(float(low), value), max(float(high), value), count, ())


def regroupings(cells: int, size: int) -> Iterator[list[int]]:
    """All ways to put cells into lines of equal size; the order of lines does not matter."""

    def lines(left: tuple[int, ...]) -> Iterator[list[int]]:
        if not left:
            yield []
            return
        for rest in combinations(left[1:], size - 1):
            others = tuple(i for i in left[1:] if i not in rest)
            for more in lines(others):
                yield [left[0], *rest, *more]

    return lines(tuple(range(cells)))


def chance_of_share(table: np.ndarray) -> float:
    """How often cells that are put into lines at random differ as much between lines: over all
    regroupings of a small table, over random ones of a larger table."""
    cells = table.flatten()
    if len(cells) <= EXACT:
        order = np.array(list(regroupings(len(cells), table.shape[1])))
    else:
        rng = seeded("seed-variance", "regroupings")
        order = torch.rand(MANY, len(cells), generator=rng).argsort(1).numpy()
    shares = shares_between(cells[order].reshape(-1, *table.shape))
    return float((shares >= shares_between(table) - 1e-12).mean())


@claim("B11")
def tokenizer_decides(rows: Table) -> Finding:
    """Which tokenizer a model got decides more than its own seed.

    Expected: half or more of the variance of level 2 lies between tokenizers, by chance in at most
    5 % of all regroupings, in both families; late means, open-set probe"""
    parts: list[Part | Check] = []
    shown: Measured = {}
    for family in FAMILIES:
        table = crossed_table(rows, family)
        chance = chance_of_share(table)
        name = f"{family}: share of the variance between tokenizers"
        parts.append(Part(name, share_between(table), 0.5, 1.0))
        parts.append(Check(f"{family}: by chance in at most 5 % of regroupings", chance <= 0.05))
        shown[f"{family}, by chance"] = chance
        shown[f"{family}, share between seeds"] = float(shares_between(table.T))
        shown[f"{family}, level 2"] = float(table.mean())
    return Finding(tuple(parts), shown | {"primary probe": PROBES[probe_of(rows)]})


def figures(rows: Table, folder: Path) -> list[Figure]:
    try:
        tables = {f: crossed_table(rows, f) for f in FAMILIES}
    except LookupError:
        return training.figures(rows, folder)
    return [plot_crossed(tables, folder), *training.figures(rows, folder)]


def plot_crossed(tables: dict[str, np.ndarray], folder: Path) -> Figure:
    figure = Figure(
        "crossed",
        "Every seed on every tokenizer",
        "Level 2, late means, primary probe. Differences between lines come from the tokenizer, "
        "differences between columns from the network.",
    )
    size = (3.6 * len(tables) + 0.6, 3.4)
    with canvas(folder, figure, 1, len(tables), size=size, squeeze=False) as axes:
        for axis, (family, table) in zip(axes[0], tables.items(), strict=True):
            axis.imshow(table, cmap="Blues", vmin=0, vmax=1.15)
            write_values(axis, table)
            axis.set(
                title=display(family), xlabel="seed of the network", ylabel="seed of the tokenizer"
            )
            axis.set(xticks=range(table.shape[1]), yticks=range(table.shape[0]))
            axis.grid(visible=False)
    return figure


STUDY = Study(
    name="seed-variance",
    **described(__doc__),
    cost={
        "smoke": "20 s, one core",
        "laptop": "14 min (estimate), two cores",
        "full": "20 min (estimate), one H200, 3 seeds",
    },
    settings=settings,
    jobs=jobs,
    claims=(tokenizer_decides,),
    figures=figures,
    describe=recipe_facts,
    sensitivity=True,
    run_minutes=1.0,
)
