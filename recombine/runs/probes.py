"""Probes as runs: trained once on real pictures, and tested on real pictures before they are
believed."""

import copy
from dataclasses import field, replace
from typing import Literal

import torch
from torch import Tensor

from recombine.config import ALWAYS, config
from recombine.metrics.corrupted import corrupted, imperfect
from recombine.metrics.interpolation import interpolation_rows
from recombine.metrics.probes import (
    Oracle,
    PaperNet,
    Probe,
    ProbeNet,
    TrainedProbe,
    factor_loss,
    open_set_loss,
    real_accuracy,
    refused,
)
from recombine.pipeline.job import Task, Work
from recombine.rng import initial_weights, seeded
from recombine.runs.factor_probes import FactorProbeRun, held_out_accuracy
from recombine.store import Row
from recombine.train.fit import TrainConfig
from recombine.train.loop import load_weights, train
from recombine.worlds.factors import Composition, Split
from recombine.worlds.folder import Folder
from recombine.worlds.world import INVALID, World

VERSION = 2
"""Rises when a change to the code changes a probe's answers."""
PAPER_VERSION = 1
"""The same for the paper's probe."""
CHECK_VERSION = 2
"""Rises when what is measured of probes changes."""
Kind = Literal["linear", "cnn", "open-set"]
EPOCHS = 200
"""Of the paper's probe, at most."""


def _usual() -> TrainConfig:
    return TrainConfig(steps=600, batch=256, lr=2e-3, warmup=20, ema=0.98)


@config("run/probe")
class ProbeRun(Task):
    """A probe to be trained on real pictures of every composition of a world."""

    weights = True
    world: World
    kind: Kind = "linear"
    train: TrainConfig = field(default_factory=_usual)
    seed: int = 0
    version: int = field(default=VERSION, metadata=ALWAYS)

    @property
    def noun(self) -> str:
        return f"{self.kind} probe"

    @property
    def cost(self) -> float:
        return (6.0 if self.kind != "linear" else 0.7) * self.train.steps

    @staticmethod
    def of(world: World, kind: Kind, steps: int, lr: float = 2e-3) -> "ProbeRun":
        """As the studies train them."""
        return ProbeRun(
            world, kind, TrainConfig(steps=steps, batch=128, lr=lr, warmup=20, ema=0.98)
        )

    def net(self) -> ProbeNet:
        with initial_weights(self.seed):
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


@config("run/paper-probe")
class PaperProbeRun(Task):
    """Paper A's linear probe with its own training: `pictures` fixed pictures, Adam, the weights of
    the epoch that is best on the `held_out` first ones. What it reads in an empty picture depends
    on its seed, so several are trained."""

    noun = "paper probe"
    weights = True
    world: World
    seed: int = 0
    epochs: int = EPOCHS
    pictures: int = 5000
    held_out: int = 500
    batch: int = 128
    lr: float = 1e-3
    version: int = field(default=PAPER_VERSION, metadata=ALWAYS)

    def net(self) -> PaperNet:
        with initial_weights(self.seed):
            return PaperNet(self.world.image_shape, self.world.space)

    def run(self, work: Work) -> list[Row]:
        net = self.net().to(work.runtime.device)
        best = self.fit(net, work)
        if work.runtime.rank == 0:
            work.folder.save_model(dict(net.named_parameters()), self.epochs)
        return [{"kind": "held out", "joint": best, "n": self.held_out}]

    def fit(self, net: PaperNet, work: Work) -> float:
        """Train in place; the joint accuracy on held-out pictures of the epoch that is kept."""
        device = work.runtime.device
        rng = seeded(self.seed, "paper probe", device=device)
        table = torch.tensor(self.world.present, device=device)
        pick = torch.randint(len(table), (self.pictures,), generator=rng, device=device)
        index = table[pick]
        images = self.world.render(index, rng).images
        adam = torch.optim.Adam(net.parameters(), lr=self.lr)
        best, kept = -1.0, copy.deepcopy(net.state_dict())
        for _ in range(self.epochs):
            if work.check:
                work.check()
            left = self.pictures - self.held_out
            order = self.held_out + torch.randperm(left, generator=rng, device=device)
            for some in order.split(self.batch):
                adam.zero_grad()
                factor_loss(net, images[some], index[some]).mean().backward()
                adam.step()
            answers = TrainedProbe("paper", net)(images[: self.held_out])
            accuracy = float((answers == index[: self.held_out]).all(1).float().mean())
            if accuracy > best:
                best, kept = accuracy, copy.deepcopy(net.state_dict())
        net.load_state_dict(kept)
        return best

    def open(self, work: Work) -> TrainedProbe:
        net = load_weights(self.net(), work.folder, work.runtime)
        return TrainedProbe(f"paper {self.seed}", net.eval())


def open_set_batch(world: World, index: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
    """One half good, though not flawless; the other half corrupted, their index INVALID."""
    half = len(index) // 2
    both = torch.cat((imperfect(world, index[:half], rng), corrupted(world, index[half:], rng)))
    return both, torch.cat((index[:half], torch.full_like(index[half:], INVALID)))


def probe_runs(world: World, steps: int, paper_probes: int = 0) -> tuple[Task, ...]:
    """The probes that are trained for a world: the open-set CNN, a linear one on pixels, and so
    many seeds of the paper's own."""
    papers = (PaperProbeRun(world, seed, min(EPOCHS, steps)) for seed in range(paper_probes))
    linear = ProbeRun.of(world, "linear", steps)
    if isinstance(world, Folder):  # few pictures, and perhaps none of the unseen combinations
        return FactorProbeRun(world, steps), linear, *papers
    return ProbeRun.of(world, "open-set", steps, lr=4e-3), linear, *papers


def open_probes(world: World, steps: int, work: Work, paper_probes: int = 0) -> list[Probe]:
    """The open-set probe, the same network as a closed-set CNN probe, the world's oracle where it
    has one, the linear probe, and the seeds of the paper's. The first is the primary one."""
    open_set, *linear = (work.open(run) for run in probe_runs(world, steps, paper_probes))
    return [open_set, open_set.closed_set(), *([Oracle(world)] if world.readable else []), *linear]


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
    paper_probes: int = 0

    def parents(self) -> tuple[Task, ...]:
        return probe_runs(self.world, self.steps, self.paper_probes)

    @property
    def cost(self) -> float:
        return 0.5 * self.count

    def run(self, work: Work) -> list[Row]:
        probes = open_probes(self.world, self.steps, work, self.paper_probes)
        return check_probes(probes, self.world, Split(self.seen), self.count, work.runtime.device)


def check_probes(
    probes: list[Probe], world: World, split: Split, count: int, device: torch.device
) -> list[Row]:
    """Rows of kinds probe (real pictures), refused (corrupted ones) and interpolation, of every
    probe."""
    if isinstance(world, Folder):
        rows = [row for p in probes for row in held_out_accuracy(p, world, split, device)]
    else:
        rows = [row for p in probes for row in real_accuracy(p, world, split, count, device)]
    rows += [refused(p, world, count, device) for p in probes]
    some = max(4, count // 8)
    return rows + [
        row
        for p in probes
        if world.interpolates
        for row in interpolation_rows(p, world, split, some, device)
    ]
