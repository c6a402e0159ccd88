"""The recipe of one scene model: world -> layout encoder -> net -> EDM -> samples at prompted
locations. Pure data."""

import math
from dataclasses import field, replace
from functools import lru_cache

from recombine.config import ALWAYS, UsageError, config
from recombine.limits import allow, check_memory, check_time, check_updates
from recombine.metrics.counting import RADIUS
from recombine.metrics.detector import check_detector
from recombine.nets.colour_grid import ColourGrid
from recombine.nets.layout_encoder import (
    GlobalConfig,
    Grid,
    LayoutEncoder,
    LayoutNetConfig,
    List,
)
from recombine.nets.local import LocalConfig
from recombine.nets.patch_unet import PatchConfig
from recombine.nets.unfilled import COPIES, Unfilled
from recombine.objectives.edm import Edm
from recombine.objectives.solvers import Heun, Solver
from recombine.train.fit import TrainConfig
from recombine.worlds.scenes.scene import COLORS, MOST
from recombine.worlds.scenes.scenes import Scenes

DETECTOR_VERSION = 2
"""Rises when a change to the code changes a detector's answers."""


@config("scene/locality")
class LocalityEvaluation:
    """How locality is measured: on `pictures` real ones with so many `locations`, at `pixels`
    random pixels of each, at the noise levels of `times`. `maps`: the times at which the map of one
    picture is kept, each the mean over `noises`."""

    locations: int = 4
    pictures: int = 32
    pixels: int = 4
    times: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
    maps: tuple[float, ...] = (0.3, 0.4, 0.5, 0.6)
    noises: int = 16

    def __post_init__(self) -> None:
        if not 2 <= self.locations <= MOST:
            raise ValueError(f"locations={self.locations}: locality needs 2 to {MOST} of them")
        for name in ("pictures", "pixels", "noises"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        for name in ("times", "maps"):
            given = getattr(self, name)
            if not given or list(given) != sorted(set(given)) or not 0 < given[0] <= given[-1] <= 1:
                raise ValueError(
                    f"{name}={list(given)}: one or more, above 0 and up to 1, smallest first"
                )


def _twenty_steps() -> Heun:
    return Heun(20)


@config("scene/evaluation")
class SceneEvaluation:
    """When and how a model is sampled: at the end `samples` pictures for each number of
    `locations`, at the checkpoints before it `early`. `checkpoints`: the steps, or how many there
    are, each twice as far as the one before. `radius`: how far from its location an object may be,
    as a share of the picture. `spacing`: the least distance between two locations, as a share of
    the picture. The theory is about conditions that act on different pixels, and in real scenes
    more objects are nearer to each other; at the end, models are prompted with the layouts of real
    scenes as well (`crowded`), unless there is no spacing anyway."""

    locations: tuple[int, ...] = tuple(range(1, MOST + 1))
    samples: int = 128
    early: int = 32
    checkpoints: int | tuple[int, ...] = 4
    solver: Solver = field(default_factory=_twenty_steps)
    radius: float = RADIUS
    locality: LocalityEvaluation = field(default_factory=LocalityEvaluation)
    spacing: float = 0.0
    crowded: bool = True

    def __post_init__(self) -> None:
        given = list(self.locations)
        if not given or given != sorted(set(given)) or not 1 <= given[0] <= given[-1] <= MOST:
            raise ValueError(
                f"locations={given}: one or more of 1 to {MOST}, each once, smallest first"
            )
        if not 0 <= self.spacing <= 0.5:
            raise ValueError(f"spacing={self.spacing}: from 0 up to half of the picture")
        if not 1 <= self.early <= self.samples:
            raise ValueError(
                f"early={self.early}: at least 1, and no more than the {self.samples} samples at "
                "the end"
            )
        if not 0 < self.radius <= 0.5:
            raise ValueError(f"radius={self.radius}: above 0 and up to half of the picture")
        steps = self.checkpoints
        if min((steps,) if isinstance(steps, int) else steps, default=1) < 1:
            raise ValueError(f"checkpoints={steps}: must be positive, after the first step")

    @property
    def most(self) -> int:
        """The largest number of locations that models are prompted for."""
        return self.locations[-1]

    def at(self, steps: int) -> tuple[int, ...]:
        """The checkpoints of a training of so many steps; its end is always one."""
        if isinstance(self.checkpoints, int):
            return tuple(sorted({max(1, steps // 2**i) for i in range(self.checkpoints)}))
        if late := [s for s in self.checkpoints if s > steps]:
            raise UsageError(
                f"evaluation.checkpoints: {late[0]} lies beyond the last of {steps} steps"
            )
        return tuple(sorted({*self.checkpoints, steps}))


@config("scene/detector")
class DetectorSettings:
    """The detector that counts, trained on the recipe's own world with none to as many objects as
    models are prompted for, or to `most` if that is more. `worn`: the share of its training pictures
    that have the faults of generated ones. `real`: on how many real pictures of each number it is
    tested."""

    width: int = 48
    noise: float = 0.04
    worn: float = 0.5
    steps: int = 4000
    batch: int = 128
    lr: float = 2e-3
    real: int = 512
    most: int = 0
    version: int = field(default=DETECTOR_VERSION, metadata=ALWAYS)

    def __post_init__(self) -> None:
        if self.real < 1:
            raise ValueError(f"real must be positive, not {self.real}")
        if not 0 <= self.most <= MOST:
            raise ValueError(f"most={self.most}: between 0 and {MOST}")
        check_detector(self.width, self.noise, self.worn)
        self.train  # noqa: B018  # refuses wrong numbers

    @property
    def train(self) -> TrainConfig:
        warmup = min(100, self.steps // 10)
        return TrainConfig(self.steps, self.batch, self.lr, warmup=warmup, ema=0.995)


@lru_cache(maxsize=64)
def _weights(net: LayoutNetConfig, encoder: LayoutEncoder, shape: tuple[int, int, int]) -> int:
    """Bytes of the network's weights; UsageError where they cannot be trained here."""
    with Unfilled() as made:
        net.build(encoder, shape)
    check_memory(COPIES * made.bytes, "training the network")
    return made.bytes


DATA = 0.26
"""The standard deviation of the pictures."""


def _edm() -> Edm:
    return Edm.edm2(DATA)


@config("scene/recipe")
class SceneRecipe:
    """Everything that decides the result of one run. `world.counts` are the numbers of objects it
    is trained on; `pool` is how many training pictures there are."""

    world: Scenes = field(default_factory=Scenes)
    pool: int = 196_608
    layout_encoder: LayoutEncoder = field(default_factory=Grid)
    net: LayoutNetConfig = field(default_factory=GlobalConfig)
    objective: Edm = field(default_factory=_edm)
    train: TrainConfig = field(default_factory=TrainConfig)
    evaluation: SceneEvaluation = field(default_factory=SceneEvaluation)
    detector: DetectorSettings = field(default_factory=DetectorSettings)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pool < 1:
            raise ValueError(f"pool must be positive, not {self.pool}")

    def check(self) -> None:
        """UsageError where the parts do not fit each other; called before the work."""
        self.net.check(self.world.image_shape)
        encoder = self.layout_encoder
        if isinstance(encoder, List) and encoder.slots < self.slots:
            raise UsageError(
                f"layout_encoder.slots={encoder.slots}: too few for layouts of up to {self.slots} "
                "locations (evaluation.locations, evaluation.locality.locations, world.counts and "
                "detector.most)"
            )
        if self.objective.balance is not None and not isinstance(self.net, LocalConfig):
            raise UsageError(
                f"objective.balance={self.objective.balance}: only a local network is trained by "
                "patches"
            )
        cells = self.net.cells**2 if isinstance(self.net, PatchConfig) else 0
        if self.objective.patches != cells:
            raise UsageError(
                f"objective.patches={self.objective.patches}: the network of this recipe needs "
                f"{cells}"
            )
        self._check_room()
        self.evaluation.at(self.train.steps)

    def _check_room(self) -> None:
        """Refused with an estimate where it cannot fit, or would never end: a lower bound of what
        training pictures (a byte a value), samples, batch and weights take."""
        e, t, values = self.evaluation, self.train, math.prod(self.world.image_shape)
        if isinstance(e.checkpoints, int):
            allow("checkpoints", e.checkpoints, "evaluation")
        check_memory(values * (self.pool + 4 * (e.samples + t.batch)), "this run")
        weights = _weights(self.net, self.layout_encoder, self.world.image_shape)
        check_time(6.0 * weights / 4 * t.batch * t.steps, "this run")
        check_updates(t.steps, "this run")

    @property
    def detector_world(self) -> Scenes:
        """The same world with none to as many objects as models are ever prompted for. Variants
        that are trained on other numbers share it, and with it the prompts."""
        most = max(self.evaluation.most, self.detector.most)
        return replace(self.world, counts=tuple(range(most + 1)))

    @property
    def slots(self) -> int:
        """The most slots that a layout may have, in training and in evaluation."""
        locality = self.evaluation.locality
        own = len(COLORS) if isinstance(self.layout_encoder, ColourGrid) else 1
        return max(self.detector_world.slots, locality.locations, self.world.slots, own)

    @property
    def strict(self) -> bool:
        """Whether objects that no location names are errors: not where training pictures hold
        such objects."""
        return self.layout_encoder.labelled == "all"

    @property
    def spare(self) -> int:
        """The most objects of a training picture that no location names."""
        return 0 if self.strict else max(self.world.counts) - 1

    @property
    def given(self) -> int:
        """The most objects of a training picture that the model is conditioned on."""
        return 1 if self.layout_encoder.labelled == "one" else max(self.world.counts)

    def with_seed(self, more: int) -> "SceneRecipe":
        """The same with other randomness; prompts and detector stay."""
        return replace(self, seed=self.seed + more)
