"""Reading pictures of one circle without a learned model: how a circle is covered, and the circle
that a picture shows.

1. Background: the median of the border. Ink: the mean colour, weighted by how far a pixel is from
   the background. Between the two lies each pixel's observed cover (as in `shapes2d_read`).
2. The circle through the edge: a least-squares fit weighted by the squared slope of the cover. It
   needs only part of the outline, so it works for circles that leave the frame too.
3. A few Gauss-Newton steps on centre and radius together, against the cover that rendering uses.
4. The picture is clean if the circle leaves little behind, pixel by pixel and patch by patch."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from recombine.worlds.outlines import chunk
from recombine.worlds.shapes2d_read import ink_and_background, left_over, observed_cover

BLUR = 1 / 32
"""Width of the soft edge, as a fraction of the picture: one standard deviation of a Gaussian."""
STEPS = 4
SPECKLE, SPOT = 0.15, 0.25
"""Largest left-over, where 1 is the step from background to ink: root mean square of all pixels;
mean of any 3 x 3 patch."""
OFF = 0.15
"""Largest distance of a colour from the line through its classes, per channel."""


class Circle(NamedTuple):
    """The circle of each picture: colours, diameter as a fraction of the picture, and whether it
    explains the picture."""

    ink: Float[Tensor, "b 3"]
    background: Float[Tensor, "b 3"]
    diameter: Float[Tensor, "b"]
    clean: Bool[Tensor, "b"]


def cover(pose: Float[Tensor, "b 3"], size: int) -> Float[Tensor, "b h w"]:
    """The share of each pixel that a circle (x, y, radius in pixels) covers: it fades over the edge
    like a blurred step."""
    return torch.special.ndtr(depth(pose, size) / (BLUR * size))


def depth(pose: Float[Tensor, "b 3"], size: int) -> Float[Tensor, "b h w"]:
    """How many pixels inside the circle each pixel lies."""
    pixel = torch.arange(size, device=pose.device) + 0.5
    x, y = pixel - pose[:, 0, None], pixel - pose[:, 1, None]
    return pose[:, 2, None, None] - torch.hypot(x[:, None, :], y[:, :, None])


def fit_circles(images: Float[Tensor, "b 3 h w"]) -> Circle:
    parts = images.float().split(chunk(images.shape[2], images.device, len(images)))
    return Circle(*(torch.cat(t) for t in zip(*map(_fit_circles, parts), strict=True)))


def _fit_circles(images: Tensor) -> Circle:
    images, size = images.clamp(0, 1), images.shape[3]
    seen = observed_cover(images, *ink_and_background(images))
    pose = refined(seen, through_edge(seen))
    left = left_over(images, cover(pose, size))
    contrast = (left.ink - left.background).square().sum(1).sqrt()
    clean = (left.speckle < SPECKLE) & (left.spot < SPOT) & (contrast > OFF)
    return Circle(left.ink, left.background, 2 * pose[:, 2] / size, clean)


def through_edge(seen: Float[Tensor, "b h w"]) -> Float[Tensor, "b 3"]:
    """The circle x^2 + y^2 = p x + q y + s that fits the edge best. Slopes are taken of a smoothed
    cover, and faint ones are no edge."""
    down, right = torch.gradient(F.avg_pool2d(seen, 3, 1, 1, count_include_pad=False), dim=(1, 2))
    slope = down.square() + right.square()
    weight = slope * (slope > 0.2 * slope.amax((1, 2), keepdim=True))
    pixel = (torch.arange(seen.shape[2], device=seen.device) + 0.5) / seen.shape[2]
    x, y = (axis.expand_as(seen) for axis in (pixel[None, None], pixel[None, :, None]))
    system = torch.stack((x, y, torch.ones_like(x)), 3).flatten(1, 2)
    weighted = system * weight.flatten(1)[:, :, None]
    tie = (
        1e-6
        * weighted.square().sum((1, 2)).sqrt().clamp_min(1e-6)[:, None, None]
        * torch.eye(3, device=seen.device)
    )
    right_hand = weighted.mT @ (x.square() + y.square()).flatten(1)[:, :, None]
    p, q, s = torch.linalg.solve(weighted.mT @ system + tie, right_hand)[:, :, 0].unbind(1)
    radius = (s + (p.square() + q.square()) / 4).clamp_min(1e-4).sqrt()
    return seen.shape[2] * torch.stack((p / 2, q / 2, radius), 1)


def refined(seen: Float[Tensor, "b h w"], pose: Float[Tensor, "b 3"]) -> Float[Tensor, "b 3"]:
    """Gauss-Newton on centre and radius; the slopes of the cover are known exactly."""
    size, width = seen.shape[2], BLUR * seen.shape[2]
    pixel = torch.arange(size, device=seen.device) + 0.5
    for _ in range(STEPS):
        x, y = pixel - pose[:, 0, None], pixel - pose[:, 1, None]
        distance = torch.hypot(x[:, None, :], y[:, :, None]).clamp_min(1e-3)
        inner = (pose[:, 2, None, None] - distance) / width
        bell = torch.exp(-inner.square() / 2) / (width * (2 * torch.pi) ** 0.5)
        slopes = torch.stack(
            (bell * x[:, None, :] / distance, bell * y[:, :, None] / distance, bell), 3
        ).flatten(1, 2)
        rest = (seen - torch.special.ndtr(inner)).flatten(1)[:, :, None]
        tie = 0.05 * torch.eye(3, device=seen.device)
        move = torch.linalg.solve(slopes.mT @ slopes + tie, slopes.mT @ rest)[:, :, 0]
        pose = pose + move.clamp(-size / 16, size / 16)
        pose = torch.cat((pose[:, :2], pose[:, 2:].clamp(0.5, size)), 1)
    return pose
