"""Is every family trained as well as the others, or do the settings favour one?

The same learning rate and clipping need not suit all families: the norms of their gradients differ,
in the median from 0.4 in DiT to 4 in MaskGIT and 6 in GIVT. Here each family of `label-dropout` is
trained with the same few learning rates, with and without clipping, for the same short time. The
best setting of a family is the one with the lowest loss on held-out pictures of seen compositions;
level 2 has no part in it, and a setting with which training diverges is not chosen. If the settings
of `label-dropout`, 1e-4 and no clipping, leave a family much worse on what it has seen, comparing
the families there is not fair. How the families differ at level 2 is measured twice: at one high
learning rate, and each at its own best setting.

Run: `recombine run optimizers --scale full` (on a GPU), `--scale laptop` (two cores).
"""

from dataclasses import field, replace
from itertools import product
from typing import Any

from recombine.analysis.optimizers import CLAIMS
from recombine.config import config
from recombine.objectives.token_heads import Denoising
from recombine.pipeline.job import Job, seed_by_seed
from recombine.plots import optimizers as plots
from recombine.runs.models import ModelRun, SearchRun, model_jobs
from recombine.runs.recipe import Recipe
from recombine.studies import calibrated
from recombine.studies.calibrated import FAMILIES, Calibrated
from recombine.studies.study import Scale, Study, described


@config("settings/optimizers")
class Optimizers:
    """`rates`: learning rates, constant; `clips`: largest norms of a gradient, 0 = not clipped;
    `steps`: updates of each run; `held_out`: pictures of each seen composition for the loss.
    `variants`: some of these settings by their names; none named = all."""

    base: Calibrated = field(default_factory=Calibrated)
    families: tuple[str, ...] = FAMILIES
    rates: tuple[float, ...] = (1e-4, 3e-4, 1e-3)
    clips: tuple[float, ...] = (0.0, 1.0)
    steps: int = 3000
    held_out: int = 256
    variants: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if unknown := [f for f in self.families if f not in FAMILIES]:
            raise ValueError(f"families: {unknown[0]!r} is none of {', '.join(FAMILIES)}")
        if not self.families or not self.rates or not self.clips:
            raise ValueError("families, rates and clips: one or more of each")
        if unknown := [v for v in self.variants if v not in self.names()]:
            raise ValueError(f"variants: {unknown[0]!r} is none of {'; '.join(self.names())}")

    def names(self) -> dict[str, tuple[str, float, float]]:
        """Family, rate and clipping of every setting."""
        return {name_of(*key): key for key in product(self.families, self.rates, self.clips)}

    def recipes(self) -> dict[str, Recipe]:
        names = self.names()
        return {name: self.recipe(*names[name]) for name in self.variants or names}

    def recipe(self, family: str, rate: float, clip: float) -> Recipe:
        recipe = self.base.variant(family)
        train = replace(recipe.train, lr=rate, clip=clip, steps=min(self.steps, recipe.train.steps))
        evaluation = replace(recipe.evaluation, checkpoints=4, keep=0, held_out=self.held_out)
        return replace(recipe, train=train, evaluation=evaluation)


def name_of(family: str, rate: float, clip: float) -> str:
    return f"{family}, {rate:g}, {f'clipped at {clip:g}' if clip else 'not clipped'}"


def settings(scale: Scale) -> Optimizers:
    """At laptop scale all families have as many layers, and MAR a smaller head."""
    base = calibrated.settings(scale)
    if scale == "full":
        return Optimizers(base)
    if scale == "laptop":
        net = replace(base.net, depth=base.recipe.net.transformer.depth)
        mar = Denoising(width=net.width, depth=2)
        return Optimizers(replace(base, net=net, mar=mar), FAMILIES, (3e-4, 1e-3), (0.0,), 4000, 64)
    return Optimizers(base, ("maskgit", "givt"), (1e-4, 1e-3), (0.0, 1.0), 4, 4)


def jobs(settings: Optimizers, seeds: int) -> list[Job]:
    made = seed_by_seed(model_jobs(settings.recipes(), seeds))
    return [
        replace(j, task=SearchRun(j.task.recipe)) if isinstance(j.task, ModelRun) else j
        for j in made
    ]


def describe(settings: Optimizers) -> dict[str, Any]:
    return settings.base.recipe.facts()


STUDY = Study(
    name="optimizers",
    **described(__doc__),
    paper="A, Fig 3",
    cost={
        "smoke": "20 s, one core",
        "laptop": "25 min (estimate), two cores, --workers 2",
        "full": "24 min (estimate), one H200, 5 seeds",
    },
    settings=settings,
    jobs=jobs,
    claims=CLAIMS,
    figures=plots.figures,
    describe=describe,
    run_minutes=0.3,
)
