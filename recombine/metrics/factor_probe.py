"""A probe for pictures of which there are few: one small CNN per factor, and one that rejects.

A network that reads all factors at once learns which values occur together, and misreads a
combination it has never met: a five-layer one read none of 70 real pictures of unseen combinations
(one seed; three layers: 0.91). A network
per factor, trained on pictures whose other properties are changed at random (colours, zoom), reads
them. Which change leaves a factor as it is differs from factor to factor: it is chosen by the
accuracy on combinations that are left out of training."""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from recombine.metrics.probes import MeanAndMax
from recombine.worlds.factors import FactorSpace
from recombine.worlds.world import INVALID

CHANGES = ("colour and zoom", "colour", "zoom", "none")
"""What may be changed at random in training pictures, the most first."""
SIDE = 48
"""Pixels; larger pictures are scaled down for the probe."""
NEVER = 1e4
"""The threshold of a probe that rejects nothing."""


def small_cnn(answers: int) -> nn.Sequential:
    """Where a thing is does not matter; it sees about 23 pixels at once."""
    layers: list[nn.Module] = []
    for i, o, stride in ((3, 16, 2), (16, 32, 2), (32, 32, 1), (32, 32, 2)):
        layers += [nn.Conv2d(i, o, 3, stride, 1), nn.GroupNorm(4, o), nn.GELU()]
    return nn.Sequential(*layers, MeanAndMax(), nn.Linear(64, answers))


class FactorNets(nn.Module):
    """A network per factor, and the last one, whose single logit above `threshold` rejects."""

    def __init__(self, space: FactorSpace):
        super().__init__()
        self.nets = nn.ModuleList(small_cnn(n) for n in (*space.sizes, 1))
        self.threshold = nn.Parameter(torch.zeros(()), requires_grad=False)

    def forward(self, images: Float[Tensor, "b c h w"]) -> list[Float[Tensor, "b _"]]:
        return [self.one(k, images) for k in range(len(self.nets))]

    def one(self, k: int, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b _"]:
        # channels last: twice as fast on a CPU
        return self.nets[k]((2 * images - 1).contiguous(memory_format=torch.channels_last))


@dataclass(frozen=True)
class FactorProbe:
    """`open-set` rejects; `cnn` is the same without rejection."""

    name: str
    net: FactorNets

    @torch.no_grad()
    def __call__(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]:
        return torch.cat([self._answer(fitted(some)) for some in images.split(1024)])

    def _answer(self, images: Tensor) -> Int[Tensor, "b k"]:
        *factors, none = self.net(images)
        chosen = torch.stack([x.argmax(-1) for x in factors], dim=-1)
        fine = torch.stack([x.isfinite().all(-1) for x in (*factors, none)]).all(0)[:, None]
        kept = (none <= self.net.threshold) | (self.name != "open-set")
        return chosen.where(kept & fine, INVALID)

    def closed_set(self, name: str = "cnn") -> "FactorProbe":
        """The same networks without rejection."""
        return replace(self, name=name)


def fitted(images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b 3 _ _"]:
    """Three channels, and no side longer than the probe looks at."""
    images = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
    longest = max(images.shape[2:])
    if longest <= SIDE:
        return images
    size = [max(8, round(n * SIDE / longest)) for n in images.shape[2:]]
    return F.interpolate(images, size, mode="bilinear", antialias=True)


def changed(
    images: Float[Tensor, "b 3 h w"], change: str, rng: torch.Generator
) -> Float[Tensor, "b 3 h w"]:
    """Colours exchanged, brightened and stretched, or the picture zoomed by a factor up to two."""
    if "colour" in change:
        images = _recoloured(images, rng)
    return _zoomed(images, rng) if "zoom" in change else images


def _recoloured(images: Tensor, rng: torch.Generator) -> Tensor:
    count = len(images)
    order = torch.rand(count, 3, generator=rng, device=rng.device).argsort(1)
    images = images.gather(1, order[:, :, None, None].expand_as(images))
    gain, lift = torch.rand(2, count, 3, 1, 1, generator=rng, device=rng.device)
    centred = images - images.mean((2, 3), keepdim=True)
    return (centred * (0.5 + gain) + lift).clamp(0, 1)


def _zoomed(images: Tensor, rng: torch.Generator) -> Tensor:
    zoom = torch.exp2(2 * torch.rand(len(images), generator=rng, device=rng.device) - 1)
    turn = torch.zeros(len(images), 2, 3, device=rng.device)
    turn[:, 0, 0] = turn[:, 1, 1] = zoom
    grid = F.affine_grid(turn, list(images.shape), align_corners=False)
    return F.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
