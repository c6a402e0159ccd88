"""Rays against solids. Every solid is convex and stands upright on the floor; a ray runs through it
from `enter` to `leave`.

A cube is the overlap of three slabs, a cylinder that of a round pillar and a slab, and a ball lies
inside its slab. So all three share the upright slab, and the round ones share one quadratic. Rays
are (b, p, s): pictures, pixels, samples of a pixel. Where all rays meet all solids there is one
more axis, k, after b."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.worlds.scenes.scene import COLORS, SHAPES, Scene, table
from recombine.worlds.scenes.vec import Vec

NEAR, FAR = 1e-3, 2.0**20
"""A ray meets nothing nearer than this, so that it leaves the surface it starts from; and how far a
missed solid is."""
DEEP = 1.4
"""The published colours, taken to this power, are what surfaces give back: lit by the lamps they
then look as published."""
PAINTS = tuple(tuple((part / 255) ** DEEP for part in rgb) for rgb in COLORS.values())
EDGE = 0.1
"""How far from an edge, in radii, the surface of a cube or cylinder begins to turn."""


class Solids(NamedTuple):
    """The objects of a batch of scenes, one number each. An empty slot has radius zero, and nothing
    meets it."""

    x: Float[Tensor, "*n"]
    y: Float[Tensor, "*n"]
    radius: Float[Tensor, "*n"]
    cos: Float[Tensor, "*n"]
    sin: Float[Tensor, "*n"]
    cube: Float[Tensor, "*n"]
    ball: Float[Tensor, "*n"]
    red: Float[Tensor, "*n"]
    green: Float[Tensor, "*n"]
    blue: Float[Tensor, "*n"]
    metal: Float[Tensor, "*n"]

    @staticmethod
    def of(scene: Scene) -> "Solids":
        rgb, angle = table(PAINTS, scene.color.device)[scene.color], scene.angle.double()
        turn = (angle.cos().float(), angle.sin().float())
        shape = ((scene.shape == SHAPES.index(name)).float() for name in ("cube", "sphere"))
        radius, metal = scene.radius * scene.present, scene.material.float()
        return Solids(*scene.xy.unbind(-1), radius, *turn, *shape, *rgb.unbind(-1), metal)

    @property
    def middle(self) -> Vec:
        return Vec(self.x, self.y, self.radius)

    def pick(self, who: Int[Tensor, "b p s"]) -> "Solids":
        """For every ray the solid that it meets (b, p, s)."""
        flat = who.flatten(1).long()
        return Solids(*(part.gather(1, flat).view(who.shape) for part in self))


def crossed(solids: Solids, *vectors: Vec) -> tuple[Any, ...]:
    """Solids and vectors with axes for each other: (b, k, p, s), so that inner loops are long."""
    solid = Solids(*(part[:, :, None, None] for part in solids))
    return solid, *(Vec(*(part.unsqueeze(1) for part in vector)) for vector in vectors)


def span(solid: Solids, start: Vec, ray: Vec) -> tuple[Tensor, Tensor]:
    """Where rays enter and leave solids, in lengths of `ray`. A ray misses where it does not leave
    after it enters."""
    start = start.minus(solid.middle)
    low, high = slab(start.z, ray.z, solid.radius)
    turned, across = start.turn(solid.cos, solid.sin), ray.turn(solid.cos, solid.sin)
    left, right = slab(turned.x, across.x, solid.radius)
    front, back = slab(turned.y, across.y, solid.radius)
    near, far = pillar(solid, start, ray)
    cube = solid.cube > 0
    enter = torch.where(cube, larger(left, front), near)
    leave = torch.where(cube, smaller(right, back), far)
    return larger(enter, low), smaller(leave, high)


def smaller(one: Tensor, other: Tensor | float) -> Tensor:
    """Unlike torch.minimum it does not look for NaN, which would take a GPU more steps than all
    else."""
    return torch.where(one < other, one, other)


def larger(one: Tensor, other: Tensor | float) -> Tensor:
    return torch.where(one > other, one, other)


def slab(start: Tensor, ray: Tensor, half: Tensor) -> tuple[Tensor, Tensor]:
    """From where to where a ray is within `half` of the middle of an axis."""
    inverse = 1 / (ray + 1e-12)
    middle, reach = start * inverse, half * inverse.abs()
    return -middle - reach, reach - middle


def pillar(solid: Solids, start: Vec, ray: Vec) -> tuple[Tensor, Tensor]:
    """From where to where a ray is inside a ball, or inside an endless round pillar."""
    square = (ray.x * ray.x + ray.y * ray.y) + solid.ball * (ray.z * ray.z) + 1e-9
    half = start.x * ray.x + start.y * ray.y + (solid.ball * start.z) * ray.z
    rest = (
        start.x * start.x
        + start.y * start.y
        + solid.ball * start.z * start.z
        - solid.radius * solid.radius
    )
    inner, scale = larger(half * half - square * rest, 0.0), 1 / square
    root = inner * (inner + 1e-20).rsqrt()
    return -(half + root) * scale, (root - half) * scale


def meets(solid: Solids, start: Vec, ray: Vec) -> Tensor:
    """How far along each ray a solid is; FAR where it is missed."""
    enter, leave = span(solid, start, ray)
    return torch.where((leave > enter) & (enter > NEAR), enter, FAR)


def nearest(
    solids: Solids, start: Vec, ray: Vec
) -> tuple[Float[Tensor, "b p s"], Int[Tensor, "b p s"]]:
    """How far along each ray the first solid is, FAR if there is none, and which it is.

    Positive floats are ordered like the integers with the same bits, so the last four bits of a
    distance can carry the number of the solid through one plain minimum. They are worth two
    millionths of the distance."""
    slot = torch.arange(solids.x.shape[1], device=solids.x.device, dtype=torch.int32)[:, None, None]
    key = (meets(*crossed(solids, start, ray)).view(torch.int32) & -16 | slot).amin(1)
    return (key & -16).view(torch.float32), key & 15


def normal(solid: Solids, point: Vec) -> Vec:
    """The outward direction at a point of a solid's surface. Near the edges of cubes and cylinders
    it turns smoothly."""
    at = point.minus(solid.middle).times(1 / solid.radius).turn(solid.cos, solid.sin)
    out = (at.x * at.x + at.y * at.y).sqrt().clamp_min(1e-6)
    bend = (out - (1 - EDGE)).clamp_min(0) / out
    cube, ball = solid.cube > 0, solid.ball > 0
    x, y = (
        torch.where(cube, beyond(part), torch.where(ball, part, bend * part))
        for part in (at.x, at.y)
    )
    local = Vec(x, y, torch.where(ball, at.z, beyond(at.z)))
    return local.turn(solid.cos, -solid.sin).times((local.dot(local) + 1e-12).rsqrt())


def beyond(part: Tensor) -> Tensor:
    """How far a coordinate lies in the outermost EDGE of [-1, 1]."""
    return part - part.clamp(EDGE - 1, 1 - EDGE)
