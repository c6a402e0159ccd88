"""Faults that generated pictures of scenes have and renders do not: cells that are shifted against
each other, seams between cells, objects of which a part is missing. A detector is trained and
tested on them, since what it counts is generated."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from recombine.worlds.scenes.scene import Scene
from recombine.worlds.scenes.scenes import Scenes

CELLS = 16
"""Cells a side, as in local networks."""
SEAM = 0.04
"""The standard deviation of a cell's brightness where there are seams."""
PIECE, WHOLE = 0.25, 0.55
"""An object is cut so that less than the first or more than the second share of it is left; only
the latter is an object."""
CHANGED = 0.02
"""By how much a pixel must change for an object to be there."""


def shifted(
    images: Float[Tensor, "b c h w"], rng: torch.Generator, most: int = 1, cells: int = CELLS
) -> Float[Tensor, "b c h w"]:
    """Every cell shows what lies up to `most` pixels beside it, each in its own direction."""
    b, _, h, w = images.shape
    move = torch.randint(-most, most + 1, (b, 2, cells, cells), generator=rng, device=rng.device)
    rows, columns = (torch.arange(n, device=images.device) for n in (h, w))
    move = move[:, :, rows * cells // h][:, :, :, columns * cells // w]
    row = (rows[:, None] + move[:, 0]).clamp(0, h - 1)
    column = (columns + move[:, 1]).clamp(0, w - 1)
    index = (row * w + column).flatten(1)[:, None].expand(-1, images.shape[1], -1)
    return images.flatten(2).gather(2, index).view_as(images)


def seamed(
    images: Float[Tensor, "b c h w"], rng: torch.Generator, cells: int = CELLS
) -> Float[Tensor, "b c h w"]:
    """Every cell a little brighter or darker than it should be."""
    b, _, h, w = images.shape
    off = SEAM * torch.randn(b, 1, cells, cells, generator=rng, device=rng.device)
    rows, columns = (torch.arange(n, device=images.device) * cells // n for n in (h, w))
    return (images + off[:, :, rows][:, :, :, columns]).clamp(0, 1)


def cut(
    world: Scenes, scene: Scene, images: Float[Tensor, "b c h w"], rng: torch.Generator
) -> tuple[Float[Tensor, "b c h w"], Bool[Tensor, "b k"]]:
    """The pictures of scenes with the first object cut along a line, and which objects are left: a
    small piece is none."""
    without = world.images(scene.without(0))
    changed = ((images - without).abs().amax(1) > CHANGED).flatten(1)
    angle = 2 * torch.pi * torch.rand(len(images), 1, 1, generator=rng, device=rng.device)
    h, w = images.shape[2:]
    rows, columns = (torch.arange(n, device=images.device) for n in (h, w))
    along = rows[:, None] * angle.sin() + columns * angle.cos()
    draw = torch.rand(len(images), 2, generator=rng, device=rng.device)
    left = torch.where(draw[:, 0] < 0.5, PIECE * draw[:, 1], WHOLE + (1 - WHOLE) * draw[:, 1])
    order = along.flatten(1).masked_fill(~changed, torch.inf).sort(1).values
    last = (left * changed.sum(1)).long().clamp(max=h * w - 1)
    kept = along <= order.gather(1, last[:, None])[:, :, None]
    present = scene.present.clone()
    present[:, 0] &= left >= WHOLE
    return torch.where(kept[:, None], images, without), present


def with_faults(
    world: Scenes, scene: Scene, share: float, rng: torch.Generator
) -> tuple[Float[Tensor, "b c h w"], Scene]:
    """Pictures of scenes, so many of them with faults of all kinds, and the scenes as they are to
    be counted."""
    images, some = world.images(scene), int(share * len(scene.xy))
    if not some:
        return images, scene
    first, present = scene.take(slice(some)), scene.present.clone()
    faulty, present[:some] = cut(world, first, images[:some], rng)
    faulty = seamed(shifted(faulty, rng), rng)
    return torch.cat((faulty, images[some:])), scene._replace(present=present)
