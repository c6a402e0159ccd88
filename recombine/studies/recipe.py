"""The recipe that the trained composition studies share: world -> split -> net -> objective -> training -> samples -> rows."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from recombine.config import UsageError
from recombine.nets.base import NetConfig, Shape
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.unfilled import Unfilled
from recombine.objectives.base import Objective
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.masked import Decoding
from recombine.objectives.noising import Noising
from recombine.objectives.solvers import Heun, Solver
from recombine.tokenizers.base import Tokenizer
from recombine.tokenizers.pixels import Pixels
from recombine.train.fit import TrainConfig
from recombine.worlds.base import World
from recombine.worlds.factors import Composition, Split, code
from recombine.worlds.folder import Folder
from recombine.worlds.shapes2d import ShapeName, Shapes2D

PROBES_VERSION = 3
"""Rises when other probes score the samples, or their answers change. 2: one that may refuse. 3: also what lies between."""


def spaced(steps: int, count: int) -> tuple[int, ...]:
    """`count` checkpoints from 0 to `steps`, dense at first: spaced evenly in the square root."""
    return tuple(sorted({round(steps * (i / max(1, count - 1)) ** 2) for i in range(count)}))


@dataclass(frozen=True)
class Evaluation:
    """When and how samples are drawn and scored. `checkpoints`: the steps, or how many of them, spaced evenly in the square
    root; the end is always one. Drawn with `solver` where a diffusion is trained (`guidance` 1 = none), by
    `decoding` where tokens are predicted. `probe_steps` is how long the trained probes train, and `probe_version` which they
    are: scores are kept with the run, so they belong to its name. `judged_in`: the world whose probes judge, where it is not
    the run's own; to be compared, runs must be judged alike."""

    checkpoints: int | tuple[int, ...] = (0,)
    samples: int = 256
    solver: Solver = field(default_factory=Heun)
    guidance: float = 1.0
    probe_steps: int = 500
    probe_version: int = field(default=PROBES_VERSION, metadata={"unnamed": 1})
    decoding: Decoding = field(default_factory=Decoding)
    judged_in: World | None = None

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"samples must be positive, not {self.samples}")
        if self.probe_steps < 1:
            raise ValueError(f"probe_steps must be positive, not {self.probe_steps}")
        if isinstance(self.checkpoints, int) and self.checkpoints < 1:
            raise ValueError(f"checkpoints must be positive, not {self.checkpoints}")

    def at(self, steps: int) -> tuple[int, ...]:
        """When a training of so many steps is looked at; checkpoints beyond its end are left out."""
        asked = spaced(steps, self.checkpoints) if isinstance(self.checkpoints, int) else self.checkpoints
        return tuple(sorted({*(step for step in asked if step < steps), steps}))


UNTOLD = 0.01
"""The share of training pictures of which a guided model must have been told nothing, at least."""
VARIED = (0.25, 0.2)
"""Jitter of colour and of size where classes vary as much as Shapes2D allows."""


