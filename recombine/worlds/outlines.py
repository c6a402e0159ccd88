"""Upright outlines with soft edges, drawn from their signed distance: circle, triangle, square.

Every outline is circumscribed about a circle around its centroid. Its `gauge` grows by one per
pixel across each edge, so `inradius - gauge` is the signed depth and one clamp turns it into the
share of a pixel that is covered. All outlines of the same radius cover the SAME AREA, that of a
circle of this radius: size can be read without knowing the shape."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor


class Outline(NamedTuple):
    """`inradius` is that of an outline of radius one; `side`, `up` and `down` are how far it
    reaches from its centroid."""

    name: str
    gauge: Callable[[Tensor, Tensor], Tensor]
    inradius: float
    side: float
    up: float
    down: float


def _circle(x: Tensor, y: Tensor) -> Tensor:
    return (x.square() + y.square()).sqrt()


def _triangle(x: Tensor, y: Tensor) -> Tensor:
    return torch.maximum(x.abs() * (math.sqrt(3) / 2) - y / 2, y)


def _square(x: Tensor, y: Tensor) -> Tensor:
    return torch.maximum(x.abs(), y.abs())


_T, _S = math.sqrt(math.pi / math.sqrt(27)), math.sqrt(math.pi / 4)
CIRCLE = Outline("circle", _circle, 1.0, side=1.0, up=1.0, down=1.0)
TRIANGLE = Outline("triangle", _triangle, _T, side=math.sqrt(3) * _T, up=2 * _T, down=_T)
SQUARE = Outline("square", _square, _S, side=_S, up=_S, down=_S)
OUTLINES = (CIRCLE, TRIANGLE, SQUARE)
NAMES = tuple(outline.name for outline in OUTLINES)
CHUNK_PIXELS = 256 * 28 * 28


def chunk(size: int, device: torch.device, count: int) -> int:
    """How many of `count` pictures to take at once: on a CPU few enough for the cache, else all."""
    return max(1, CHUNK_PIXELS // size**2 if device.type == "cpu" else count)


def depth(
    outline: Outline,
    x: Float[Tensor, "b 1 w"],
    y: Float[Tensor, "b h 1"],
    radius: Float[Tensor, "b 1 1"],
) -> Float[Tensor, "b h w"]:
    """How many pixels deep inside the outline each pixel lies; x runs right and y down from the
    outline's centroid."""
    return outline.inradius * radius - outline.gauge(x, y)


def cover(depth: Float[Tensor, "b h w"]) -> Float[Tensor, "b h w"]:
    """The share of each pixel that is covered."""
    return (depth + 0.5).clamp_(0, 1)
