"""Shapes2D: one upright shape on a light background. Three factors: shape, colour, size; position
is a nuisance.

The papers' task is binary: circle or triangle, red or blue, large or small. Each picture has its
own colour and size, jittered around its class's centre, and these are its `values`: true RGB, and
the radius as a fraction of the picture."""

from dataclasses import replace
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import config
from recombine.worlds import shapes2d_read
from recombine.worlds.factors import Factor, FactorSpace
from recombine.worlds.outlines import NAMES, OUTLINES, chunk, cover, depth
from recombine.worlds.world import Rendered, World

COLORS = {"red": (0.9, 0.1, 0.1), "blue": (0.1, 0.1, 0.9), "green": (0.1, 0.9, 0.1)}
RADII = {"large": 8.0 / 28, "small": 4.8 / 28}
JITTER = 0.06
"""By how much colours and sizes of a class differ where nothing else is said."""
LEAST = 1.5 / 28
"""The smallest radius of a normal law: below, a circle and a triangle of 28 pixels look alike."""
CALIBRATED = {"size_law": "normal", "size_jitter": 0.265, "wander": 0.1, "scale": 0.85}
"""The settings at which paper A's linear probe reads real pictures as often as in the paper."""
ShapeName = Literal["circle", "triangle", "square"]
Law = Literal["uniform", "normal"]


class Tables(NamedTuple):
    """The world's constants as tensors, one row per value."""

    rgb: Float[Tensor, "n 3"]
    radius: Float[Tensor, "n"]
    reach: Float[Tensor, "n 3"]
    jitter: Float[Tensor, "n 2"]
    largest: Float[Tensor, "n"]


