"""CLEVR's camera: always aimed at the middle of the floor, with a lens of 35 mm before a sensor of
32 x 24 mm."""

from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from recombine.worlds.scenes.scene import table

PLACE = (7.4811, -6.5076, 5.3437)
FOCAL = 35 / 32
"""In widths of the 4 : 3 picture."""


class Frame(NamedTuple):
    """The picture: its pixels, the part of the scene it shows (`wide` and `high`, in widths of
    CLEVR's 4 : 3 picture, around the same middle), and how many rays are sent through each
    pixel."""

    height: int
    width: int
    wide: float
    high: float
    samples: int


class Camera(NamedTuple):
    """Where it stands, and its axes: right, up, and forward."""

    place: Float[Tensor, "b 3"]
    right: Float[Tensor, "b 3"]
    up: Float[Tensor, "b 3"]
    forward: Float[Tensor, "b 3"]

    @staticmethod
    def aimed(shift: Float[Tensor, "b 3"]) -> "Camera":
        """Where a camera stands that was shifted from its usual place, and how it is turned."""
        x, y, z = (shift + table(PLACE, shift.device)).unbind(-1)
        flat, far = (x * x + y * y).sqrt(), (x * x + y * y + z * z).sqrt()
        right, forward = (-y / flat, x / flat, torch.zeros_like(x)), (-x / far, -y / far, -z / far)
        up = (-x * z / (flat * far), -y * z / (flat * far), flat / far)
        return Camera(*(torch.stack(axis, -1) for axis in ((x, y, z), right, up, forward)))

    def project(self, points: Float[Tensor, "b k 3"], frame: Frame) -> Float[Tensor, "b k 3"]:
        """Where points of space appear: fractions of the picture (x right, y down), and the depth
        ahead of the camera."""
        seen = points - self.place[:, None]
        x, y, depth = (
            (seen * axis[:, None]).sum(-1) for axis in (self.right, self.up, self.forward)
        )
        return torch.stack(
            (0.5 + FOCAL / frame.wide * x / depth, 0.5 - FOCAL / frame.high * y / depth, depth), -1
        )

    def through(self, locations: Float[Tensor, "b k 2"], frame: Frame) -> Float[Tensor, "b k 3"]:
        """The direction, one unit ahead of the camera, in which a location on the picture is seen.
        Inverts `project`."""
        x, y = (
            (locations[..., :1] - 0.5) * frame.wide / FOCAL,
            (0.5 - locations[..., 1:]) * frame.high / FOCAL,
        )
        return self.forward[:, None] + x * self.right[:, None] + y * self.up[:, None]

    def level(
        self, locations: Float[Tensor, "b k 2"], height: Float[Tensor, "b k"], frame: Frame
    ) -> Float[Tensor, "b k 2"]:
        """The floor position below the point at this height that is seen at a location."""
        ray = self.through(locations, frame)
        reach = (height - self.place[:, None, 2]) / ray[..., 2]
        return self.place[:, None, :2] + reach[..., None] * ray[..., :2]


@lru_cache(maxsize=64)
def grid(frame: Frame, device: torch.device) -> tuple[Float[Tensor, "p s"], Float[Tensor, "p s"]]:
    """Where every sample of every pixel lies on the plane one unit ahead of the camera, to the
    right and up."""
    dx, dy = table(pattern(frame.samples), device).unbind(-1)
    column = torch.arange(frame.width, device=device)[None, :, None] + dx
    row = torch.arange(frame.height, device=device)[:, None, None] + dy
    x, y = (
        (column / frame.width - 0.5) * (frame.wide / FOCAL),
        (0.5 - row / frame.height) * (frame.high / FOCAL),
    )
    return tuple(
        part.expand(frame.height, frame.width, -1).reshape(-1, frame.samples) for part in (x, y)
    )


@lru_cache(maxsize=64)
def pattern(count: int, start: float = 0.4) -> tuple[tuple[float, float], ...]:
    """`count` points spread evenly over the unit square: every one has its own row and its own
    column."""
    golden = [(start + i * 0.618034) % 1 for i in range(count)]
    return tuple(
        ((i + 0.5) / count, (sorted(golden).index(g) + 0.5) / count) for i, g in enumerate(golden)
    )
