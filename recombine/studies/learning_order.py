"""In the setting of the public concept-space code, when is each concept learned, and which first?

`concept-space` trains with a rate, a schedule and a network of its own, so its steps cannot be
compared with published ones. Here everything that decides the pace is as in the code of Park et
al. (2024), on which section 5 of paper C builds: pictures in [0, 1] with the same spreads, 1,741
of each training class; a U-Net of 64, 128 and 256 channels, in every block of which the raw colour
and size enter by an MLP; variational diffusion whose noise schedule is learned; AdamW at 1e-3,
gradients clipped at 0.01, batches of 64; 32 samples of each composition in 50 steps, at checkpoints
spaced evenly in the square root. The clipping counts the gradients of the schedule too, which at
first are thousands of times those of the network. What is left of the network's is then so small
that Adam's epsilon holds it back: the network begins to learn only after the schedule has moved.
A concept is learned when the smoothed accuracy of the unseen small blue circles stays above 0.9.

Run: `recombine run learning-order --scale full` (on a GPU); `--scale laptop` (two worlds on two
cores)."""

from collections.abc import Iterator
from dataclasses import replace

from recombine.analysis.learning_order import T_COLOR, T_SIZE
from recombine.config import config
from recombine.nets.conditioning import Conditioning
from recombine.nets.unet import UNetConfig
from recombine.objectives.solvers import Ancestral
from recombine.objectives.vdm import VDM
from recombine.pipeline.job import Job
from recombine.plots import learning_order as plots
from recombine.runs.concepts import ConceptProbeCheck, ConceptRun
from recombine.runs.recipe import Evaluation, Recipe
from recombine.store import Row
from recombine.studies.learning_order_claims import CLAIMS
from recombine.studies.study import Scale, Study, described, recipe_facts
from recombine.tokenizers.pixels import Pixels
from recombine.train.fit import TrainConfig
from recombine.worlds.circles import Circles

Signals = tuple[float, float]
POOL = 1741
"""Training pictures of a class: 85 % of 2,048."""


@config("settings/learning-order")
class LearningOrder:
    """Every colour signal of `colors` with every size signal of `sizes`. `masked`: shares of
    captions of small red circles that leave out the colour, in the world `masked_at`. `stretch`: a
    world is trained for so many times its longest published time, at most for the steps of the
    recipe; the rate is constant, so what comes before is the same. 0 = all steps."""

    recipe: Recipe
    colors: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    sizes: tuple[float, ...] = (0.2, 0.4)
    masked: tuple[float, ...] = (0.5, 1.0)
    masked_at: Signals = (0.6, 0.4)
    stretch: float = 1.5

    def __post_init__(self) -> None:
        if not isinstance(self.recipe.world, Circles):
            raise ValueError("recipe.world: this study trains on Circles")
        if self.masked and not (
            self.masked_at[0] in self.colors and self.masked_at[1] in self.sizes
        ):
            raise ValueError(f"masked_at={list(self.masked_at)}: must be a world of the grid")
        if self.stretch < 0:
            raise ValueError(f"stretch={self.stretch} must not be negative")

    def steps(self, color: float, size: float) -> int:
        known = [t.get(size, {}).get(color, 0) for t in (T_COLOR, T_SIZE)]
        most = self.recipe.train.steps
        return min(most, round(self.stretch * max(known)) or most)

    def run(self, color: float, size: float, masked: float = 0.0) -> ConceptRun:
        r = self.recipe
        world = replace(r.world, color_signal=color, size_signal=size)
        train = replace(r.train, steps=self.steps(color, size))
        return ConceptRun(replace(r, world=world, train=train), masked)

    def runs(self) -> list[ConceptRun]:
        """All with seed 0."""
        grid = [self.run(color, size) for size in self.sizes for color in self.colors]
        return grid + [self.run(*self.masked_at, share) for share in self.masked]


