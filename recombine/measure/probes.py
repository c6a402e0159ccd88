"""Probes: pictures -> factors. The world's own reader, the paper's linear probe on pixels and a small CNN stand behind one
interface, and none is believed before its accuracy on real pictures, seen and unseen, is on the table."""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from recombine.machine import Machine
from recombine.measure.intervals import wilson
from recombine.rng import seeded
from recombine.store import RunFolder
from recombine.train.fit import TrainConfig
from recombine.train.loop import train
from recombine.worlds.base import World
from recombine.worlds.factors import Composition, FactorSpace, Split, code


@runtime_checkable
class Probe(Protocol):
    """What each picture shows, one value index per factor; -1 where it shows no composition."""

    name: str

    def __call__(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]: ...


@dataclass(frozen=True)
class Reader:
    """The world's own reader: no learned part."""

    world: World
    name: str = "read"

    def __call__(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]:
        return self.world.read(images)


PROBE_VERSION = 1
"""Rises when a change to the code changes a probe's answers."""


@dataclass(frozen=True)
class ProbeConfig:
    """A probe to be trained on real pictures of every composition."""

    world: World
    kind: Literal["linear", "cnn"] = "linear"
    train: TrainConfig = field(default_factory=lambda: TrainConfig(steps=600, batch=256, lr=2e-3, warmup=20, ema=0.98))
    seed: int = 0
    version: int = field(default=PROBE_VERSION, metadata={"unnamed": 1})


class ProbeNet(nn.Module):
    """Logits of all factors side by side, from flat pixels or from a small CNN."""

    def __init__(self, kind: str, shape: tuple[int, int, int], space: FactorSpace):
        super().__init__()
        self.sizes = list(space.sizes)
        channels, height, width = shape
        if kind == "linear":
            self.body = nn.Sequential(nn.Flatten(), nn.Linear(channels * height * width, sum(self.sizes)))
        else:
            conv = lambda i, o, s: [nn.Conv2d(i, o, 3, s, 1), nn.GroupNorm(4, o), nn.GELU()]  # noqa: E731
            layers = [*conv(channels, 24, 2), *conv(24, 48, 2), *conv(48, 64, 1)]
            self.body = nn.Sequential(*layers, MeanAndMax(), nn.Linear(2 * 64, sum(self.sizes)))

    def forward(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b n"]]:
        return list(self.body(2 * images - 1).split(self.sizes, dim=-1))


class MeanAndMax(nn.Module):
    """Where a feature is does not matter, how much there is (mean) and whether there is any (max) do."""

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        return torch.cat([x.mean((2, 3)), x.amax((2, 3))], dim=1)


@dataclass(frozen=True)
class TrainedProbe:
    name: str
    net: ProbeNet

    @torch.no_grad()
    def __call__(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]:
        parts = [torch.stack([x.argmax(-1) for x in self.net(some)], dim=-1) for some in images.split(4096)]
        return torch.cat(parts)


def train_probe(config: ProbeConfig, root: Any, machine: Machine) -> TrainedProbe:
    """The probe of this config, from its run folder if it is there."""
    world, device = config.world, machine.device
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        net = ProbeNet(config.kind, world.image_shape, world.space)
    table = torch.tensor(world.space.compositions, device=device)

    def batch(step: int) -> tuple[Tensor, Tensor]:
        rng = seeded(config.seed, "probe", step, device=device)
        index = table[torch.randint(len(table), (config.train.batch,), generator=rng, device=device)]
        return world.render(index, rng).images, index

    def loss(net: nn.Module, images: Tensor, index: Tensor) -> Tensor:
        return sum(F.cross_entropy(x, index[:, i], reduction="none") for i, x in enumerate(net(images)))

    train(net, loss, batch, config.train, RunFolder(root, config), machine)
    return TrainedProbe(config.kind, net.eval())


def score(probe: Probe, images: Tensor, composition: Composition, space: FactorSpace) -> dict[str, Any]:
    """How many of the pictures show `composition`: jointly with its Wilson interval, and factor by factor."""
    right = probe(images) == torch.tensor(composition, device=images.device)
    hits, n = int(right.all(1).sum()), len(images)
    low, high = wilson(hits, n)
    each = {f.name: float(right[:, i].float().mean()) for i, f in enumerate(space.factors)}
    return {"probe": probe.name, "n": n, "joint": hits / n, "low": low, "high": high, **each}


def real_accuracy(probe: Probe, world: World, split: Split, count: int, device: Any = "cpu") -> list[dict[str, Any]]:
    """The probe's accuracy on fresh real pictures of every composition: what its scores are worth."""
    rows = []
    for c in world.space.compositions:
        index = torch.tensor([c] * count, device=device)
        images = world.render(index, seeded("real", code(c), device=device)).images
        rows.append(
            {"kind": "probe", "composition": code(c), "level": split.level(c), **score(probe, images, c, world.space)}
        )
    return rows
