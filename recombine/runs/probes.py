"""Probes as runs: trained once on real pictures, and tested on real pictures before they are
believed."""

from dataclasses import field, replace
from typing import Literal

import torch
from torch import Tensor

from recombine.config import ALWAYS, config
from recombine.evaluate.corrupted import corrupted, imperfect
from recombine.evaluate.interpolation import interpolation_rows
from recombine.evaluate.probes import (
    Oracle,
    Probe,
    ProbeNet,
    TrainedProbe,
    factor_loss,
    open_set_loss,
    real_accuracy,
    refused,
)
from recombine.pipeline.job import Task, Work
from recombine.store import Row
from recombine.train.fit import TrainConfig
from recombine.train.loop import load_weights, train
from recombine.worlds.factors import Composition, Split
from recombine.worlds.world import INVALID, World

VERSION = 2
"""Rises when a change to the code changes a probe's answers."""
CHECK_VERSION = 2
"""Rises when what is measured of probes changes."""
Kind = Literal["linear", "cnn", "open-set"]


def _usual() -> TrainConfig:
    return TrainConfig(steps=600, batch=256, lr=2e-3, warmup=20, ema=0.98)


@config("run/probe")
class ProbeRun(Task):
    """A probe to be trained on real pictures of every composition of a world."""

    noun = "probe"
    weights = True
    world: World
    kind: Kind = "linear"
    train: TrainConfig = field(default_factory=_usual)
    seed: int = 0
    version: int = field(default=VERSION, metadata=ALWAYS)

    @staticmethod
    def of(world: World, kind: Kind, steps: int, lr: float = 2e-3) -> "ProbeRun":
        """As the studies train them."""
        return ProbeRun(
            world, kind, TrainConfig(steps=steps, batch=128, lr=lr, warmup=20, ema=0.98)
        )

    def net(self) -> ProbeNet:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            return ProbeNet(self.kind, self.world.image_shape, self.world.space)

    def run(self, work: Work) -> None:
        device = work.runtime.device
        table = torch.tensor(self.world.present, device=device)
        is_open = self.kind == "open-set"

        def batch(step: int) -> tuple[Tensor, Tensor]:
            rng = work.runtime.stream(self.seed, "probe", step)
            count = work.runtime.share(self.train.batch)
            pick = torch.randint(len(table), (count,), generator=rng, device=device)
            index = table[pick]
            return (
                open_set_batch(self.world, index, rng)
                if is_open
                else (self.world.render(index, rng).images, index)
            )

        small = replace(
            work.runtime, compile="", graphs=False
        )  # compiling it would take longer than training it
        loss = open_set_loss if is_open else factor_loss
        train(
            self.net(),
            loss,
            batch,
            self.train,
            work.folder,
            small,
            title=work.title,
            check=work.check,
        )

    def open(self, work: Work) -> TrainedProbe:
        net = load_weights(self.net(), work.folder, work.runtime)
        return TrainedProbe(self.kind, net.eval())


def open_set_batch(world: World, index: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """One half good, though not flawless; the other half corrupted, their index INVALID."""
    half = len(index) // 2
    both = torch.cat((imperfect(world, index[:half], rng), corrupted(world, index[half:], rng)))
    return both, torch.cat((index[:half], torch.full_like(index[half:], INVALID)))


def probe_runs(world: World, steps: int) -> tuple[ProbeRun, ProbeRun]:
    """The two probes that are trained for a world: the open-set CNN and the paper's linear one on
    pixels."""
    return ProbeRun.of(world, "open-set", steps, lr=4e-3), ProbeRun.of(world, "linear", steps)


def open_probes(world: World, steps: int, work: Work) -> list[Probe]:
    """The open-set probe, the same network as a closed-set CNN probe, the world's oracle where it
    has one, and the paper's linear probe. The first is the primary one."""
    open_set, linear = (work.open(run) for run in probe_runs(world, steps))
    return [open_set, open_set.closed_set(), *([Oracle(world)] if world.readable else []), linear]


@config("run/probe-check")
class ProbeCheck(Task):
    """What the probes of a world are worth: on `count` real pictures of every composition, on as
    many corrupted ones in all, and, where the world can render them, on pictures between two
    compositions."""

    noun = "probe check"
    world: World
    steps: int
    seen: tuple[Composition, ...]
    count: int
    version: int = field(default=CHECK_VERSION, metadata=ALWAYS)

    def parents(self) -> tuple[Task, ...]:
        return probe_runs(self.world, self.steps)

    def run(self, work: Work) -> list[Row]:
        probes = open_probes(self.world, self.steps, work)
        return check_probes(probes, self.world, Split(self.seen), self.count, work.runtime.device)


def check_probes(
    probes: list[Probe], world: World, split: Split, count: int, device: torch.device
) -> list[Row]:
    """Rows of kinds probe (real pictures), refused (corrupted ones) and interpolation, of every
    probe."""
    rows = [row for p in probes for row in real_accuracy(p, world, split, count, device)]
    rows += [refused(p, world, count, device) for p in probes]
    some = max(4, count // 8)
    return rows + [
        row
        for p in probes
        if world.interpolates
        for row in interpolation_rows(p, world, split, some, device)
    ]
