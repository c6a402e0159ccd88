"""How large should the receptive field of a local network be?

A local network is conditioned on a location in the cells around it. Two things can go wrong. Its
patch can be too small for an object: then pixels of the object are not conditioned on the location,
and show something of their own, or nothing. And it can be so large that it holds more locations
than training ever conditioned on: then it is out of distribution, just as a network that sees all
of the picture. So there should be a best reach, as large as objects and no larger, and the world
alone should predict which.

Exps 3L and 2L of `length`, as tokens and in the paper's own form, a U-Net on each patch, with one
number changed: how many cells a patch reaches in every direction. 3L is conditioned on all objects
in training, up to three, 2L on one only, so its patches are too full much sooner. What the world
says of each reach is measured on its own pictures, without a network: how many objects fit into the
patch around their location, and how many patches hold more locations than training conditions on.

Run: `recombine run receptive-field --scale laptop` (Exp 3L, four reaches, small plain scenes),
`--scale full` (on a GPU)."""

from dataclasses import field, replace
from typing import Literal, get_args

from recombine.analysis.receptive_field import best_reach_lies_between, fullness_predicts_misses
from recombine.config import config
from recombine.nets.local import LocalConfig
from recombine.pipeline.job import Job
from recombine.plots import receptive_field as plots
from recombine.runs.patch_fit import PatchFitRun
from recombine.runs.scene_prompts import Prompts
from recombine.runs.scene_recipe import SceneRecipe
from recombine.runs.scenes import scene_facts, scene_jobs
from recombine.store import Row
from recombine.studies.scene_settings import RUN_MINUTES, SceneSettings
from recombine.studies.scene_settings import settings as scene_settings
from recombine.studies.study import Scale, Study, described

Base = Literal["exp3L", "exp2L", "exp3L, patches", "exp2L, patches"]


@config("settings/receptive-field")
class ReceptiveField:
    """`scenes`: where the experiments come from; `reaches`: how many cells a patch extends in every
    direction, smallest first; `bases`: the experiments whose reach is changed. U-Nets on patches as
    large as the picture are evaluated as sparsely as the control of `length`, and trained as
    briefly: sampling costs (patch / cell)^2 pictures a picture."""

    scenes: SceneSettings = field(default_factory=SceneSettings)
    reaches: tuple[int, ...] = (1, 2, 3, 4, 8)
    bases: tuple[Base, ...] = get_args(Base)

    def __post_init__(self) -> None:
        if len(self.reaches) < 3 or list(self.reaches) != sorted(set(self.reaches)):
            given = list(self.reaches)
            raise ValueError(f"reaches={given}: three or more, each once, smallest first")
        if not self.bases or len(set(self.bases)) < len(self.bases):
            raise ValueError(f"bases: one or more of {', '.join(get_args(Base))}, each once")
        self.recipes()

    def recipes(self) -> dict[tuple[str, int], SceneRecipe]:
        """By experiment and reach."""
        bases = replace(self.scenes, experiments=self.bases).variants()
        return {(b, r): self.reaching(bases[b], r) for b in bases for r in self.reaches}

    def reaching(self, recipe: SceneRecipe, reach: int) -> SceneRecipe:
        scenes, net = self.scenes, replace(recipe.net, reach=reach)
        if isinstance(net, LocalConfig):
            return replace(recipe, net=net)
        if reach < scenes.control:
            return replace(recipe, **scenes.patched(net, scenes.patch_samples))
        return replace(recipe, **scenes.patched(net, scenes.control_samples, scenes.control_most))

    def variants(self) -> dict[str, SceneRecipe]:
        return {name(*key): recipe for key, recipe in self.recipes().items()}


def name(base: str, reach: int) -> str:
    return f"{base}, reach {reach}"


def settings(scale: Scale) -> ReceptiveField:
    """A third of the laptop's updates are enough: local networks learn fast."""
    chosen = scene_settings(scale)
    if scale == "full":
        return ReceptiveField(chosen)
    if scale == "smoke":
        return ReceptiveField(chosen, (0, 2, 4), ("exp3L", "exp2L", "exp2L, patches"))
    fewer = replace(chosen.recipe, train=replace(chosen.recipe.train, steps=1000))
    return ReceptiveField(replace(chosen, recipe=fewer), (0, 1, 2, 7), ("exp3L",))


def jobs(settings: ReceptiveField, seeds: int) -> list[Job]:
    made = scene_jobs(settings.variants(), seeds)
    for (base, reach), recipe in settings.recipes().items():
        cells = settings.scenes.local.cells
        fit = PatchFitRun(recipe.world, Prompts.of(recipe), cells, reach, recipe.given)
        made.append(Job.of(fit, variant=name(base, reach), base=base, reach=reach))
    return made


def variant_facts(settings: ReceptiveField, seeds: int) -> list[Row]:
    return scene_facts(settings.variants())


STUDY = Study(
    name="receptive-field",
    **described(__doc__),
    paper="a question of our own, after B",
    cost={
        "smoke": "12 s, one core",
        "laptop": "10 min (estimate), two cores",
        "full": "12 min (half of it estimated), one H200, 1 seed, after length",
    },
    settings=settings,
    jobs=jobs,
    facts=variant_facts,
    claims=(best_reach_lies_between, fullness_predicts_misses),
    figures=plots.figures,
    run_minutes=RUN_MINUTES,
)
