"""Why does label dropout keep a model from composing?

In paper A, and in `label-dropout`, models that compose stop doing so when single labels are left out
of some training pictures. Here an exact model (theory/products.py) is trained by gradient flow on
the four combinations of `composition`, conditioned on shape, colour and size, some of them missing;
it is prompted for all eight, with all labels. Products of labels cost much (`prior`), so without
dropout it composes.

A picture whose shape is not given teaches that blue means circle and small means circle, as that is
so in training. What a model learns from it of blue and of small also enters its answer where the
shape is given, unless it has a product of labels for just that case; and of combinations that it has
never seen nothing tells it to have one. Where all labels of a picture are left out at once, as
guided models are trained, there is nothing to guess from, and nothing of the kind is learned.

- classes: labels say the class, and pictures of a class are alike to the model;
- values: labels say a picture's own colour and size, which vary within a class.

Beside it stand small trained models, MaskGIT and DiT, in the world of `label-dropout` with class
labels: all given, single ones left out in a tenth of the pictures (dropout), all left out at once in
a tenth (guidance). Full scale is the same as laptop, over seeds that had no part in the choice of
the settings (5 to 9). Rate and length were chosen by what is learned of seen combinations; U-Nets
had been set aside because they do not compose with class labels, whatever is left out.

Not in the papers. The exact model was made after `label-dropout` and `labels` had been run, so it
explains their dropout of single labels; what it says of all labels at once was said before any of
the models here, and before one of full size was trained so (claim G15 of `label-dropout` expects the
opposite).

Run: `recombine run missing-labels --scale laptop` (8 min on two cores), `--scale full`.
"""

from dataclasses import field, replace
from typing import Any

from recombine.analysis import missing_labels as claims
from recombine.analysis.missing_labels import FAMILIES
from recombine.config import config
from recombine.pipeline.job import Job, seed_by_seed
from recombine.plots import missing_labels as plots
from recombine.runs.missing_labels import MissingLabelsRun
from recombine.runs.models import model_jobs
from recombine.runs.recipe import Recipe
from recombine.studies import calibrated
from recombine.studies.calibrated import Calibrated
from recombine.studies.study import Scale, Study, described
from recombine.studies.two_models import UNUSED


@config("settings/missing-labels")
class MissingLabels:
    """Of the exact model: `shares`: how often a single label is left out; `often`: shares of pictures
    without any label; `spread`: of colour and size where labels are values, in halves of the distance
    between classes; answers are recorded at `steps` times up to `end`. Of the trained ones:
    `variants`, in the names of `calibrated`; seeds are counted from `first_seed`."""

    prior: float = 0.05
    shares: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1)
    often: tuple[float, ...] = (0.1, 0.3)
    spread: float = 0.3
    end: float = 1e7
    steps: int = 161
    base: Calibrated = field(default_factory=Calibrated)
    variants: tuple[str, ...] = tuple(
        family + ending for family in FAMILIES for ending in ("", ", dropout", ", guidance")
    )
    first_seed: int = 0

    def __post_init__(self) -> None:
        rising = list(self.shares) == sorted(set(self.shares))
        if len(self.shares) < 3 or not rising or not 0 < self.shares[0] < self.shares[-1] < 1:
            raise ValueError(f"shares={list(self.shares)}: three or more, rising, between 0 and 1")
        if not self.often or not all(0 < share < 1 for share in self.often):
            raise ValueError(f"often={list(self.often)}: one or more, between 0 and 1")

    def recipes(self) -> dict[str, Recipe]:
        return {name: self.base.variant(name) for name in self.variants}


def settings(scale: Scale) -> MissingLabels:
    base = calibrated.settings("smoke" if scale == "smoke" else "laptop")
    if scale == "smoke":
        return MissingLabels(steps=41, base=base)
    evaluation = replace(base.recipe.evaluation, keep=0)
    base = replace(base, recipe=replace(base.recipe, evaluation=evaluation))
    return MissingLabels(base=base, first_seed=UNUSED if scale == "full" else 0)


def jobs(settings: MissingLabels, seeds: int) -> list[Job]:
    models = model_jobs(settings.recipes(), seeds, settings.first_seed)
    return [*exact(settings), *seed_by_seed(models)]


def exact(s: MissingLabels) -> list[Job]:
    """Nothing is random: seeds make no difference."""
    most = s.shares[-1]
    shares = [("classes", p, "null") for p in (0.0, *s.shares)]
    others = [*(("classes", p, "together") for p in s.often), ("classes", most, "zero")]
    values = [("values", p, how) for p, how in ((0.0, "null"), (most, "null"), (most, "together"))]
    made = []
    for labels, missing, dropped in (*shares, *others, *values):
        spread = s.spread if labels == "values" else 0.0
        task = MissingLabelsRun(s.prior, missing, dropped, spread, s.end, s.steps)
        made.append(Job.of(task, labels=labels, missing=missing, dropped=dropped))
    return made


def describe(settings: MissingLabels) -> dict[str, Any]:
    return settings.base.recipe.facts()


STUDY = Study(
    name="missing-labels",
    **described(__doc__),
    cost={
        "smoke": "20 s, one core",
        "laptop": "8 min, two cores, --workers 2",
        "full": "40 min, two cores, --workers 2, seeds 5 to 9",
    },
    settings=settings,
    jobs=jobs,
    claims=claims.CLAIMS,
    figures=plots.figures,
    describe=describe,
    run_minutes=0.5,
)
