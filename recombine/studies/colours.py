"""Which colours can be composed?

The predecessor of paper B composes a model of yellow objects with models of other colours by adding
scores. It works with blue, cyan and purple and fails with brown, gray, green and red. The reason it
gives is that yellow acts on the blue channel: conditions compose if they act on different pixels or
channels, and then what they add to the mean picture is orthogonal.

That can be checked on pictures alone. One object on the floor is rendered in every colour, in the
same place and light; the mean difference from the empty floor is a direction for each colour, and
cosines between directions say which pairs share channels. By the theory a cosine of 0 is needed.

Composing itself needs a model, which is trained at full scale. It sees the empty floor or one
object, and is conditioned on the object's colour, in half of the pictures on its location as well.
For every pair of colours the two scores are added over its own empty background: once with the
colours alone, where both objects may be anywhere and only channels can keep them apart, and once with
two locations that are far apart. A detector and a colour probe, both trained on renders and tested on
others, count: a sample is an exact match if it holds two objects, one of each colour.

At locations far apart pixels could keep any two colours apart, if each score changed the pixels
near its own object alone. A model that sees the whole picture need not do that. A second model
cannot do otherwise: its network is local in pixels and conditions, that of Exp 2L in `length`. It
is always given a location, and its scores are added at locations alone.

Run: `recombine run colours --scale laptop` (pictures alone: no GPU, no training), `--scale full`
(all, on a GPU)."""

from dataclasses import field, replace
from typing import Literal

from recombine.analysis.claims import Claim
from recombine.analysis.colours import (
    COMPOSE,
    FAIL,
    S10,
    SUMS,
    cosine_predicts,
    locality_separates,
    partition,
)
from recombine.config import config
from recombine.nets.colour_grid import ColourGrid
from recombine.nets.local import LocalConfig
from recombine.pipeline.job import Job
from recombine.plots.colours import figures
from recombine.runs.colour_probe import ColourProbeCheck, ColourProbeRun
from recombine.runs.colour_sums import ColourModelRun, ColourSums
from recombine.runs.colours import ColourCosines
from recombine.runs.detectors import DetectorCheck, DetectorRun
from recombine.runs.scene_recipe import SceneRecipe
from recombine.studies.scene_settings import settings as scene_settings
from recombine.studies.study import Scale, Study, about
from recombine.train.fit import TrainConfig
from recombine.worlds.scenes.scenes import Scenes

__all__ = ["COMPOSE", "FAIL", "STUDY", "Colours", "settings"]
MODELS = {"global": "model", "local": "local model"}
"""The variants as rows and labels name them; their sums: `analysis.colours.SUMS`."""
APART = 0.35
"""The distance between two locations at full scale, as a share of the picture: an object with its
shadow is narrower."""


def _probe() -> TrainConfig:
    return TrainConfig(steps=3000, batch=128, lr=2e-3, warmup=100, ema=0.995)


def _local() -> LocalConfig:
    return scene_settings("full").local


@config("settings/colours")
class Colours:
    """`scenes`: how many scenes with one object are rendered in every colour. `recipe`: that of the
    model conditioned on colours; none is trained without one. `probe`: how the colour probe is
    trained, and on how many pictures of each colour it is tested (`real`). `variants`: the models;
    `local`: the network of the local one, `balance`: how much of its loss the patches with a location
    share."""

    world: Scenes = field(default_factory=lambda: Scenes(counts=(1,)))
    scenes: int = 256
    recipe: SceneRecipe | None = None
    probe: TrainConfig = field(default_factory=_probe)
    real: int = 512
    variants: tuple[Literal["global", "local"], ...] = ("global", "local")
    local: LocalConfig = field(default_factory=_local)
    balance: float = 0.5

    def __post_init__(self) -> None:
        if self.real < 1:
            raise ValueError(f"real must be positive, not {self.real}")
        if self.recipe and replace(self.recipe.world, counts=self.world.counts) != self.world:
            raise ValueError("world and recipe.world must be the same but for their counts")

    def sums(self, seed: int) -> dict[str, ColourSums]:
        """What is added, by model."""
        if self.recipe is None:
            return {}
        recipe, probe = self.recipe.with_seed(seed), ColourProbeRun.of(self.recipe, self.probe)
        placed = replace(
            recipe,
            net=self.local,
            objective=replace(recipe.objective, balance=self.balance),
            layout_encoder=replace(recipe.layout_encoder, anywhere=0.0),
        )
        made = {
            "global": ColourSums(ColourModelRun(recipe), probe),
            "local": ColourSums(ColourModelRun(placed), probe, ("location",)),
        }
        return {name: made[name] for name in self.variants}


