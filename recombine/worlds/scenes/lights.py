"""CLEVR's lamps: key, fill and back. Each is a bright square that faces the middle of the floor."""

import math
from functools import lru_cache
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from recombine.worlds.scenes.camera import pattern
from recombine.worlds.scenes.scene import table
from recombine.worlds.scenes.vec import Vec

EXPOSURE = 2.15
"""How bright the picture is made."""


class Lamp(NamedTuple):
    """Its usual place, colour, power in watts, and the side of its square."""

    place: tuple[float, float, float]
    rgb: tuple[float, float, float]
    power: float
    side: float

    @property
    def aim(self) -> tuple[float, float, float]:
        """The direction back from the middle of the floor to the lamp."""
        return tuple(part / math.hypot(*self.place) for part in self.place)


LAMPS = (
    Lamp((6.4467, -2.9052, 4.2584), (1.0, 0.932, 0.817), 78.5, 0.5),
    Lamp((-4.6711, -4.0136, 3.0112), (0.762, 0.818, 1.0), 23.6, 0.5),
    Lamp((-1.1685, 2.646, 5.8157), (1.0, 1.0, 1.0), 39.3, 1.0),
)


def spots(shift: Float[Tensor, "b 3 3"], samples: int) -> Float[Tensor, "b 3 s 3"]:
    """The point of each lamp that each sample of a pixel looks at. Together the samples see the
    whole square, so that shadows have soft edges."""
    return shift[:, :, None] + table(_squares(samples), shift.device)


@lru_cache(maxsize=16)
def _squares(samples: int) -> tuple:
    return tuple(_square(lamp, samples) for lamp in LAMPS)


def _square(lamp: Lamp, samples: int) -> tuple[tuple[float, ...], ...]:
    x, y, z = lamp.aim
    flat = math.hypot(x, y)
    side, rise = (-y / flat, x / flat, 0.0), (-x * z / flat, -y * z / flat, flat)
    shares = [(lamp.side * (v - 0.5), lamp.side * (u - 0.5)) for u, v in pattern(samples, 0.1)]
    return tuple(
        tuple(p + u * s + v * r for p, s, r in zip(lamp.place, side, rise, strict=True))
        for u, v in shares
    )


def shine(lamp: Lamp, spot: Vec, point: Vec, facing: Vec) -> Tensor:
    """The light that a lamp throws on a surface if nothing is in the way. A lamp is brighter
    straight ahead."""
    ray = spot.minus(point)
    near = 1 / ray.dot(ray)
    x, y, z = lamp.aim
    spread = (ray.x * x + ray.y * y + ray.z * z).clamp_min(0) * near
    power = EXPOSURE * lamp.power / math.pi**2
    return power * (spread * spread) * (facing.dot(ray).clamp_min(0) * near.sqrt())
