"""What light does at a surface: shadows of the lamps, dimness near objects, gloss, and the light
from all around."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from recombine.worlds.scenes.trace import Solids, crossed, larger, normal, smaller, span
from recombine.worlds.scenes.vec import Vec

FLOOR = 0.8
"""How much light the grey floor gives back."""
ABOVE, BELOW = 0.17, 0.1
"""Light from all around, on a surface that faces up or down."""
SOFT = 0.12
"""A shadow is full where light would have to pass through this much of a solid."""


class Surface(NamedTuple):
    """What rays meet: where, facing which way, of which colour, of metal or not, and of which solid
    (any, for the floor)."""

    point: Vec
    facing: Vec
    color: Vec
    metal: Float[Tensor, "b p s"]
    solid: Solids


def surface(
    solids: Solids, point: Vec, who: Int[Tensor, "b p s"], floor: Bool[Tensor, "b p s"]
) -> Surface:
    """The surface of solid `who` at a point, or the floor."""
    mine = solids.pick(who)
    facing, zero = normal(mine, point), torch.zeros_like(point.z)
    facing = Vec(
        *(
            torch.where(floor, up, part)
            for up, part in zip((zero, zero, zero + 1), facing, strict=True)
        )
    )
    color = Vec(*(torch.where(floor, FLOOR, part) for part in (mine.red, mine.green, mine.blue)))
    return Surface(point, facing, color, torch.where(floor, 0, mine.metal), mine)


def passed(solids: Solids, point: Vec, spot: Vec) -> Float[Tensor, "b p s"]:
    """How much of a lamp's light gets past the solids. One never hides the lit side of its own
    surface: it is convex. The lamp hangs above all solids, so that rays enter them after it."""
    ray = point.minus(spot)
    length = (ray.dot(ray).sqrt() / SOFT).unsqueeze(1)
    enter, leave = span(*crossed(solids, spot, ray))
    light = 1 - (smaller(leave, 1.0) - enter) * length
    return larger(smaller(light, 1.0), 0.0).prod(1)


def openness(solids: Solids, point: Vec, facing: Vec) -> Float[Tensor, "b p s"]:
    """How much of the light from all around gets past the solids."""
    return nearby_occlusion(*crossed(solids, point, facing)).prod(1)


def nearby_occlusion(solid: Solids, point: Vec, facing: Vec) -> Tensor:
    """How much of the light from all around gets past a solid, taken for a ball. It reaches a few
    radii."""
    away = solid.middle.minus(point)
    near = (away.dot(away) + 1e-6).rsqrt()
    size = solid.radius * (1.1 + 0.1 * solid.cube) * near
    light = 1.04 - 1.04 * (away.dot(facing) * near * size * size)
    return larger(smaller(light, 1.0), 0.1)


def ambient(facing: Vec, open_share: Tensor | float) -> Tensor:
    """Light from above as far as it is open, and from the floor below."""
    up = 0.5 + 0.5 * facing.z
    return ABOVE * up * open_share + BELOW * (1 - up)


def gloss(metal: Tensor, mirror: Tensor) -> Tensor:
    """How bright a lamp of one watt is mirrored, by the cosine between the mirrored view and the
    lamp: blurred by rubber, sharp with a blurred rim by metal."""
    blurred = (25 * (mirror - 1)).exp()
    twice = blurred * blurred
    return blurred * torch.where(metal > 0, 0.05 * (twice * twice) + 0.005, 0.002)
