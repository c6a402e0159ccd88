"""Does a nuisance that moves help a model to compose?

The models of `objectives`, MaskGIT and DiT, in worlds that differ in one number: how far objects wander. Position is told to no
model and asked of none. Near the middle every picture of a composition looks alike and a model may learn it as a whole; where
objects go anywhere it has to be drawn from parts. Not in the papers: it came up because MaskGIT failed at level 2 in the one
world, as paper A says, and did not in the other.

Run: `recombine run nuisance --scale laptop` (on two cores), `--scale full` (3 seeds, on a GPU).
"""

from dataclasses import dataclass, field, replace
from typing import Any

from recombine.studies import objectives, training_figures
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import clear, gain, late, over_seeds
from recombine.studies.objectives import Family, Objectives
from recombine.studies.recipe import Recipe
from recombine.studies.runs import compute
from recombine.worlds.shapes2d import Shapes2D


@dataclass(frozen=True)
class Nuisance:
    """`near` and `far`: the shares of the free room that positions use."""

    recipe: Recipe = field(default_factory=objectives.full)
    families: tuple[Family, ...] = ("maskgit", "dit")
    near: float = 0.3
    far: float = 1.0

    def __post_init__(self) -> None:
        if not isinstance(self.recipe.world, Shapes2D):
            raise ValueError("recipe.world: this study moves the objects of Shapes2D")

    def variants(self) -> dict[str, Recipe]:
        found = {}
        for word, wander in (("near", self.near), ("far", self.far)):
            there = replace(self.recipe, world=replace(self.recipe.world, wander=wander))
            made = Objectives(there, self.families).variants()
            found |= {f"{name}, {word}": recipe for name, recipe in made.items()}
        return found


def settings(scale: Scale) -> Nuisance:
    return Nuisance(objectives.settings(scale).recipe)


def run(settings: Nuisance, lab: Lab) -> list[Row]:
    return compute(settings.variants(), lab)


def judge_wander(rows: Rows) -> Judgement:
    measured = {}
    for name in ("maskgit", "dit"):
        for word in ("near", "far"):
            measured |= {f"{name}, {word}": over_seeds(rows, f"{name}, {word}", 2, late, "cnn").mean}
            measured |= {f"{name}, {word}, level 1": over_seeds(rows, f"{name}, {word}", 1, late, "cnn").mean}
    far, near = (over_seeds(rows, f"maskgit, {word}", 2, late, "cnn") for word in ("far", "near"))
    lift = gain(far, near)
    return Judgement(clear(lift, 0.5) or ("partly" if lift.mean >= 0.2 else False), measured, lift.interval)


def describe(settings: Nuisance) -> dict[str, Any]:
    return settings.recipe.facts()


STUDY = Study(
    name="nuisance",
    question="Does a nuisance that moves help a model to compose?",
    paper="beyond the papers",
    about=about(__doc__),
    cost={
        "smoke": "20 s, one core",
        "laptop": "12 min (estimate), two cores",
        "full": "15 min (estimate), one H200, 3 seeds",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="B6",
            paper="beyond the papers",
            statement="MaskGIT fails at level 2 where objects stay in the middle; where they go anywhere, it composes.",
            expected="level 2 of MaskGIT, far - near >= 0.5, late means by the classifier",
            judge=judge_wander,
            trained=True,
        ),
    ),
    draw=training_figures.draw,
    describe=describe,
)