def settings(scale: Scale) -> Colours:
    """Smaller pictures on a CPU, where nothing is trained at laptop scale; shadows and reflections
    stay."""
    if scale == "full":
        return Colours(recipe=recipe(Scenes(), "full", APART))
    size, rays, scenes = {"smoke": (16, 1, 4), "laptop": (32, 1, 192)}[scale]
    world = Scenes(size=size, counts=(1,), samples=rays)
    if scale == "laptop":
        return Colours(world, scenes)
    few = TrainConfig(steps=4, batch=8, warmup=1, log_every=2)
    local = scene_settings("smoke").local
    return Colours(world, scenes, recipe(world, "smoke", 0.1), few, real=8, local=local)


def recipe(world: Scenes, scale: Scale, apart: float) -> SceneRecipe:
    """The network, the training and the detector of `length`."""
    made = scene_settings(scale).recipe
    evaluation = replace(made.evaluation, locations=(1, 2), spacing=apart)
    return replace(
        made,
        world=replace(world, counts=(0, 1)),
        layout_encoder=ColourGrid(cells=made.layout_encoder.cells),
        evaluation=evaluation,
    )


def jobs(settings: Colours, seeds: int) -> list[Job]:
    runs = (ColourCosines(settings.world, settings.scenes, seed) for seed in range(seeds))
    made = [Job.of(run, seed=run.seed) for run in runs]
    if settings.recipe is None:
        return made
    probe = ColourProbeRun.of(settings.recipe, settings.probe)
    detector = DetectorRun.of(settings.recipe)
    checks = (
        DetectorCheck.of(settings.recipe),
        ColourProbeCheck(probe, detector, settings.real),
    )
    made += [Job.of(check) for check in checks]
    sums = [(seed, *pair) for seed in range(seeds) for pair in settings.sums(seed).items()]
    made += [Job.of(s.model, variant=MODELS[name], seed=seed) for seed, name, s in sums]
    return made + [Job.of(s, variant=SUMS[name], seed=seed) for seed, name, s in sums]


STUDY = Study(
    name="colours",
    question="Which colours can be composed?",
    paper="Bradley et al., Mechanisms of Projective Composition (before B), arXiv 2502.04549, "
    "Fig 5",
    about=about(__doc__),
    cost={
        "smoke": "10 s, one core",
        "laptop": "1 min a seed, one core",
        "full": "15 min, one H200, 5 seeds, half of it for the local model",
    },
    settings=settings,
    jobs=jobs,
    claims=(
        Claim(
            id="S10a",
            paper="Bradley et al. (2502.04549), Fig 5",
            statement="Renders alone predict with which colours yellow composes: what it adds to "
            "an empty floor is less aligned with blue, cyan and purple than with brown, gray, "
            "green and red.",
            expected="smallest cosine with brown, gray, green and red less the largest with blue, "
            "cyan and purple >= 0.1, mean over sets of scenes",
            measure=partition,
            deviations=(
                "a prediction from renders, without a model; S10 is on the compositions themselves",
                "the region was written when a gap of 0.23 had been measured",
                "CLEVR-like renders of our own",
            ),
        ),
        S10,
        cosine_predicts,
        locality_separates,
    ),
    figures=figures,
    run_minutes=3.0,
)
