"""Two models, one difference: why does one compose and the other not?

The same small U-Net is trained twice, with the same updates, on the same four of eight combinations
of shape, colour and size, and conditioned on the true value of every factor. Only the pictures
differ. Without within-class jitter, all pictures of a class have one colour and one size: four
conditions are all the model ever meets, so it can learn which of four pictures is meant and never
what colour does. With wide jitter, colours and sizes differ from picture to picture within each
class, and what a condition does can be learned from them. Both are prompted for the centres of all
eight classes and scored by the same probes.

The jitter is normal, as sizes in paper A's pictures are: some large triangles are as small as small
circles (16 % are nearer to small), but of a thousand red triangles two or three are nearer to blue
than to red. So what the first model must recombine is above all colour with the rest.

Beside them stands the exact model of `interactions`, trained by gradient flow on the same four
combinations: without jitter its output for small blue triangles ends on the wrong side; with jitter
it ends where it was prompted, late.

Not in the papers. Chosen after a search over 16 settings (one seed each, half trained: a DiT of the
same cost was at 0.06 or less in both worlds). With uniform jitter (sizes that do not overlap) the
U-Net reached 0.94, 0.56, 0.66 and 0.34 in seeds 0 to 3; the law was changed after that. So the
claim is tested on seeds that had no part in the choice: full scale is the same recipe over seeds 5
to 9. Its regions were written before these were looked at; five seeds that all succeed show a rate
of 0.78 or more, so no region can begin much higher.

Run: `recombine run two-models --scale laptop` (3 min on two cores, seed 0), `--scale full`.
"""

from dataclasses import field, replace
from pathlib import Path
from typing import Any

from recombine.analysis.claims import Claim, Finding
from recombine.analysis.levels import at_level, has_learned, measured
from recombine.analysis.table import Table
from recombine.config import config
from recombine.nets.unet import UNetConfig
from recombine.objectives.solvers import Euler
from recombine.pipeline.job import Job
from recombine.plots import training, two_models
from recombine.plots.style import Figure
from recombine.runs.interactions import InteractionsRun
from recombine.runs.models import model_jobs
from recombine.runs.recipe import Evaluation, Recipe
from recombine.studies import composition
from recombine.studies.study import Scale, Study, about
from recombine.train.fit import TrainConfig
from recombine.worlds.shapes2d import Shapes2D

WITH, WITHOUT = "wide jitter", "no jitter"
JITTER = (0.2, 0.2)
"""Standard deviations of colour channels and, relative, of sizes."""
HALF_WAY = 0.4
"""Half of the distance between two colours in a channel: the unit of the exact model."""
UNUSED = 5
"""The first seed that had no part in the choice of the settings."""
PRIOR = (1.0, 0.2, 0.2)
"""Of the exact model: circles and triangles share nothing."""


@config("settings/two-models")
class TwoModels:
    """`wide`: the standard deviations of colour and of size in the world that has jitter;
    `first_seed`: seeds are counted from here."""

    recipe: Recipe = field(default_factory=lambda: small())
    wide: tuple[float, float] = JITTER
    first_seed: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.recipe.world, Shapes2D):
            raise ValueError("recipe.world: this study sets the jitter of Shapes2D")
        if self.wide[0] <= 0:
            raise ValueError(f"wide={list(self.wide)}: the jitter of colour must be positive")

    def variants(self) -> dict[str, Recipe]:
        varied = self.recipe.with_jitter(*self.wide)
        world = replace(varied.world, color_law="normal", size_law="normal")
        return {WITH: replace(varied, world=world), WITHOUT: self.recipe.with_jitter(0.0, 0.0)}


def small() -> Recipe:
    """Small pictures near the middle: what one core learns in two minutes."""
    net = UNetConfig((32, 64), blocks=1, embedding=128, fold=2, scaled=True)
    train = TrainConfig(steps=1800, batch=32, lr=2e-3, warmup=50, betas=(0.9, 0.95), ema=0.99)
    evaluation = Evaluation(8, 32, Euler(12), probe_steps=800)
    return Recipe(Shapes2D(size=20, wander=0.3), net=net, train=train, evaluation=evaluation)


def settings(scale: Scale) -> TwoModels:
    if scale != "smoke":
        return TwoModels(first_seed=UNUSED if scale == "full" else 0)
    net = UNetConfig((8, 8), blocks=1, heads=1, embedding=16, fold=2, scaled=True)
    return TwoModels(replace(composition.smoke(), net=net))


def jobs(settings: TwoModels, seeds: int) -> list[Job]:
    """The trained models, and the exact one in the same two worlds."""
    spreads = {WITH: settings.wide[0] / HALF_WAY, WITHOUT: 0.0}
    exact = [
        Job.of(InteractionsRun(PRIOR, (s, s), (s, s), 1e6, 61), world=name)
        for name, s in spreads.items()
    ]
    return [*exact, *model_jobs(settings.variants(), seeds, settings.first_seed)]


def one_composes(rows: Table) -> Finding:
    parts = (
        at_level(rows, WITH, 2, low=0.7),
        at_level(rows, WITHOUT, 2, high=0.3),
        *(has_learned(rows, name, 0.7) for name in (WITH, WITHOUT)),
    )
    return Finding(parts, measured(rows, {WITH: None, WITHOUT: None}))


def figures(rows: Table, folder: Path) -> list[Figure]:
    return [two_models.beside_theory(rows, folder), *training.figures(rows, folder)]


def describe(settings: TwoModels) -> dict[str, Any]:
    return settings.recipe.facts()


STUDY = Study(
    name="two-models",
    question="Two models, one difference: why does one compose and the other not?",
    about=about(__doc__),
    cost={
        "smoke": "10 s, one core",
        "laptop": "3 min, two cores",
        "full": "25 min (estimate), two cores, seeds 5 to 9",
    },
    settings=settings,
    jobs=jobs,
    claims=(
        Claim(
            id="B30",
            paper="beyond the papers",
            statement="Within-class jitter alone decides: of two small U-Nets trained alike on the "
            "same four combinations, the one whose pictures vary within classes draws small blue "
            "triangles, and the one whose pictures do not fails.",
            expected="level 2: wide jitter >= 0.7, no jitter <= 0.3; seen >= 0.7 in both; late "
            "means, open-set probe",
            measure=one_composes,
            trained=True,
        ),
    ),
    figures=figures,
    describe=describe,
    sensitivity=True,
    run_minutes=1.0,
)
