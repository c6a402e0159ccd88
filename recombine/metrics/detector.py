"""A detector: pictures of scenes -> the locations of their objects. It is trained on fresh renders,
whose centres are known (`runs/detectors.py`); `counting.real_counts` says how well it counts.

Its output is a heat map as fine as the picture: every object is a bell around its projected middle,
as wide as the object looks, so that small far objects next to each other stay apart and a large
near one is not detected twice. An object is a local maximum of this map, and a parabola through the
logarithm of its neighbours says where between the pixels it lies."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from recombine.config import UsageError
from recombine.metrics.heat import THRESHOLD, bells, peaks
from recombine.metrics.probes import are_finite
from recombine.train.fit import Diverged
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.camera import FOCAL
from recombine.worlds.scenes.scene import Scene
from recombine.worlds.scenes.scenes import Scenes

FOLD, LEVELS, GROUPS = 2, 3, 8
"""The network's finest grid is this much coarser than the picture; it works on so many grids, each
half the one before."""


def check_detector(width: int, noise: float, worn: float) -> None:
    """ValueError where no detector has such a width, or no picture such a noise."""
    if not 0 <= worn <= 1:
        raise ValueError(f"worn={worn}: the share of pictures with faults, between 0 and 1")
    if width <= 0 or width % GROUPS:
        raise ValueError(f"width {width} must be a positive multiple of {GROUPS}")
    if not 0 <= noise <= 1:
        raise ValueError(f"noise {noise} must lie between 0 and 1")


class Block(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, inner: int, outer: int):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(GROUPS, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(GROUPS, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.shortcut = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h w"]:
        y = self.conv1(F.silu(self.norm1(x)))
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(y)))


class DetectorNet(nn.Module):
    """Pictures -> logits of the heat map, pixel by pixel. Fully convolutional: ever coarser grids
    and back. Neighbouring pixels are folded into channels at the entry and unfolded at the exit,
    which costs a quarter of working on all of them."""

    def __init__(self, shape: tuple[int, int, int], width: int):
        super().__init__()
        by = FOLD * 2 ** (LEVELS - 1)
        if shape[1] % by or shape[2] % by:
            given = f"{shape[1]}x{shape[2]}"
            raise UsageError(f"the detector needs sides divisible by {by}, not {given}")
        widths = [width * 2**i for i in range(LEVELS)]
        self.enter = nn.Conv2d(shape[0] * FOLD**2, width, 3, padding=1)
        self.down = nn.ModuleList(Block(widths[max(0, i - 1)], w) for i, w in enumerate(widths))
        self.deep = Block(widths[-1], widths[-1])
        self.up = nn.ModuleList(
            Block(widths[i] + widths[i + 1], widths[i]) for i in reversed(range(LEVELS - 1))
        )
        self.leave = nn.Conv2d(width, FOLD**2, 3, padding=1)
        nn.init.constant_(self.leave.bias, -4.0)

    def forward(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b h w"]:
        x, passed = self.enter(F.pixel_unshuffle(2 * images - 1, FOLD)), []
        for i, block in enumerate(self.down):
            x = block(F.avg_pool2d(x, 2) if i else x)
            passed.append(x)
        x = self.deep(x)
        for block, beside in zip(self.up, passed[-2::-1], strict=True):
            x = block(torch.cat((F.interpolate(x, scale_factor=2, mode="nearest"), beside), 1))
        return F.pixel_shuffle(self.leave(F.silu(x)), FOLD)[:, 0].float()


@dataclass(frozen=True)
class Detector:
    """Pictures in [0, 1] -> the locations of their objects, ROOM slots for each picture. A picture
    that is not finite holds no objects, and would be right where none are prompted for: Diverged."""

    net: DetectorNet
    threshold: float = THRESHOLD

    @torch.no_grad()
    def __call__(self, images: Float[Tensor, "b c h w"]) -> Layout:
        if bad := int((~are_finite(images)).sum()):
            raise Diverged(f"{bad} of {len(images)} samples hold NaN or infinity")
        parts = [
            peaks(self.net(some.clamp(0, 1)), self.threshold)[0] for some in images.split(1024)
        ]
        return Layout(*(torch.cat(t) for t in zip(*parts, strict=True)))


def crowds(world: Scenes, count: int, rng: torch.Generator) -> Scene:
    """Random scenes, all numbers of objects that the world names equally often."""
    choice = torch.randint(len(world.counts), (count,), generator=rng, device=rng.device)
    return world.place(torch.tensor(world.counts, device=rng.device)[choice], rng)


def noisy(
    images: Float[Tensor, "b c h w"], most: float, rng: torch.Generator
) -> Float[Tensor, "b c h w"]:
    """Pictures with noise on them, each with its own strength up to `most`."""
    strength = most * torch.rand(len(images), 1, 1, 1, generator=rng, device=rng.device)
    return (images + strength * torch.randn(images.shape, generator=rng, device=rng.device)).clamp(
        0, 1
    )


def target(world: Scenes, scene: Scene) -> Float[Tensor, "b h w"]:
    """The heat map that the picture of a scene ought to have."""
    return bells(*apparent(world, scene), scene.present, *world.image_shape[1:])


def apparent(world: Scenes, scene: Scene) -> tuple[Float[Tensor, "b k 2"], Float[Tensor, "b k"]]:
    """Where the middle of each object appears, and its radius in pixels as it appears."""
    x, y, depth = world.project(scene, scene.middle).unbind(-1)
    return torch.stack(
        (x, y), -1
    ), world.frame.width * FOCAL / world.frame.wide * scene.radius / depth
