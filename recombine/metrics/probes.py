"""Probes: pictures -> factors. The oracle, the paper's linear probe on pixels and small CNNs share
one interface, and each is tested on real pictures, seen and unseen, before it is believed.

`linear` and `cnn` are closed-set: they give a value for every factor, whatever the picture.
`open-set` is a CNN with a reject class, trained on corrupted pictures too: an empty picture is not
a small blue triangle. `closed_set` is the same network without rejection. `PaperNet` is paper A's
linear probe as in its authors' development code."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from recombine.metrics.corrupted import corrupted
from recombine.metrics.intervals import wilson
from recombine.rng import seeded
from recombine.worlds.factors import Composition, FactorSpace, Split, code
from recombine.worlds.world import INVALID, World


@runtime_checkable
class Probe(Protocol):
    """What each picture shows, one value index per factor; -1 where it shows no composition."""

    name: str

    def __call__(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]: ...


@dataclass(frozen=True)
class Oracle:
    """Analysis by synthesis (`World.read`): re-render and compare. No learned part."""

    world: World
    name: str = "oracle"

    def __call__(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]:
        return self.world.read(images)


class ProbeNet(nn.Module):
    """Logits of all factors side by side, from flat pixels or from a small CNN; the last one of an
    open-set probe is its reject class."""

    def __init__(self, kind: str, shape: tuple[int, int, int], space: FactorSpace):
        super().__init__()
        self.open_set = kind == "open-set"
        self.sizes = [*space.sizes, 1] if self.open_set else list(space.sizes)
        channels, height, width = shape
        if kind == "linear":
            self.body = nn.Sequential(
                nn.Flatten(), nn.Linear(channels * height * width, sum(self.sizes))
            )
        else:
            conv = lambda i, o, s: [nn.Conv2d(i, o, 3, s, 1), nn.GroupNorm(4, o), nn.GELU()]  # noqa: E731
            layers = [*conv(channels, 24, 2), *conv(24, 48, 2), *conv(48, 64, 1)]
            self.body = nn.Sequential(*layers, MeanAndMax(), nn.Linear(2 * 64, sum(self.sizes)))

    def forward(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b _"]]:
        images = (2 * images - 1).contiguous(
            memory_format=torch.channels_last
        )  # twice as fast on a CPU
        return list(self.body(images).split(self.sizes, dim=-1))


class MeanAndMax(nn.Module):
    """Where a feature is does not matter, how much there is (mean) and whether there is any (max)
    do."""

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
        return torch.cat([x.mean((2, 3)), x.amax((2, 3))], dim=1)


class PaperNet(nn.Module):
    """Paper A's linear probe: raw pixels in [0, 1] -> logits of all factors; the first factor, the
    shape, has room for three values."""

    open_set = False

    def __init__(self, shape: tuple[int, int, int], space: FactorSpace):
        super().__init__()
        self.sizes = [max(3, space.sizes[0]), *space.sizes[1:]]
        self.body = nn.Linear(math.prod(shape), sum(self.sizes))

    def forward(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b _"]]:
        return list(self.body(images.flatten(1)).split(self.sizes, dim=-1))


@dataclass(frozen=True)
class TrainedProbe:
    """`open-set` rejects where its network says so; every other name is closed-set."""

    name: str
    net: ProbeNet | PaperNet

    @torch.no_grad()
    def __call__(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]:
        return torch.cat([self._answer(some, self.net(some)) for some in images.split(4096)])

    def _answer(self, images: Tensor, logits: list[Float[Tensor, "b _"]]) -> Int[Tensor, "b k"]:
        factors = logits[:-1] if self.net.open_set else logits
        chosen = torch.stack([x.argmax(-1) for x in factors], dim=-1)
        valid = are_finite(images) & are_finite(torch.cat(logits, -1))  # argmax over NaN is 0
        valid = valid & (logits[-1] < 0)[:, 0] if self.name == "open-set" else valid
        return chosen.where(valid[:, None], INVALID)

    def closed_set(self, name: str = "cnn") -> "TrainedProbe":
        """The same network without rejection."""
        return replace(self, name=name)


def are_finite(values: Float[Tensor, "b *_"]) -> Bool[Tensor, "b"]:
    """Which pictures, or logits, hold neither NaN nor an infinity."""
    return values.isfinite().flatten(1).all(1)


def factor_loss(net: nn.Module, images: Tensor, index: Tensor) -> Float[Tensor, "b"]:
    return sum(F.cross_entropy(x, index[:, i], reduction="none") for i, x in enumerate(net(images)))


def open_set_loss(net: nn.Module, images: Tensor, index: Tensor) -> Float[Tensor, "b"]:
    """Good or corrupted, and the factors of the good ones."""
    *factors, none = net(images)
    refused = F.binary_cross_entropy_with_logits(
        none[:, 0], (index[:, 0] == INVALID).float(), reduction="none"
    )
    each = (
        F.cross_entropy(x, index[:, i], ignore_index=INVALID, reduction="none")
        for i, x in enumerate(factors)
    )
    return refused + sum(each)


def score(
    probe: Probe, images: Tensor, composition: Composition, space: FactorSpace
) -> dict[str, Any]:
    """How many of the pictures show `composition`: jointly with its Wilson interval, and factor by
    factor. Pictures that are not finite are wrong, and counted as `not_finite` where there are
    any."""
    finite = are_finite(images)
    correct = probe(images) == torch.tensor(composition, device=images.device)
    correct = correct & finite[:, None]
    successes, n = int(correct.all(1).sum()), len(images)
    low, high = wilson(successes, n)
    each = {f.name: float(correct[:, i].float().mean()) for i, f in enumerate(space.factors)}
    bad = {} if finite.all() else {"not_finite": n - int(finite.sum())}
    return {
        "probe": probe.name,
        "n": n,
        "joint": successes / n,
        "low": low,
        "high": high,
        **each,
        **bad,
    }


def accuracy_rows(
    probes: Sequence[Probe],
    images: Float[Tensor, "n b c h w"],
    split: Split,
    space: FactorSpace,
) -> list[dict[str, Any]]:
    """What every probe says of pictures of all compositions of a space, in their order."""
    rows = []
    for c, some in zip(space.compositions, images, strict=True):
        about = {"composition": code(c), "level": split.level(c)}
        rows += [about | score(probe, some, c, space) for probe in probes]
    return rows


def real_accuracy(
    probe: Probe, world: World, split: Split, count: int, device: Any = "cpu"
) -> list[dict[str, Any]]:
    """The probe's accuracy on real pictures of every composition that has some: what its scores are
    worth."""
    rows = []
    for c in world.present:
        index = torch.tensor([c] * count, device=device)
        images = world.render(index, seeded("real", code(c), device=device)).images
        rows.append(
            {
                "kind": "probe",
                "composition": code(c),
                "level": split.level(c),
                **score(probe, images, c, world.space),
            }
        )
    return rows


def refused(probe: Probe, world: World, count: int, device: Any = "cpu") -> dict[str, Any]:
    """How many corrupted pictures a probe rejects: none, if it is closed-set."""
    rng, table = seeded("spoiled", device=device), torch.tensor(world.present, device=device)
    images = corrupted(
        world, table[torch.randint(len(table), (count,), generator=rng, device=device)], rng
    )
    share = float((probe(images) == INVALID).all(1).float().mean())
    return {"kind": "refused", "probe": probe.name, "n": count, "share": share}