@config("world/shapes2d")
class Shapes2D(World):
    """Jitter is uniform by default: `color_jitter` is added to each channel and clipped to what a
    screen shows, `size_jitter` is relative. Where some shapes are named in `varying`, these alone
    jitter so, and the others as usual. Under a normal law the jitter is the standard deviation and
    classes may overlap; radii are truncated to what fits into the picture (see `truncated`), and
    the oracle reads the class whose centre is nearest. `scale` multiplies all radii. A shape of
    radius r covers the area of a circle of radius r, whatever it is; it always lies wholly inside
    the picture. `wander` is the share of the free room that its position uses: 1 = anywhere, 0 =
    always in the middle."""

    interpolates: ClassVar[bool] = True
    size: int = 28
    shapes: tuple[ShapeName, ...] = ("circle", "triangle")
    colors: tuple[Literal["red", "blue", "green"], ...] = ("red", "blue")
    sizes: tuple[Literal["large", "small"], ...] = ("large", "small")
    color_jitter: float = JITTER
    size_jitter: float = JITTER
    background: float = 0.95
    wander: float = 1.0
    varying: tuple[ShapeName, ...] = ()
    size_law: Law = "uniform"
    color_law: Law = "uniform"
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.size < 16:
            raise ValueError(f"size={self.size}: at least 16 pixels are needed")
        for name, known in (("shapes", NAMES), ("colors", tuple(COLORS)), ("sizes", tuple(RADII))):
            given = getattr(self, name)
            if not given or len(set(given)) < len(given) or not set(given) <= set(known):
                raise ValueError(
                    f"{name}={list(given)}: one or more of {', '.join(known)}, each once"
                )
        if strange := [name for name in self.varying if name not in self.shapes]:
            raise ValueError(
                f"varying: {strange[0]} is none of the shapes, {', '.join(self.shapes)}"
            )
        for name, low, high in (
            ("color_jitter", 0, 0.25),
            ("size_jitter", 0, 0.2 if self.size_law == "uniform" else 0.4),
            ("scale", 0.5, 1),
            ("background", 0.8, 1),
            ("wander", 0, 1),
        ):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name}={getattr(self, name)}: must lie between {low} and {high}")

    @property
    def space(self) -> FactorSpace:
        return FactorSpace(
            (
                Factor("shape", self.shapes),
                Factor("color", self.colors, 3, centre=(0.5,) * 3, unit=(0.8,) * 3),
                Factor("size", self.sizes, 1, (6.4 / 28 * self.scale,), (3.2 / 28 * self.scale,)),
            )
        )

    @property
    def overlapping(self) -> tuple[str, ...]:
        return ("size",) if self.size_law == "normal" and self.size_jitter > JITTER else ()

    def calibrated(self) -> "Shapes2D":
        """The same with sizes and positions that vary as in paper A's pictures (CALIBRATED)."""
        return replace(self, **CALIBRATED)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return 3, self.size, self.size

    def canonical(self, factors: Int[Tensor, "b 3"]) -> Float[Tensor, "b 4"]:
        table = tables(self, factors.device)
        return torch.cat((table.rgb[factors[:, 1]], table.radius[factors[:, 2], None]), 1)

    def render(self, factors: Int[Tensor, "b 3"], rng: torch.Generator) -> Rendered:
        factors = factors.to(rng.device)
        values, place = self.details(factors, rng)
        return Rendered(self.draw(factors, values, self.centres(factors, values, place)), values)

    def details(self, factors: Int[Tensor, "b 3"], rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Each picture's own values, and its place in the free room. The same stream gives the same
        whatever the factors."""
        chance = torch.rand(len(factors), 4, generator=rng, device=rng.device)
        place = 0.5 + self.wander * (
            torch.rand(len(factors), 2, generator=rng, device=rng.device) - 0.5
        )
        centre = self.canonical(factors)
        color, size = tables(self, factors.device).jitter[factors[:, 0]].split(1, 1)
        rgb = (centre[:, :3] + color * deviation(chance[:, :3], self.color_law)).clamp(0, 1)
        away = deviation(self._within_bounds(chance[:, 3:], factors), self.size_law)
        return torch.cat((rgb, centre[:, 3:] * (1 + size * away)), 1), place

    def _within_bounds(self, chance: Tensor, factors: Tensor) -> Tensor:
        """A chance in [0, 1) moved between those of the smallest and the largest radius."""
        if self.size_law == "uniform":
            return chance
        low, high = self._bounds(factors)
        return low + (high - low) * chance

    def _bounds(self, factors: Int[Tensor, "b 3"]) -> tuple[Tensor, Tensor]:
        """The shares of a normal law below the smallest and below the largest radius that fits."""
        table, centre = tables(self, factors.device), self.canonical(factors)[:, 3:]
        spread = table.jitter[factors[:, 0], 1:].clamp(min=1e-6)
        ends = LEAST, table.largest[factors[:, 0], None]
        low, high = (torch.special.ndtr((end / centre - 1) / spread) for end in ends)
        return low, high

    def truncated(
        self, factors: Int[Tensor, "b 3"]
    ) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        """How much of a normal law of sizes is cut off: below LEAST, and above what fits."""
        if self.size_law == "uniform":
            none = torch.zeros(len(factors), device=factors.device)
            return none, none
        low, high = self._bounds(factors)
        return low[:, 0], 1 - high[:, 0]

    def interpolate(
        self,
        here: Int[Tensor, "b 3"],
        there: Int[Tensor, "b 3"],
        share: Float[Tensor, "b"],
        rng: torch.Generator,
    ) -> Float[Tensor, "b 3 h w"]:
        """Values lie between the values, and the outline where the two depths, in these shares, add
        up to nothing."""
        state, ends = rng.get_state(), []
        for factors in (here.to(rng.device), there.to(rng.device)):
            values, place = self.details(factors, rng.set_state(state))
            ends.append((factors, values, self.centres(factors, values, place)))
        values, centres = (
            torch.lerp(a, b, share[:, None]) for a, b in zip(ends[0][1:], ends[1][1:], strict=True)
        )
        deep = torch.lerp(
            *(self._depth(factors, values, centres) for factors, *_ in ends), share[:, None, None]
        )
        return self._paint(deep, values)

    def centres(
        self, factors: Int[Tensor, "b 3"], values: Float[Tensor, "b 4"], place: Float[Tensor, "b 2"]
    ) -> Float[Tensor, "b 2"]:
        """`place` in [0, 1]^2, stretched over the centres (x right, y down, fractions of the
        picture) at which the whole shape, soft edge included, is inside the picture."""
        side, up, down = (
            tables(self, factors.device).reach[factors[:, 0]] * values[:, 3:] + 0.5 / self.size
        ).unbind(1)
        low, high = torch.stack((side, up), 1), torch.stack((1 - side, 1 - down), 1)
        return low + place * (high - low)

    def draw(
        self,
        factors: Int[Tensor, "b 3"],
        values: Float[Tensor, "b 4"],
        centres: Float[Tensor, "b 2"],
    ) -> Float[Tensor, "b 3 h w"]:
        """The exact pictures of shapes with these values at these centres. Nothing random, no host
        sync."""
        step = chunk(self.size, factors.device, len(factors))
        if len(factors) <= step:
            return self._draw(factors, values, centres)
        parts = zip(factors.split(step), values.split(step), centres.split(step), strict=True)
        return torch.cat([self._draw(*part) for part in parts])

    def _draw(self, factors: Tensor, values: Tensor, centres: Tensor) -> Tensor:
        return self._paint(self._depth(factors, values, centres), values)

    def _depth(self, factors: Tensor, values: Tensor, centres: Tensor) -> Float[Tensor, "b h w"]:
        pixel = torch.arange(self.size, device=factors.device) + 0.5
        offset = pixel - self.size * centres[:, :, None]
        x, y, radius = (
            offset[:, 0, None, :],
            offset[:, 1, :, None],
            self.size * values[:, 3, None, None],
        )
        deep = None
        for i, name in enumerate(self.shapes):
            mine = depth(OUTLINES[NAMES.index(name)], x, y, radius)
            deep = mine if deep is None else torch.where(factors[:, 0, None, None] == i, mine, deep)
        return deep

    def _paint(self, deep: Float[Tensor, "b h w"], values: Tensor) -> Tensor:
        paint = (values[:, :3] - self.background)[:, :, None, None]
        return torch.addcmul(torch.full_like(paint, self.background), cover(deep)[:, None], paint)

    def read(self, images: Float[Tensor, "b 3 h w"]) -> Int[Tensor, "b 3"]:
        """Analysis by synthesis, see `shapes2d_read`."""
        table = tables(self, images.device)
        outlines = tuple(OUTLINES[NAMES.index(name)] for name in self.shapes)
        reach = {"uniform": 1, "normal": 3}
        jitter = (
            reach[self.color_law] * self.color_jitter,
            reach[self.size_law] * self.size_jitter,
        )
        nearest = self.size_law == "normal"
        return shapes2d_read.read(
            images, outlines, table.rgb, table.radius, self.background, jitter, nearest
        )


def deviation(chance: Float[Tensor, "b n"], law: Law) -> Float[Tensor, "b n"]:
    """From a chance in [0, 1) to the distance from the centre, in units of the jitter."""
    if law == "uniform":
        return 2 * chance - 1
    return torch.special.ndtri(chance.clamp(1e-6, 1 - 1e-6))


@lru_cache(maxsize=64)
def tables(world: Shapes2D, device: torch.device) -> Tables:
    """Made once per world and device, so that drawing never copies from the host."""
    outlines = [OUTLINES[NAMES.index(name)] for name in world.shapes]
    numbers = (
        [COLORS[name] for name in world.colors],
        [world.scale * RADII[name] for name in world.sizes],
        [(o.side, o.up, o.down) for o in outlines],
        [
            (world.color_jitter, world.size_jitter)
            if name in (world.varying or world.shapes)
            else (JITTER, JITTER)
            for name in world.shapes
        ],
        [(1 - 1 / world.size) / max(2 * o.side, o.up + o.down) for o in outlines],
    )
    return Tables(*(torch.tensor(n, device=device) for n in numbers))
