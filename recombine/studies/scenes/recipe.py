"""The recipe of the scene studies: world -> layout told -> net -> EDM -> pictures at locations -> counts and locality."""

from dataclasses import dataclass, field, replace

from recombine.config import UsageError
from recombine.evaluate.counting import RADIUS
from recombine.evaluate.detector import DETECTOR_VERSION, DetectorConfig, DetectorNet
from recombine.nets.local import LocalConfig
from recombine.nets.layout_encoder import Grid, List, LayoutNetConfig, LayoutEncoder, GlobalConfig
from recombine.nets.unfilled import Unfilled
from recombine.objectives.edm import Edm
from recombine.objectives.solvers import Heun, Solver
from recombine.train.fit import TrainConfig
from recombine.worlds.scenes.scene import MOST
from recombine.worlds.scenes.scenes import Scenes


@dataclass(frozen=True)
class Probing:
    """How locality is measured: on `pictures` real ones with so many `locations`, at `pixels` random pixels of each, at the noise
    levels of `times`. `maps`: the times at which the map of one picture is kept, each the mean over `noises`."""

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
                raise ValueError(f"{name}={list(given)}: one or more, above 0 and up to 1, smallest first")


@dataclass(frozen=True)
class SceneEvaluation:
    """When and how a model is asked: at the end for `samples` pictures of each number of `locations`, at the checkpoints before it
    for `early`. `checkpoints`: the steps, or how many there are, each twice as far as the one before. `radius`: how far from
    its location an object may be found, as a share of the picture: a little more than a cell of the grid of locations. `spaced`: the
    least distance between two locations, as a share of the picture. The theory speaks of conditions that act on different
    pixels, and in real scenes more objects are nearer to each other; at the end, models are asked for the locations of real
    scenes as well, unless nothing spaces the others."""

    locations: tuple[int, ...] = tuple(range(1, MOST + 1))
    samples: int = 128
    early: int = 32
    checkpoints: int | tuple[int, ...] = 4
    solver: Solver = field(default_factory=lambda: Heun(20))
    radius: float = RADIUS
    locality: Probing = field(default_factory=Probing)
    spaced: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.spaced <= 0.5:
            raise ValueError(f"spaced={self.spaced}: from 0 up to half of the picture")
        if not self.locations or list(self.locations) != sorted(set(self.locations)) or not 1 <= self.locations[0] <= self.most <= MOST:
            raise ValueError(f"locations={list(self.locations)}: one or more of 1 to {MOST}, each once, smallest first")
        if not 1 <= self.early <= self.samples:
            raise ValueError(f"early={self.early}: at least 1, and no more than the {self.samples} samples at the end")
        if not 0 < self.radius <= 0.5:
            raise ValueError(f"radius={self.radius}: above 0 and up to half of the picture")
        if min((self.checkpoints,) if isinstance(self.checkpoints, int) else self.checkpoints, default=1) < 1:
            raise ValueError(
                f"checkpoints={self.checkpoints}: must be positive; before the first step there is nothing"
            )

    @property
    def most(self) -> int:
        return self.locations[-1]

    def at(self, steps: int) -> tuple[int, ...]:
        """When a training of so many steps is looked at; always at its end."""
        if isinstance(self.checkpoints, int):
            return tuple(sorted({max(1, steps // 2**i) for i in range(self.checkpoints)}))
        if late := [s for s in self.checkpoints if s > steps]:
            raise UsageError(f"evaluation.checkpoints: {late[0]} lies beyond the last of {steps} steps")
        return tuple(sorted({*self.checkpoints, steps}))


@dataclass(frozen=True)
class Counter:
    """The detector that counts, trained on the recipe's own world with none to as many objects as are asked for, or to `most`
    if that is more. `real`: on how many real pictures of each number it is tested before it judges."""

    width: int = 48
    noise: float = 0.04
    steps: int = 4000
    batch: int = 128
    lr: float = 2e-3
    real: int = 512
    most: int = 0
    version: int = field(default=DETECTOR_VERSION, metadata={"unnamed": 1})

    def __post_init__(self) -> None:
        if self.real < 1:
            raise ValueError(f"real must be positive, not {self.real}")
        if not 0 <= self.most <= MOST:
            raise ValueError(f"most={self.most}: between 0 and {MOST}")
        self.config(Scenes())

    def config(self, world: Scenes) -> DetectorConfig:
        train = TrainConfig(
            steps=self.steps, batch=self.batch, lr=self.lr, warmup=min(100, self.steps // 10), ema=0.995
        )
        return DetectorConfig(world, self.width, self.noise, train, version=self.version)


@dataclass(frozen=True)
class SceneRecipe:
    """Everything that decides the result of one run. `world.counts` are the numbers of objects it is trained on; `pool` is
    how many training pictures there are."""

    world: Scenes = field(default_factory=Scenes)
    pool: int = 196_608
    layout_encoder: LayoutEncoder = field(default_factory=Grid)
    net: LayoutNetConfig = field(default_factory=GlobalConfig)
    objective: Edm = field(default_factory=lambda: Edm(data=0.26))
    train: TrainConfig = field(default_factory=TrainConfig)
    evaluation: SceneEvaluation = field(default_factory=SceneEvaluation)
    detector: Counter = field(default_factory=Counter)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pool < 1:
            raise ValueError(f"pool must be positive, not {self.pool}")

    def check(self) -> None:
        """That the parts fit each other; asked before the work."""
        shape = self.world.image_shape
        self.net.check(shape)
        with Unfilled():
            DetectorNet(shape, self.detector.width)
        if isinstance(self.layout_encoder, List) and self.layout_encoder.slots < self.slots:
            raise UsageError(
                f"layout_encoder.slots={self.layout_encoder.slots}: too few for the {self.slots} layout that will be told"
            )
        if self.objective.balance is not None and not isinstance(self.net, LocalConfig):
            raise UsageError(f"objective.balance={self.objective.balance}: only a local network is trained by patches")
        self.evaluation.at(self.train.steps)

    @property
    def crowd(self) -> Scenes:
        """The same world with none to as many objects as are ever asked for: what the detector must know. Variants that are
        trained on other numbers share it, and with it the locations."""
        return replace(self.world, counts=tuple(range(max(self.evaluation.most, self.detector.most) + 1)))

    @property
    def slots(self) -> int:
        """For so many locations there is room whenever it is told."""
        return max(self.evaluation.most, self.evaluation.locality.locations, self.world.slots)

    @property
    def strict(self) -> bool:
        """Whether objects that no location names are errors: not where training pictures hold such."""
        return self.layout_encoder.labelled == "all"
