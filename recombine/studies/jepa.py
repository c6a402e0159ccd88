"""Can a model of categories be needs_teacher to compose by a continuous loss inside it?

MaskGIT as in `objectives`, and the same with an auxiliary loss: at hidden positions, some blocks must predict what the same
blocks of the model's own moving average say when they see all tokens. One layer or several. Nothing else changes; the loss
on the output stays categorical. Paper A, section 6: level 2 rises from nothing to about a half, and several layers do better
than one.

At full scale the same three are trained once more where classes vary (as in `variation`), not in the paper: MaskGIT learns
level 2 there by itself, in part, so the loss has something to add to. That claim was written before its runs.

Run: `recombine run jepa --scale laptop` (on two cores), `--scale full` (3 seeds, on a GPU).
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from recombine.plots.style import Figure
from recombine.objectives.objective import Objective
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.token_heads import Categorical
from recombine.objectives.jepa import Jepa
from recombine.objectives.masked import Masked
from recombine.studies import listening, objectives, training_figures
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import clear, gain, judged
from recombine.studies.recipe import VARIED, Recipe
from recombine.studies.runs import compute
from recombine.worlds.shapes2d import Shapes2D

PAPER = {"maskgit": 0.006, "jepa": 0.45}
"""Late means of level 2 in the paper's figure 6, read off a picture."""


@dataclass(frozen=True)
class Repair:
    """`several` and `one`: the auxiliary losses that are compared, beside none. The recipe's objective is each one's own.
    `varied`: the jitter of colour and of size in a second world, if any; only Shapes2D has one."""

    recipe: Recipe = field(default_factory=Recipe)
    several: Jepa = field(default_factory=Jepa)
    one: Jepa = field(default_factory=lambda: Jepa(layers=(4,)))
    varied: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.recipe.objective != Diffusion():
            raise ValueError("recipe.objective: this study sets it; set several or one")
        self.variants()

    def variants(self) -> dict[str, Recipe]:
        plain: dict[str, Objective] = {"maskgit": Masked(Categorical())}
        helped = {"jepa": self.several, "jepa, one layer": self.one}
        all_of = plain | {name: Masked(Categorical(), jepa=j) for name, j in helped.items()}
        made = {name: replace(self.recipe, objective=o) for name, o in all_of.items()}
        if self.varied and isinstance(self.recipe.world, Shapes2D):
            made |= {varied(name): r.varying(*self.varied) for name, r in made.items()}
        return made


def varied(name: str) -> str:
    return f"{name}, varied"


def settings(scale: Scale) -> Repair:
    recipe = objectives.settings(scale).recipe
    if scale == "full":
        return Repair(recipe, varied=VARIED)
    return Repair(recipe, Jepa(layers=(0, 1)), Jepa(layers=(1,)))


def run(settings: Repair, lab: Lab) -> list[Row]:
    return compute(settings.variants(), lab)


def judge_repair(rows: Rows) -> Judgement:
    found, measured = judged(rows, PAPER)
    if found["maskgit", 2].mean > 0.6:
        raise LookupError("MaskGIT composes by itself here: there is nothing to repair")
    lift = gain(found["jepa", 2], found["maskgit", 2])
    return Judgement(clear(lift, 0.25) or ("partly" if lift.mean >= 0.1 else False), measured, lift.interval)


def judge_where_classes_vary(rows: Rows) -> Judgement:
    found, measured = judged(rows, dict.fromkeys(map(varied, ("maskgit", "jepa", "jepa, one layer"))))
    lift = gain(found[varied("jepa"), 2], found[varied("maskgit"), 2])
    return Judgement(clear(lift, 0.2) or ("partly" if lift.mean >= 0.1 else False), measured, lift.interval)


def judge_layers(rows: Rows) -> Judgement:
    found, measured = judged(rows, {"jepa": 0.563, "jepa, one layer": 0.276})
    lift = gain(found["jepa", 2], found["jepa, one layer", 2])
    return Judgement(clear(lift, 0.1) or ("partly" if lift.mean > 0.03 else False), measured, lift.interval)


def judge_dependence(rows: Rows) -> Judgement:
    measured, lifts = {}, {}
    for name in listening.MEASURES:
        found = {v: listening.late_measure(rows, v, name) for v in ("maskgit", "jepa")}
        measured |= {f"{v}, {name}": f.mean for v, f in found.items()}
        lifts[name] = gain(found["jepa"], found["maskgit"])
    some = any(clear(lift, 0.02) for lift in lifts.values())
    return Judgement(clear(lifts["sparse"], 0.02) or ("partly" if some else False), measured, lifts["sparse"].interval)


def draw(rows: Rows, folder: Path) -> list[Figure]:
    return training_figures.draw(rows, folder) + listening.draw(rows, folder)


def describe(settings: Repair) -> dict[str, Any]:
    return settings.recipe.facts() | {"paper_curve": {"maskgit": "maskgit"}}


STUDY = Study(
    name="jepa",
    question="Can a model of categories be needs_teacher to compose by a continuous loss inside it?",
    paper="A, section 6",
    about=about(__doc__),
    cost={
        "smoke": "20 s, one core",
        "laptop": "8 min (estimate), two cores",
        "full": "15 min (estimate), one H200, 3 seeds",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="D6",
            paper="A, Fig 6b",
            statement="An auxiliary continuous loss on inner layers lifts MaskGIT's level 2.",
            expected="level 2 with JEPA - level 2 without >= 0.25, late means by the judge (paper: about 0.45 against 0.006)",
            judge=judge_repair,
            trained=True,
            interval_of="of the lift",
        ),
        Claim(
            id="D7",
            paper="A, table 2 (video clips)",
            statement="The auxiliary loss on several layers does better than on one.",
            expected="level 2 with several layers - with one >= 0.1, late means by the judge (paper: 0.563 against 0.276)",
            judge=judge_layers,
            trained=True,
            interval_of="of the lift",
        ),
        Claim(
            id="B3",
            paper="beyond the papers",
            statement="The auxiliary loss makes MaskGIT's dependence on its conditions sparser.",
            expected="late mean of sparse dependence with JEPA - without >= 0.02, its interval above 0; additive beside it",
            judge=judge_dependence,
            trained=True,
            interval_of="of the change of sparse",
        ),
        Claim(
            id="B24",
            paper="beyond the papers",
            statement="Where classes vary, and MaskGIT composes in part by itself, the auxiliary loss lifts its level 2.",
            expected="level 2 in the varied world, with JEPA - without >= 0.2, its interval above 0; late means by the judge",
            judge=judge_where_classes_vary,
            trained=True,
            interval_of="of the lift",
        ),
    ),
    draw=draw,
    describe=describe,
    stops=True,
)
