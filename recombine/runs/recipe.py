"""The recipe of one model: world -> split -> tokenizer -> net -> objective -> training -> samples.
Pure data."""

import math
from dataclasses import field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import torch

from recombine.config import ALWAYS, UsageError, config
from recombine.limits import allow, check_memory, check_time, memory
from recombine.nets.conditioning import Conditioning
from recombine.nets.dit import DiTConfig
from recombine.nets.net_config import NetConfig, Shape
from recombine.nets.unfilled import COPIES, Unfilled
from recombine.objectives.diffusion import Diffusion
from recombine.objectives.masked import Decoding
from recombine.objectives.noising import Noising
from recombine.objectives.objective import Objective
from recombine.objectives.solvers import Heun, Solver
from recombine.tokenizers.pixels import Pixels
from recombine.tokenizers.tokenizer import Tokenizer
from recombine.train.fit import TrainConfig
from recombine.worlds.factors import Composition, FactorSpace, Split, code
from recombine.worlds.folder import Folder
from recombine.worlds.shapes2d import ShapeName, Shapes2D
from recombine.worlds.world import World

PROBES_VERSION = 3
"""Rises when other probes score the samples, or their answers change. 2: one that may refuse. 3:
also what lies between."""


def spaced(steps: int, count: int) -> tuple[int, ...]:
    """`count` checkpoints from 0 to `steps`, dense at first: spaced evenly in the square root."""
    return tuple(sorted({round(steps * (i / max(1, count - 1)) ** 2) for i in range(count)}))