@dataclass(frozen=True)
class Recipe:
    """Everything that decides the result of one run. `seen` empty = at most one factor away from its first value (in a folder
    that lacks pictures of some compositions: all it has); `pool` =
    training pictures per seen composition; `coded_in`: the world whose pictures a tokenizer learns from, its own where there is
    none."""

    world: World = field(default_factory=Shapes2D)
    seen: tuple[Composition, ...] = ()
    pool: int = 2000
    tokenizer: Tokenizer = field(default_factory=Pixels)
    coded_in: World | None = None
    net: NetConfig = field(default_factory=DiTConfig)
    conditioning: Conditioning = field(default_factory=Conditioning)
    objective: Objective = field(default_factory=Diffusion)
    train: TrainConfig = field(default_factory=TrainConfig)
    evaluation: Evaluation = field(default_factory=Evaluation)
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pool < 1:
            raise ValueError(f"pool must be positive, not {self.pool}")

    def check(self) -> None:
        """That the parts fit each other; asked before the work, not when a config is read (a folder may be gone)."""
        self.net.check(self.shape)
        with torch.random.fork_rng(devices=[]), Unfilled():  # a network of one's own may draw otherwise
            codes = self.tokenizer.untrained()
            self.objective.network(self.net, self.conditioning, self.shape, self.world.space, codes)
        if self.evaluation.guidance != 1:
            self._check_guidance()
        if unknown := [c for c in self.seen if c not in self.world.space.compositions]:
            raise UsageError(
                f"seen: {list(unknown[0])} is no composition of factors with {self.world.space.sizes} values"
            )
        if self.judged_in.space != self.world.space:
            raise UsageError("evaluation.judged_in: it has other factors than the pictures that are to be judged")
        if self.judged_in.image_shape != self.world.image_shape:
            raise UsageError("evaluation.judged_in: its pictures have another size than those that are to be judged")
        if self.coded_in and self.tokenizer.sown(1) == self.tokenizer:
            raise UsageError("coded_in: only a learned tokenizer learns from pictures; set tokenizer")
        if self.coded.space != self.world.space:
            raise UsageError("coded_in: it has other factors than the pictures that are to be encoded")
        if self.coded.image_shape != self.world.image_shape:
            raise UsageError("coded_in: its pictures have another size than those that are to be encoded")
        if missing := [c for c in self.split.seen if c not in self.world.present]:
            raise UsageError(f"seen: there is no picture of {self.world.space.describe(missing[0])} to train on")

    def _check_guidance(self) -> None:
        """Factors are dropped one by one, so all of them are gone in few pictures."""
        asked, told, factors = (
            f"evaluation.guidance={self.evaluation.guidance}",
            self.conditioning,
            len(self.world.space.sizes),
        )
        if not isinstance(self.objective, Noising):
            raise UsageError(f"{asked}: only a diffusion is guided")
        if told.dropped != "null" or told.dropout**factors < UNTOLD:
            raise UsageError(
                f"{asked}: it needs a model that was also trained on nothing told; set conditioning.dropout to "
                f"{UNTOLD ** (1 / factors):.2g} or more, with dropped=null"
            )

    @property
    def shape(self) -> Shape:
        """Of a latent."""
        return self.tokenizer.latent_shape(self.world.image_shape)

    @property
    def judged_in(self) -> World:
        """The world whose probes judge."""
        return self.evaluation.judged_in or self.world

    @property
    def coded(self) -> World:
        """The world whose pictures a tokenizer learns from."""
        return self.coded_in or self.world

    @property
    def split(self) -> Split:
        """What was seen: as given, else as is usual in this world."""
        return Split(self.seen) if self.seen else self.world.usual

    def sown(self, more: int) -> "Recipe":
        """The same with other randomness, its tokenizer's included: which codes are learned matters as much as the start of
        the network, so runs that shared a tokenizer would agree more than they should."""
        return replace(self, seed=self.seed + more, tokenizer=self.tokenizer.sown(more))

    def varying(self, color: float, size: float, shapes: tuple[ShapeName, ...] = ()) -> "Recipe":
        """The same on pictures that differ so much inside their classes, or in those of some shapes, asked for the centres of
        classes and judged in the usual world, as all are. UsageError where the world has no such jitter."""
        if not isinstance(self.world, Shapes2D):
            raise UsageError("recipe.world: only Shapes2D knows how much its classes vary")
        world = replace(self.world, color_jitter=color, size_jitter=size, varying=shapes)
        return replace(self, world=world, evaluation=replace(self.evaluation, judged_in=self.judged_in))

    def facts(self) -> dict[str, Any]:
        """What a page needs to know of the compositions, and whose pictures they are."""
        factors = [{"name": f.name, "values": list(f.values)} for f in self.world.space.factors]
        levels = {code(c): self.split.level(c) for c in self.world.space.compositions}
        own = f"the folder {Path(self.world.path).name}" if isinstance(self.world, Folder) else ""
        return {"space": {"factors": factors}, "levels": levels, "own": own}
