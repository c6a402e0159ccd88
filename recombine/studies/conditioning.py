"""How complete must the condition be for a model to compose?

The same DiT, data and training as in `composition`; only what it is told differs. Continuous: the true colour and size of
every picture. Quantised: only their class. With dropout: 10 % of the time, per factor and picture, a factor is replaced by a
learned null. Zero: 10 % of the time, for a whole batch, a factor's class is replaced by the first class, as public code of
the paper does; that tells the model what is false. All models are asked with every factor given. Paper A, Fig 4: the
continuous condition composes, the quantised one does so unreliably, and dropout ruins both.

Run: `recombine run conditioning --scale laptop` (10 min on two cores, an estimate), `--scale full` (13 min, H200).
"""

from dataclasses import dataclass, field, replace
from typing import Any

from recombine.nets.conditioning import Conditioning
from recombine.studies import composition, training_figures
from recombine.studies.base import Claim, Judgement, Row, Rows, Scale, Study, about
from recombine.studies.lab import Lab
from recombine.studies.levels import judged, late, over_seeds
from recombine.studies.recipe import Recipe
from recombine.studies.runs import compute

VARIANTS = {
    "continuous": Conditioning("continuous"),
    "continuous+dropout": Conditioning("continuous", 0.1),
    "quantised": Conditioning("quantised"),
    "quantised+dropout": Conditioning("quantised", 0.1),
    "quantised+zero": Conditioning("quantised", 0.1, dropped="zero"),
}
PAPER = {"continuous": 1.0, "continuous+dropout": 0.0, "quantised": 0.602, "quantised+dropout": 0.0}
"""Late means of level 2 in the paper's figures 4a to 4d; the last may have dropped to zero."""
CURVES = {
    "continuous": "DiT_cont_label_sec_run",
    "continuous+dropout": "diff_cont_dropout",
    "quantised": "discrete_DiT_XAI3",
    "quantised+dropout": "diffusion_real_dropout_avg_3seeds",
}


@dataclass(frozen=True)
class Completeness:
    """`recipe` is shared by all variants; the mode and the dropout of its conditioning are each one's own."""

    recipe: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        if replace(self.recipe.conditioning, signal="balanced") != Conditioning():
            raise ValueError("recipe.conditioning: this study sets it itself; only signal may be changed")


def settings(scale: Scale) -> Completeness:
    return Completeness(composition.settings(scale).recipe)


def run(settings: Completeness, lab: Lab) -> list[Row]:
    tell = {name: replace(c, signal=settings.recipe.conditioning.signal) for name, c in VARIANTS.items()}
    return compute({name: replace(settings.recipe, conditioning=c) for name, c in tell.items()}, lab)


def judge_order(rows: Rows) -> Judgement:
    found, measured = judged(rows, PAPER)
    full, quantised = found["continuous", 2].mean, found["quantised", 2].mean
    dropped = max(found[name, 2].mean for name in PAPER if "dropout" in name)
    measured["quantised+zero"] = over_seeds(rows, "quantised+zero", 2, late).mean
    ordered = full - quantised >= 0.1 and quantised - dropped >= 0.1
    some = full >= max(quantised, dropped) + 0.1 or min(full, quantised) >= dropped + 0.1
    verdict = True if ordered and full >= 0.95 else "partly" if some else False
    return Judgement(verdict, measured, found["quantised", 2].interval)


def describe(settings: Completeness) -> dict[str, Any]:
    return settings.recipe.facts() | {"paper_curve": CURVES}


STUDY = Study(
    name="conditioning",
    question="How complete must the condition be for a model to compose?",
    paper="A, Fig 4",
    about=about(__doc__),
    cost={
        "smoke": "30 s, one core",
        "laptop": "10 min (estimate), two cores",
        "full": "13 min, one H200, 3 seeds, 8 at a time",
    },
    settings=settings,
    compute=run,
    claims=(
        Claim(
            id="D5",
            paper="A, Fig 4",
            statement="Level 2 is reached with the full continuous condition, unreliably with a quantised one, and not with "
            "10 % of factors dropped in training.",
            expected="late level 2 by the judge: continuous >= 0.95, at least 0.1 above quantised, that at least 0.1 above "
            "both dropouts",
            judge=judge_order,
            trained=True,
            interval_of="of quantised at level 2",
        ),
    ),
    draw=training_figures.draw,
    describe=describe,
    stops=True,
)