@config("evaluation")
class Evaluation:
    """When and how samples are taken and scored. `checkpoints`: the steps, or how many of them,
    spaced evenly in the square root; the end is always one. Sampled with `solver` where a diffusion
    is trained (`guidance` 1 = none), by `decoding` where tokens are predicted. `probe_steps` is how
    long the trained probes train, and `probe_version` which they are: scores are kept with the run,
    so they belong to its name. `probe_world`: the world on whose pictures probes are trained, where
    it is not the run's own; to be compared, runs must be scored alike. `real`: on how many real
    pictures of each composition probes and tokenizers are checked. `paper_probes`: how many seeds
    of paper A's own probe score the samples too. `keep`: how many samples of each composition stay
    on disk at each of the last `keep_last` checkpoints, for other probes (see `rescoring`).
    `prompt_dropout`: how often a factor is left out of a prompt too, as where code leaves label
    dropout on while it samples. `held_out`: on how many pictures of each seen composition that
    training does not have the loss is measured at every checkpoint."""

    checkpoints: int | tuple[int, ...] = (0,)
    samples: int = 256
    solver: Solver = field(default_factory=Heun)
    guidance: float = 1.0
    probe_steps: int = 500
    probe_version: int = field(default=PROBES_VERSION, metadata=ALWAYS)
    decoding: Decoding = field(default_factory=Decoding)
    probe_world: World | None = None
    real: int = 1024
    paper_probes: int = 0
    keep: int = 0
    keep_last: int = 4
    prompt_dropout: float = 0.0
    held_out: int = 0

    def __post_init__(self) -> None:
        for name in ("paper_probes", "keep", "held_out"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")
        for name in ("samples", "probe_steps", "real", "keep_last"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        if not 0 <= self.prompt_dropout <= 1:
            raise ValueError(f"prompt_dropout {self.prompt_dropout} is not between 0 and 1")
        many = self.checkpoints if isinstance(self.checkpoints, int) else len(self.checkpoints)
        if many < 1 and isinstance(self.checkpoints, int):
            raise ValueError(f"checkpoints must be positive, not {self.checkpoints}")
        allow("checkpoints", many, "evaluation")

    def at(self, steps: int) -> tuple[int, ...]:
        """The checkpoints of a training of so many steps; those beyond its end are left out."""
        given = (
            spaced(steps, self.checkpoints)
            if isinstance(self.checkpoints, int)
            else self.checkpoints
        )
        return tuple(sorted({*(step for step in given if step < steps), steps}))

    def keeps(self, step: int, steps: int) -> bool:
        """Whether samples of this step, of so many, stay on disk."""
        return self.keep > 0 and step in self.at(steps)[-self.keep_last :]


UNCONDITIONAL = 0.01
"""The share of training pictures without any condition that a guided model needs, at least."""
WIDE = (0.25, 0.2)
"""Wide within-class jitter: of colour and of size, as much as Shapes2D allows."""


@config("recipe")
class Recipe:
    """Everything that decides the result of one run. `seen` empty = at most one factor away from
    its first value (in a folder that lacks pictures of some compositions: all it has); `pool` =
    training pictures per seen composition; `tokenizer_world`: the world whose pictures a tokenizer
    learns from, its own where there is none; `apart`: a model learns only from pictures that are
    nearer to the centre of their own class than to any other, where classes overlap; `start`: the
    seed of the network's first weights, where it is not `seed`."""

    world: World = field(default_factory=Shapes2D)
    seen: tuple[Composition, ...] = ()
    pool: int = 2000
    tokenizer: Tokenizer = field(default_factory=Pixels)
    tokenizer_world: World | None = None
    net: NetConfig = field(default_factory=DiTConfig)
    conditioning: Conditioning = field(default_factory=Conditioning)
    objective: Objective = field(default_factory=Diffusion)
    train: TrainConfig = field(default_factory=TrainConfig)
    evaluation: Evaluation = field(default_factory=Evaluation)
    seed: int = 0
    apart: bool = False
    start: int | None = None

    def __post_init__(self) -> None:
        if self.pool < 1:
            raise ValueError(f"pool must be positive, not {self.pool}")

    def check(self) -> None:
        """UsageError where the parts do not fit each other. Called before the work, not when a
        config is read: a folder may be gone."""
        self.net.check(self.shape)
        parts = (self.objective, self.net, self.conditioning, self.tokenizer)
        self._check_room(_weights(*parts, self.shape, self.world.space))
        if self.evaluation.guidance != 1:
            self._check_guidance()
        if unknown := [c for c in self.seen if not self.world.space.has(c)]:
            raise UsageError(
                f"seen: {list(unknown[0])} is no composition of factors with "
                f"{self.world.space.sizes} values"
            )
        if self.probe_world.space != self.world.space:
            raise UsageError(
                "evaluation.probe_world: it has other factors than the pictures that are to be "
                "scored"
            )
        if self.probe_world.image_shape != self.world.image_shape:
            raise UsageError(
                "evaluation.probe_world: its pictures have another size than those that are to be "
                "scored"
            )
        if self.tokenizer_world and self.tokenizer.with_seed(1) == self.tokenizer:
            raise UsageError(
                "tokenizer_world: only a learned tokenizer learns from pictures; set tokenizer"
            )
        if self.tokenizer_pictures.space != self.world.space:
            raise UsageError(
                "tokenizer_world: it has other factors than the pictures that are to be encoded"
            )
        if self.tokenizer_pictures.image_shape != self.world.image_shape:
            raise UsageError(
                "tokenizer_world: its pictures have another size than those that are to be encoded"
            )
        if missing := [c for c in self.split.seen if c not in self.world.present]:
            raise UsageError(
                f"seen: there is no picture of {self.world.space.describe(missing[0])} to train on"
            )

    def _check_room(self, weights: int) -> None:
        """Refused with an estimate where it cannot fit, or would never end: a lower bound of what
        training set, samples, batch and weights take."""
        e, t = self.evaluation, self.train
        held = 0 if self.streams else len(self.split.seen) * self.pool
        pictures = held + self.world.space.count * e.samples + t.batch
        check_memory(self._picture_bytes * pictures + COPIES * weights, "this run")
        check_time(6.0 * weights / 4 * t.batch * t.steps, "this run")

    def _check_guidance(self) -> None:
        """Where factors are dropped one by one, all of them are gone in few pictures."""
        given, conditioning, factors = (
            f"evaluation.guidance={self.evaluation.guidance}",
            self.conditioning,
            len(self.world.space.sizes),
        )
        if not isinstance(self.objective, Noising):
            raise UsageError(f"{given}: only a diffusion is guided")
        if conditioning.without(factors) < UNCONDITIONAL:
            raise UsageError(
                f"{given}: it needs a model that was also trained without conditions; set "
                "conditioning.dropout to "
                f"{UNCONDITIONAL ** (1 / factors):.2g} or more, with dropped=null, or to "
                f"{UNCONDITIONAL:.2g} or more, with dropped=together"
            )

    @property
    def _picture_bytes(self) -> int:
        """Of a picture and its latent."""
        return 4 * (math.prod(self.world.image_shape) + math.prod(self.shape))

    @cached_property
    def streams(self) -> bool:
        """Whether training pictures are read batch by batch: those of a folder, where the whole
        training set would take more than a quarter of the memory that is free. The batches are the
        same either way."""
        if not isinstance(self.world, Folder) or self.apart:
            return False
        return 4 * self._picture_bytes * len(self.split.seen) * self.pool > memory()

    @property
    def shape(self) -> Shape:
        """Of a latent."""
        return self.tokenizer.latent_shape(self.world.image_shape)

    @property
    def probe_world(self) -> World:
        """The world whose probes score the samples."""
        return self.evaluation.probe_world or self.world

    @property
    def tokenizer_pictures(self) -> World:
        """The world whose pictures a tokenizer learns from."""
        return self.tokenizer_world or self.world

    @property
    def split(self) -> Split:
        """What was seen: as given, else as is usual in this world."""
        return Split(self.seen) if self.seen else self.world.usual

    def with_seed(self, more: int) -> "Recipe":
        """The same with other randomness, its tokenizer's included: which codes are learned matters
        as much as the start of the network, so runs that shared a tokenizer would agree more than
        they should."""
        return replace(self, seed=self.seed + more, tokenizer=self.tokenizer.with_seed(more))

    def with_jitter(
        self, color: float, size: float, shapes: tuple[ShapeName, ...] = ()
    ) -> "Recipe":
        """The same with other within-class jitter, in all classes or in those of some shapes;
        prompted for the centres of classes and scored in the usual world, as all are. UsageError
        where the world has no such jitter."""
        if not isinstance(self.world, Shapes2D):
            raise UsageError("recipe.world: only Shapes2D has within-class jitter to set")
        world = replace(self.world, color_jitter=color, size_jitter=size, varying=shapes)
        return replace(
            self, world=world, evaluation=replace(self.evaluation, probe_world=self.probe_world)
        )

    def facts(self) -> dict[str, Any]:
        """What a page needs to know of the compositions, and whose pictures they are."""
        factors = [{"name": f.name, "values": list(f.values)} for f in self.world.space.factors]
        levels = {code(c): self.split.level(c) for c in self.world.space.compositions}
        own = f"the folder {Path(self.world.path).name}" if isinstance(self.world, Folder) else ""
        return {"space": {"factors": factors}, "levels": levels, "own": own}


@lru_cache(maxsize=64)
def _weights(
    objective: Objective,
    net: NetConfig,
    conditioning: Conditioning,
    tokenizer: Tokenizer,
    shape: Shape,
    space: FactorSpace,
) -> int:
    """Bytes of the network's weights. A network of one's own may draw random numbers when built."""
    with torch.random.fork_rng(devices=[]), Unfilled() as made:
        objective.network(net, conditioning, shape, space, tokenizer.untrained())
    return made.bytes
