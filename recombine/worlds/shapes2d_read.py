"""Reading Shapes2D pictures without a learned model: find the ink, fit every outline to it, test
what is left over.

1. Background: the median of the border. Ink: the mean colour, weighted by how far a pixel is from
  the background. Between the two lies each pixel's observed cover.
2. Area and centroid of the cover start the pose (x, y, radius): the same for all outlines, since
  all have equal area.
3. A few Gauss-Newton steps per outline on the pose and on how softly the edge fades. Outlines are
  mirror-symmetric and circumscribed about a circle, so the four unknowns do not interact and each
  step is four divisions.
4. A picture is read only if the best outline leaves little behind anywhere, explains the picture
  clearly better than any other outline, lies inside the frame, and has a colour, a size and a
  background near those of the world."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from recombine.worlds.outlines import OUTLINES, Outline, chunk, cover, depth
from recombine.worlds.world import INVALID

STEPS = 2
WIDEST = 1 / 20
"""How wide an edge may fade, as a fraction of the picture. A rendered edge fades over one pixel."""
SPECKLE, SPOT = 0.15, 0.20
"""Largest left-over, where 1 is the step from background to ink: root mean square of all pixels;
mean of any 3 x 3 patch."""
CLEARER = 0.30
"""Largest squared error of the best outline relative to that of the second best."""
COLOR, SIZE, BACKGROUND, OUTSIDE = 0.10, 0.05, 0.15, 0.5
"""Largest distance: per channel from where a colour's jitter ends; relative, from where a radius's
does; per channel from the world's background; in pixels, of the outline beyond the frame."""
LEAST = 0.1
"""Jitter of colours and of sizes that is taken for granted, also in a world with less."""


class Fit(NamedTuple):
    """One outline fitted to each picture: pose (x, y, radius) in pixels, the cover it predicts, and
    its squared error."""

    pose: Float[Tensor, "b 3"]
    cover: Float[Tensor, "b h w"]
    error: Float[Tensor, "b"]


def ink_and_background(
    images: Float[Tensor, "b c h w"],
) -> tuple[Float[Tensor, "b c"], Float[Tensor, "b c"]]:
    h, w = images.shape[2:]
    border = images[:, :, :: h - 1].flatten(2), images[:, :, 1:-1, :: w - 1].flatten(2)
    background = torch.cat(border, 2).median(2).values
    weight = (images - background[:, :, None, None]).square().sum(1).square()
    ink = (images * weight[:, None]).sum((2, 3)) / weight.sum((1, 2))[:, None].clamp_min(1e-12)
    return ink, background


def observed_cover(images: Tensor, ink: Tensor, background: Tensor) -> Float[Tensor, "b h w"]:
    """Where each pixel lies between background (0) and ink (1)."""
    step = ink - background
    along = (images * step[:, :, None, None]).sum(1) - (background * step).sum(1)[:, None, None]
    return along / step.square().sum(1).clamp_min(1e-6)[:, None, None]


def first_pose(seen: Float[Tensor, "b h w"]) -> Float[Tensor, "b 3"]:
    solid = F.threshold(seen, 0.15, 0.0)
    area = solid.sum((1, 2)).clamp_min(1.0)
    x = solid.sum(1) @ (torch.arange(seen.shape[2], device=seen.device) + 0.5) / area
    y = solid.sum(2) @ (torch.arange(seen.shape[1], device=seen.device) + 0.5) / area
    return torch.stack((x, y, (area / torch.pi).sqrt()), 1)


def deep(
    outline: Outline, pose: Float[Tensor, "b 3"], like: Float[Tensor, "b h w"]
) -> Float[Tensor, "b h w"]:
    x = torch.arange(like.shape[2], device=like.device) + 0.5 - pose[:, 0, None, None]
    y = torch.arange(like.shape[1], device=like.device)[:, None] + 0.5 - pose[:, 1, None, None]
    return depth(outline, x, y, pose[:, 2, None, None])


def fit(outline: Outline, seen: Float[Tensor, "b h w"], start: Float[Tensor, "b 3"]) -> Fit:
    """Gauss-Newton on the pose and on the width of the soft edge, with slopes from differences over
    about a pixel, which smooths the clamp."""
    pose, edge = start, torch.ones_like(start[:, :1, None])
    for _ in range(STEPS):
        inner = deep(outline, pose, seen)
        made = cover(inner / edge)
        rest = seen - made
        down, right = torch.gradient(made, dim=(1, 2))
        grow = cover((inner + outline.inradius / 2) / edge) - cover(
            (inner - outline.inradius / 2) / edge
        )
        widen = cover(inner / (edge + 0.5)) - cover(inner / (edge - 0.5))
        move = [
            (slope * rest).sum((1, 2)) / slope.square().sum((1, 2)).clamp_min(0.1)
            for slope in (-right, -down, grow, widen)
        ]
        pose = pose + torch.stack(move[:3], 1).clamp(-2, 2)
        edge = (edge + move[3][:, None, None]).clamp(1, max(1.0, WIDEST * seen.shape[2]))
    made = cover(deep(outline, pose, seen) / edge)
    return Fit(pose, made, (seen - made).square().sum((1, 2)))


