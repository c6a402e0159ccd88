"""Which colours can be composed?

The predecessor of paper B composes a model of yellow objects with models of other colours by adding
scores. It works with blue, cyan and purple and fails with brown, gray, green and red. The reason it
gives is that yellow acts on the blue channel: conditions compose if they act on different pixels or
channels, and then what they add to the mean picture is orthogonal.

That can be checked on pictures alone. One object on the floor is rendered in every colour, in the
same place and light; the mean difference from the empty floor is a direction for each colour, and
cosines between directions say which pairs share channels. A low cosine is necessary for composing,
not sufficient.

Composing itself needs a model, which is trained at full scale. It sees the empty floor or one
object, and is conditioned on the object's colour, in half of the pictures on its location as well.
For every pair of colours the two scores are added over its own empty background: once with the
colours alone, where both objects may be anywhere and only channels can keep them apart, and once with
two locations that are far apart, where pixels do. A detector and a colour probe, both trained on
renders and tested on others, count: a sample is an exact match if it holds two objects, one of each
colour.

Run: `recombine run colours --scale laptop` (pictures alone: no GPU, no training), `--scale full`
(all, on a GPU)."""

from dataclasses import field, replace

from recombine.analysis.claims import Claim
from recombine.analysis.colours import COMPOSE, FAIL, S10, cosine_predicts, partition
from recombine.config import config
from recombine.nets.colour_grid import ColourGrid
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
APART = 0.35
"""The distance between two locations at full scale, as a share of the picture: an object with its
shadow is narrower."""


def _probe() -> TrainConfig:
    return TrainConfig(steps=3000, batch=128, lr=2e-3, warmup=100, ema=0.995)


@config("settings/colours")
class Colours:
    """`scenes`: how many scenes with one object are rendered in every colour. `recipe`: that of the
    model conditioned on colours; none is trained without one. `probe`: how the colour probe is
    trained, and on how many pictures of each colour it is tested (`real`)."""

    world: Scenes = field(default_factory=lambda: Scenes(counts=(1,)))
    scenes: int = 256
    recipe: SceneRecipe | None = None
    probe: TrainConfig = field(default_factory=_probe)
    real: int = 512

    def __post_init__(self) -> None:
        if self.real < 1:
            raise ValueError(f"real must be positive, not {self.real}")
        if self.recipe and replace(self.recipe.world, counts=self.world.counts) != self.world:
            raise ValueError("world and recipe.world must be the same but for their counts")


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
    return Colours(world, scenes, recipe(world, "smoke", 0.1), few, real=8)


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
    models = [ColourModelRun(settings.recipe.with_seed(seed)) for seed in range(seeds)]
    made += [Job.of(check) for check in checks]
    made += [Job.of(m, variant="model", seed=seed) for seed, m in enumerate(models)]
    sums = [ColourSums(model, probe) for model in models]
    return made + [Job.of(some, variant="sums", seed=seed) for seed, some in enumerate(sums)]


STUDY = Study(
    name="colours",
    question="Which colours can be composed?",
    paper="Bradley et al., Mechanisms of Projective Composition (before B), arXiv 2502.04549, "
    "Fig 5",
    about=about(__doc__),
    cost={
        "smoke": "10 s, one core",
        "laptop": "1 min a seed, one core",
        "full": "15 min (estimate), one H200, 5 seeds",
    },
    settings=settings,
    jobs=jobs,
    claims=(
        Claim(
            id="S10a",
            paper="Bradley et al. (2502.04549), Fig 5",
            statement="Pictures alone predict with which colours yellow composes: what it adds to "
            "an empty floor is less aligned with blue, cyan and purple than with brown, gray, "
            "green and red.",
            expected="smallest cosine with brown, gray, green and red less the largest with blue, "
            "cyan and purple >= 0.1, mean over sets of scenes",
            measure=partition,
            deviations=(
                "a prediction from pictures, without a model; S10 is on the compositions themselves",
                "CLEVR-like renders of our own",
            ),
        ),
        S10,
        cosine_predicts,
    ),
    figures=figures,
    run_minutes=3.0,
)