def saves(first: int, last: int, count: int) -> tuple[int, ...]:
    """Checkpoints from `first` to `last`, spaced evenly in the square root."""
    ends = first**0.5, last**0.5
    shares = [i / (count - 1) for i in range(count - 1)]
    return (*(int(((1 - s) * ends[0] + s * ends[1]) ** 2) for s in shares), last)


def jobs(settings: LearningOrder, seeds: int) -> list[Job]:
    """The checks of all probes; then seed by seed, so that whoever stops early has whole seeds."""
    runs, e = settings.runs(), settings.recipe.evaluation
    checks = {}
    for run in runs:
        check = ConceptProbeCheck(run.world, e.probe_steps, run.recipe.split.seen, e.real)
        checks.setdefault(check, Job.of(check, variant=run.name))
    with_seeds = [
        Job.of(replace(run, recipe=run.recipe.with_seed(seed)), variant=run.name, seed=seed)
        for seed in range(seeds)
        for run in runs
    ]
    return [*checks.values(), *with_seeds]


def facts(settings: LearningOrder, seeds: int) -> Iterator[Row]:
    for run in settings.runs():
        signals = {f"{f}_signal": getattr(run.world, f"{f}_signal") for f in ("color", "size")}
        yield {"kind": "variant facts", "variant": run.name, **signals, "masked": run.masked}


def settings(scale: Scale) -> LearningOrder:
    return {"smoke": smoke, "laptop": laptop, "full": full}[scale]()


def public(size: int, net: UNetConfig, train: TrainConfig, evaluation: Evaluation) -> Recipe:
    """The public code's setting, with a network and a length of one's own."""
    net = replace(net, block_mlps=11, dropout=0.1, adds_input=True)
    train = replace(train, lr=1e-3, warmup=0, decay="none", weight_decay=0.01, betas=(0.9, 0.999))
    return Recipe(
        world=Circles(size=size, pixel_noise=1e-3),
        pool=POOL,
        tokenizer=Pixels(centred=False),
        net=net,
        conditioning=Conditioning(embedding_scale="raw"),
        objective=VDM(),
        train=replace(train, clip=0.01, ema=0.0),
        evaluation=evaluation,
    )


def full() -> LearningOrder:
    evaluation = Evaluation(saves(500, 20_000, 60), 32, Ancestral(50), probe_steps=800, real=512)
    train = TrainConfig(20_000, batch=64, log_every=500)
    return LearningOrder(public(32, UNetConfig((64, 128, 256), 2, 4, 256), train, evaluation))


def laptop() -> LearningOrder:
    evaluation = Evaluation(saves(100, 3000, 20), 32, Ancestral(25), probe_steps=400, real=256)
    recipe = public(
        16, UNetConfig((16, 32), 1, 4, 64), TrainConfig(3000, batch=32, log_every=250), evaluation
    )
    return LearningOrder(recipe, (0.2, 0.8), (0.4,), masked=(), masked_at=(0.8, 0.4))


def smoke() -> LearningOrder:
    evaluation = Evaluation((0, 2, 4, 6), 8, Ancestral(2), probe_steps=10, real=64)
    recipe = public(16, UNetConfig((8, 16), 1, 2, 16), TrainConfig(8, batch=16), evaluation)
    recipe = replace(recipe, pool=16)
    return LearningOrder(recipe, (0.2, 0.8), masked=(1.0,), masked_at=(0.8, 0.4))


STUDY = Study(
    name="learning-order",
    **described(__doc__),
    paper="C, section 5, in the setting of Park et al.'s public code",
    cost={
        "smoke": "20 s, one core",
        "laptop": "10 min, two cores",
        "full": "53 min (estimate: 320 PFLOP at 100 TFLOP/s), one H200, 5 seeds, 5 at a time",
    },
    settings=settings,
    jobs=jobs,
    claims=CLAIMS,
    figures=plots.figures,
    facts=facts,
    describe=recipe_facts,
    run_minutes=2.0,
)
