"""From a shot to a picture: the first surface on every ray, its light, and one reflection where it
is of metal.

Light is linear until `encode`. Everything is arithmetic on tensors of fixed shape, without a look
at the numbers, in a few stages. Between them pass a few numbers per ray; what is cheap to find
again is found again."""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.worlds.scenes.fuse import fused
from recombine.worlds.scenes.lights import LAMPS, shine
from recombine.worlds.scenes.shade import (
    FLOOR,
    Surface,
    ambient,
    gloss,
    nearby_occlusion,
    openness,
    passed,
    surface,
)
from recombine.worlds.scenes.shot import Shot
from recombine.worlds.scenes.trace import FAR, Solids, nearest
from recombine.worlds.scenes.vec import Vec

SKY = 0.05
"""What a mirror shows of the dark above."""
MATTE, MIRROR = 0.2, 0.85
"""What metal gives back of the light that falls on it, and of what it mirrors."""
BRIGHTEST = 1.1
"""More light than this does not count, or a highlight would leave a jagged rim."""


class Hit(NamedTuple):
    """Where rays end: how far away, and on which solid; on the floor where they meet none
    before."""

    reach: Float[Tensor, "b p s"]
    who: Int[Tensor, "b p s"]


class Free(NamedTuple):
    """How much light gets past the solids: from all around, and from each lamp."""

    around: Float[Tensor, "b p s"]
    lamps: tuple[Float[Tensor, "b p s"], ...]


def trace(solids: Solids, shot: Shot, shadows: bool, reflections: bool) -> Float[Tensor, "b 3 p"]:
    """The colours of all pixels, stage by stage."""
    first = first_hit(solids, shot)
    point, facing, mirror = (
        seen_points(solids, shot, first) if shadows or reflections else (None,) * 3
    )
    free = shade(solids, shot, point, facing) if shadows else None
    second = bounce(solids, point, mirror) if reflections else None
    return finish(solids, shot, first, free, second)


@fused
def first_hit(solids: Solids, shot: Shot) -> Hit:
    """What the camera sees."""
    return Hit(*nearest(solids, shot.eye, shot.rays()))


def first_surface(solids: Solids, shot: Shot, hit: Hit) -> tuple[Surface, Vec, Tensor]:
    """What is seen, the direction in which it is seen, and whether it is the floor."""
    rays, floor = shot.rays(), hit.reach >= FAR
    point = shot.eye.plus(rays.times(torch.where(floor, -shot.eye.z / rays.z, hit.reach)))
    return surface(solids, point, hit.who, floor), rays.unit(), floor


def reflected(view: Vec, facing: Vec) -> Vec:
    return view.minus(facing.times(2 * view.dot(facing)))


@fused
def seen_points(solids: Solids, shot: Shot, hit: Hit) -> tuple[Vec, Vec, Vec]:
    """The points that are seen, the way they face, and the way a mirror there looks."""
    at, view, _ = first_surface(solids, shot, hit)
    return at.point, at.facing, reflected(view, at.facing)


@fused
def shade(solids: Solids, shot: Shot, point: Vec, facing: Vec) -> Free:
    """The light that is left at points after the solids."""
    return Free(
        openness(solids, point, facing), tuple(passed(solids, point, spot) for spot in shot.lamps)
    )


@fused
def bounce(solids: Solids, point: Vec, mirror: Vec) -> Hit:
    """What a mirror sees."""
    return Hit(*nearest(solids, point, mirror))


def second_surface(solids: Solids, point: Vec, mirror: Vec, hit: Hit) -> tuple[Surface, Tensor]:
    """What a mirror shows, and how much of the dark above it shows instead. The only shadow there
    is the mirror's own."""
    floor = hit.reach >= FAR
    reach = torch.where(floor, point.z / (-mirror.z).clamp_min(0.01), hit.reach)
    fade = torch.where(floor, (mirror.z * 20).clamp(-1, 0) + 1, 0)
    return surface(solids, point.plus(mirror.times(reach)), hit.who, floor), fade


@fused
def finish(
    solids: Solids, shot: Shot, first: Hit, free: Free | None, second: Hit | None
) -> Float[Tensor, "b 3 p"]:
    """All light together, averaged over the samples of a pixel."""
    at, view, floor = first_surface(solids, shot, first)
    mirror = reflected(view, at.facing)
    fallen, shiny = lit(at, shot, free), glossed(at, shot, mirror, free).times(~floor)
    seen = plain(mirror)
    if second is not None:
        there, fade = second_surface(solids, at.point, mirror, second)
        dim = nearby_occlusion(at.solid, there.point, there.facing)
        light = lit(there, shot, Free(dim, (dim,) * len(LAMPS)))
        seen = Vec(*(c * l + fade * (SKY - c * l) for c, l in zip(there.color, light, strict=True)))
    rim = (1 + view.dot(at.facing)).clamp(0, 1) ** 5
    colors = [
        blend(*parts, at.metal, rim) for parts in zip(at.color, fallen, shiny, seen, strict=True)
    ]
    return encode(torch.stack([color.mean(-1) for color in colors], 1))


def lit(at: Surface, shot: Shot, free: Free | None) -> Vec:
    """The light that falls on a surface."""
    around = ambient(at.facing, 1.0 if free is None else free.around)
    fallen = Vec(around, around, around)
    for i, (lamp, spot) in enumerate(zip(LAMPS, shot.lamps, strict=True)):
        fall = shine(lamp, spot, at.point, at.facing)
        fall = fall if free is None else fall * free.lamps[i]
        fallen = fallen.plus(Vec(*(part * fall for part in lamp.rgb)))
    return fallen


def glossed(at: Surface, shot: Shot, mirror: Vec, free: Free | None) -> Vec:
    """The lamps that are mirrored in a surface."""
    zero = torch.zeros_like(at.metal)
    shown = Vec(zero, zero, zero)
    for i, (lamp, spot) in enumerate(zip(LAMPS, shot.lamps, strict=True)):
        bright = lamp.power * gloss(at.metal, mirror.dot(spot.minus(at.point).unit()))
        bright = bright if free is None else bright * free.lamps[i]
        shown = shown.plus(Vec(*(part * bright for part in lamp.rgb)))
    return shown


def plain(mirror: Vec) -> Vec:
    """What metal shows where reflections are off: a bright floor and a dark above, the same for
    all."""
    shade = SKY + (FLOOR * 0.5 - SKY) * (0.5 - 2 * mirror.z).clamp(0, 1)
    return Vec(shade, shade, shade)


def blend(
    color: Tensor, light: Tensor, shiny: Tensor, seen: Tensor, metal: Tensor, rim: Tensor
) -> Tensor:
    """Rubber gives back its colour and a dull shine; metal mirrors in its colour, and without it at
    its rim."""
    tint = 0.1 + 0.9 * color
    tint = tint + (1 - tint) * rim
    shown = torch.where(
        metal > 0, MATTE * color * light + tint * (MIRROR * seen + shiny), color * light + shiny
    )
    return shown.clamp_max(BRIGHTEST)


def encode(light: Tensor) -> Tensor:
    """Linear light as a screen shows it, in [0, 1]."""
    light = light.clamp(0, 1)
    return torch.where(
        light < 0.0031308, 12.92 * light, 1.055 * light.clamp_min(1e-4) ** (1 / 2.4) - 0.055
    )