class Left(NamedTuple):
    """The colours that explain each picture best, given a cover, and what they leave over."""

    ink: Float[Tensor, "b c"]
    background: Float[Tensor, "b c"]
    speckle: Float[Tensor, "b"]
    spot: Float[Tensor, "b"]


def left_over(images: Float[Tensor, "b c h w"], made: Float[Tensor, "b h w"]) -> Left:
    """Regress every channel on the cover, and test the residual pixel by pixel and patch by
    patch."""
    mean = made.mean((1, 2))
    centred = made - mean[:, None, None]
    step = (images * centred[:, None]).sum((2, 3)) / centred.square().sum((1, 2)).clamp_min(1.0)[
        :, None
    ]
    background = images.mean((2, 3)) - step * mean[:, None]
    rest = torch.addcmul(
        images - background[:, :, None, None], step[:, :, None, None], made[:, None], value=-1
    )
    scale = step.square().sum(1).clamp_min(1e-6)
    speckle = (rest.square().sum(1).mean((1, 2)) / scale).sqrt()
    spot = (F.avg_pool2d(rest, 3, 1).square().sum(1).amax((1, 2)) / scale).sqrt()
    return Left(background + step, background, speckle, spot)


def inside(
    outlines: tuple[Outline, ...], which: Int[Tensor, "b"], pose: Float[Tensor, "b 3"], size: int
) -> Bool[Tensor, "b"]:
    """Whether the outline stays in the frame."""
    x, y, r = pose.unbind(1)
    gaps = [
        (x - o.side * r, y - o.up * r, size - x - o.side * r, size - y - o.down * r)
        for o in outlines
    ]
    least = torch.stack([torch.stack(gap).amin(0) for gap in gaps])
    return least.gather(0, which[None])[0] > -OUTSIDE


def read(
    images: Float[Tensor, "b 3 h w"],
    outlines: tuple[Outline, ...],
    rgb: Float[Tensor, "n 3"],
    radius: Float[Tensor, "m"],
    background: float,
    jitter: tuple[float, float],
    nearest: bool = False,
) -> Int[Tensor, "b 3"]:
    """The indices of outline, colour and radius that each picture shows, or INVALID in all three.
    `jitter`: the world's own, of colours and of sizes. `nearest`: the class of a size is the one
    whose centre is nearest in pixels, as it is likelier where sizes overlap; otherwise relative to
    the class."""
    parts = images.float().split(chunk(images.shape[2], images.device, len(images)))
    world = outlines, rgb, radius, background, jitter, nearest
    return torch.cat([_read(part, *world) for part in parts])


def _read(
    images: Tensor,
    outlines: tuple[Outline, ...],
    rgb: Tensor,
    radius: Tensor,
    background: float,
    jitter: tuple[float, float],
    nearest: bool,
) -> Tensor:
    images = images.clamp(0, 1)
    seen = observed_cover(images, *ink_and_background(images))
    start = first_pose(seen)
    rivals = outlines + tuple(o for o in OUTLINES if o not in outlines)
    fits = [fit(outline, seen, start) for outline in rivals]
    errors, order = torch.stack([f.error for f in fits], 1).sort(1)
    best, each = order[:, 0], torch.arange(len(images), device=images.device)
    pose = torch.stack([f.pose for f in fits])[best, each]
    left = left_over(images, torch.stack([f.cover for f in fits])[best, each])
    off_color, color = (left.ink[:, None] - rgb).abs().amax(2).min(1)
    away = (pose[:, 2:] / images.shape[3] / radius - 1).abs()
    size = (away * radius if nearest else away).argmin(1)
    off_size = away.gather(1, size[:, None])[:, 0]
    good = (errors[:, 0] < CLEARER * errors[:, 1]) & (best < len(outlines))
    good &= (
        (left.speckle < SPECKLE) & (left.spot < SPOT) & inside(rivals, best, pose, images.shape[3])
    )
    color_ends, size_ends = (max(LEAST, own) for own in jitter)
    good &= (off_color < COLOR + color_ends) & (off_size < SIZE + size_ends)
    good &= (left.background - background).abs().amax(1) < BACKGROUND
    return torch.where(good[:, None], torch.stack((best, color, size), 1), INVALID)
