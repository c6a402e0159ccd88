"""Whose chance is it: the tokenizer's or the network's?

Two trainings that differ in their randomness alone may compose or not. In `objectives` a seed decides everything at once: which
tokenizer is learned, where the network starts, in which order it sees pictures. Here the two are crossed: every network seed on
every tokenizer, for MaskGIT and for DiT. If rows of the table differ and columns do not, it is the tokenizer that decides.
Where both numbers are the same it is the run of `objectives`. Not in the papers, which show one run each.

Run: `recombine run dice --scale full` (3 x 3 for two families, on a GPU); smaller scales have too few seeds for a verdict.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from recombine.plots.style import DARK, Figure, canvas
from recombine.studies import objectives, training_figures
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import curve, late, probe_of, seeds_of
from recombine.studies.objectives import Family, Objectives
from recombine.studies.recipe import Recipe
from recombine.studies.runs import compute_all

FAMILIES: tuple[Family, ...] = ("maskgit", "dit")
MOST = 12
"""Cells of a table whose every regrouping is looked at."""


@dataclass(frozen=True)
class Dice:
    """As many `tokenizers`, of consecutive seeds; the lab says how many seeds of networks."""

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
        return {
            (name_of(f, t), s): replace(made[f].with_seed(s), tokenizer=made[f].tokenizer.with_seed(t))
            for f in FAMILIES
            for t in range(self.tokenizers)
            for s in range(seeds)
        }


def name_of(family: str, tokenizer: int) -> str:
    return f"{family}, tokenizer {tokenizer}"


def settings(scale: Scale) -> Dice:
    return Dice(objectives.settings(scale).recipe, tokenizers=3 if scale == "full" else 2)


def run(settings: Dice, lab: Lab) -> list[Row]:
    return compute_all(settings.crossed(lab.seeds), lab)


def table(rows: Rows, family: str) -> list[list[float]]:
    """Level 2, late means: a line per tokenizer, a column per seed. LookupError where there are fewer than two of each."""
    names = [v for v in dict.fromkeys(rows.where(kind="accuracy").column("variant")) if v.startswith(f"{family}, ")]
    lines = [[late(curve(rows, name, s, 2)) for s in seeds_of(rows, name)] for name in names]
    if len(lines) < 2 or min(map(len, lines)) < 2:
        raise LookupError("at least two tokenizers and two seeds are needed")
    return lines


def between(lines: list[list[float]]) -> float:
    """The share of all variance that lies between the lines."""
    every = [y for line in lines for y in line]
    mean = fmean(every)
    whole = sum((y - mean) ** 2 for y in every)
    return sum(len(line) * (fmean(line) - mean) ** 2 for line in lines) / whole if whole else 0.0


def regrouped(cells: list[float], size: int) -> Iterator[list[list[float]]]:
    """All ways to put cells into lines of equal size; the order of lines does not matter."""
    if not cells:
        yield []
        return
    for rest in combinations(range(1, len(cells)), size - 1):
        line = [cells[0], *(cells[i] for i in rest)]
        others = [y for i, y in enumerate(cells) if i and i not in rest]
        for more in regrouped(others, size):
            yield [line, *more]


def by_chance(lines: list[list[float]]) -> float | None:
    """How often cells that are put into lines by lot differ as much between lines: exact. None for a large table."""
    cells, found = [y for line in lines for y in line], between(lines)
    if len(cells) > MOST:
        return None
    shares = [between(other) >= found - 1e-12 for other in regrouped(cells, len(lines[0]))]
    return fmean(shares)


def judge_tokenizer(rows: Rows) -> Judgement:
    measured: dict[str, Any] = {}
    passed = []
    for f in FAMILIES:
        lines = table(rows, f)
        share, chance = between(lines), by_chance(lines)
        measured |= {f"{f}, share of tokenizers": share, f"{f}, by chance": chance}
        measured[f"{f}, share of seeds"] = between([list(column) for column in zip(*lines, strict=True)])
        measured[f"{f}, level 2"] = fmean(y for line in lines for y in line)
        passed.append(share >= 0.5 and (chance is None or chance <= 0.05))
    return Judgement(all(passed) or ("partly" if any(passed) else False), measured | {"judge": probe_of(rows)})


def draw(rows: Rows, folder: Path) -> list[Figure]:
    try:
        found = [crossed({f: table(rows, f) for f in FAMILIES}, folder)]
    except LookupError:
        found = []
    return found + training_figures.draw(rows, folder)


def crossed(tables: dict[str, list[list[float]]], folder: Path) -> Figure:
    figure = Figure(
        "crossed",
        "Every seed on every tokenizer",
        "Level 2, late means by the probe that judges. Lines that differ are the tokenizer's doing, columns the network's.",
    )
    with canvas(folder, figure, 1, len(tables), size=(3.6 * len(tables) + 0.6, 3.4), squeeze=False) as axes:
        for axis, (family, lines) in zip(axes[0], tables.items(), strict=True):
            axis.imshow(lines, cmap="Blues", vmin=0, vmax=1.15)
            for t, line in enumerate(lines):
                for s, y in enumerate(line):
                    axis.text(s, t, f"{y:.2f}", ha="center", va="center", color="white" if y > 0.6 else DARK)
            axis.set(title=family, xlabel="seed of the network", ylabel="seed of the tokenizer")
            axis.set(xticks=range(len(lines[0])), yticks=range(len(lines)))
            axis.grid(visible=False)
    return figure


def describe(settings: Dice) -> dict[str, Any]:
    return settings.recipe.facts()


STUDY = Study(
    name="dice",
    question="Whose chance is it: the tokenizer's or the network's?",
    paper="beyond the papers",
    about=about(__doc__),
    cost={
        "smoke": "20 s, one core",
        "laptop": "14 min (estimate), two cores",
        "full": "20 min (estimate), one H200, 3 seeds",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="B11",
            paper="beyond the papers",
            statement="Which tokenizer a model got decides more than its own seed.",
            expected="half or more of the variance of level 2 lies between tokenizers, by chance in at most 5 % of all "
            "regroupings, in both families; late means by the judge",
            judge=judge_tokenizer,
            trained=True,
        ),
    ),
    draw=draw,
    describe=describe,
    stops=True,
)
