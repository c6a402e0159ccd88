"""Circles: one circle on a light background. Two factors whose signals can be set: colour (red,
blue) and size (large, small); a third, the background (white, green), where it is given a signal.
Position is a nuisance, and so is the background where it is no factor.

A factor's *signal* is the distance between its two classes: per channel for colours, in diameters
(fractions of the picture) for size. Numbers follow the public concept-space experiments: 32 x 32
pixels, mean diameter 0.45, colours around mid grey. Each picture has its own colour and size,
spread uniformly around its class, and these are its `values`."""

from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import config
from recombine.worlds import circles_read
from recombine.worlds.factors import Factor, FactorSpace
from recombine.worlds.outlines import chunk
from recombine.worlds.world import INVALID, Rendered, World

GREY, DIAMETER, LIGHT = 0.5, 0.45, 0.9
SMALLEST = 0.1
"""No circle is smaller than this, whatever its spread."""
LIGHTS = (0.8, 1.0)
"""Where each channel of the background lies while it is a nuisance."""


class Concept(NamedTuple):
    """One factor as a line through its two classes, and how far its pictures spread around them."""

    name: str
    values: tuple[str, str]
    ends: tuple[tuple[float, ...], tuple[float, ...]]
    signal: float
    spread: float

    def factor(self) -> Factor:
        centre = tuple((a + b) / 2 for a, b in zip(*self.ends, strict=True))
        return Factor(self.name, self.values, len(centre), centre, (self.signal,) * len(centre))


@config("world/circles")
class Circles(World):
    """`*_signal`: the distance between the classes of a factor; background_signal 0 makes the
    background a nuisance. `*_spread`: how far pictures stray from their class, as a share of its
    signal (at 0.5 the classes touch). `wander`: how much of the middle half of the picture the
    centre uses; large circles may leave the frame. `pixel_noise`: standard deviation of what is
    added to every pixel."""

    interpolates: ClassVar[bool] = True
    size: int = 32
    color_signal: float = 0.4
    size_signal: float = 0.4
    background_signal: float = 0.0
    color_spread: float = 0.125
    size_spread: float = 0.375
    wander: float = 1.0
    pixel_noise: float = 0.0

    def __post_init__(self) -> None:
        if self.size < 16:
            raise ValueError(f"size={self.size}: at least 16 pixels are needed")
        for name, low, high in (
            ("color_signal", 0.05, 0.8),
            ("size_signal", 0.05, 0.6),
            ("background_signal", 0, 0.6),
            ("color_spread", 0, 0.49),
            ("size_spread", 0, 0.49),
            ("wander", 0, 1),
            ("pixel_noise", 0, 0.1),
        ):
            if not low <= getattr(self, name) <= high:
                raise ValueError(f"{name}={getattr(self, name)}: must lie between {low} and {high}")

    @property
    def concepts(self) -> tuple[Concept, ...]:
        h, d, s = self.color_signal / 2, self.size_signal / 2, self.background_signal
        red, blue = (GREY + h, GREY - h, GREY - h), (GREY - h, GREY - h, GREY + h)
        color = Concept("color", ("red", "blue"), (red, blue), self.color_signal, self.color_spread)
        diameters = ((DIAMETER + d,), (DIAMETER - d,))
        size = Concept("size", ("large", "small"), diameters, self.size_signal, self.size_spread)
        ends = ((LIGHT, LIGHT, LIGHT), (LIGHT - s, LIGHT, LIGHT - s))
        background = Concept("background", ("white", "green"), ends, s, self.color_spread)
        return (color, size, background) if s else (color, size)

    @property
    def space(self) -> FactorSpace:
        return FactorSpace(tuple(concept.factor() for concept in self.concepts))

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return 3, self.size, self.size

    def canonical(self, factors: Int[Tensor, "b k"]) -> Float[Tensor, "b v"]:
        ends = [torch.tensor(c.ends, device=factors.device) for c in self.concepts]
        return torch.cat([end[factors[:, i]] for i, end in enumerate(ends)], 1)

    def render(self, factors: Int[Tensor, "b k"], rng: torch.Generator) -> Rendered:
        """The same stream gives the same nuisances whatever the factors: pictures can be compared
        pair by pair."""
        values, *nuisances = self.details(factors, rng)
        images = self.render_values(values, *nuisances)
        if self.pixel_noise:
            noise = torch.randn(images.shape, generator=rng, device=rng.device)
            images = (images + self.pixel_noise * noise).clamp(0, 1)
        return Rendered(images, values)

    def details(
        self, factors: Int[Tensor, "b k"], rng: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Each picture's own values, its place, and its background."""
        reach = [c.spread * c.signal for c in self.concepts for _ in c.ends[0]]
        sizes = (2, 3, len(reach))
        uniform = [torch.rand(len(factors), n, generator=rng, device=rng.device) for n in sizes]
        place, light, jitter = uniform[0], uniform[1], 2 * uniform[2] - 1
        values = (
            self.canonical(factors.to(rng.device)) + torch.tensor(reach, device=rng.device) * jitter
        )
        values = values.clamp(0, 1)
        values[:, 3].clamp_(min=SMALLEST)
        background = (
            values[:, 4:] if self.background_signal else LIGHTS[0] + (LIGHTS[1] - LIGHTS[0]) * light
        )
        return values, 0.5 + self.wander / 2 * (place - 0.5), background

    def interpolate(
        self,
        here: Int[Tensor, "b k"],
        there: Int[Tensor, "b k"],
        share: Float[Tensor, "b"],
        rng: torch.Generator,
    ) -> Float[Tensor, "b 3 h w"]:
        state = rng.get_state()
        ends = [self.details(factors, rng.set_state(state)) for factors in (here, there)]
        return self.render_values(
            *(torch.lerp(a, b, share[:, None]) for a, b in zip(*ends, strict=True))
        )

    def render_values(
        self,
        values: Float[Tensor, "b v"],
        centres: Float[Tensor, "b 2"],
        background: Float[Tensor, "b 3"],
    ) -> Float[Tensor, "b 3 h w"]:
        """The exact pictures of circles with these values at these centres (x right, y down,
        fractions of the picture)."""
        step = chunk(self.size, values.device, len(values))
        if len(values) <= step:
            return self._render_values(values, centres, background)
        parts = zip(values.split(step), centres.split(step), background.split(step), strict=True)
        return torch.cat([self._render_values(*part) for part in parts])

    def _render_values(self, values: Tensor, centres: Tensor, background: Tensor) -> Tensor:
        pose = self.size * torch.cat((centres, values[:, 3:4] / 2), 1)
        cover = circles_read.cover(pose, self.size)[:, None]
        return torch.lerp(background[:, :, None, None], values[:, :3, None, None], cover)

    def read(self, images: Float[Tensor, "b 3 h w"]) -> Int[Tensor, "b k"]:
        """Fit a circle (see `circles_read`), then say for each factor on which side of its gap the
        picture lies. The middle half of the gap between the spreads of two classes belongs to
        neither."""
        circle = circles_read.fit_circles(images)
        seen = (circle.ink, circle.diameter[:, None], circle.background)
        answers = [side(c, values) for c, values in zip(self.concepts, seen, strict=False)]
        index = torch.stack([answer for answer, _ in answers], 1)
        good = torch.stack([clear for _, clear in answers], 1).all(1) & circle.clean
        if not self.background_signal:
            good &= (circle.background - sum(LIGHTS) / 2).abs().amax(1) < circles_read.OFF
        return torch.where(good[:, None], index, INVALID)


def side(concept: Concept, values: Float[Tensor, "b v"]) -> tuple[Int[Tensor, "b"], Tensor]:
    """Which class each value belongs to, and whether that is clear: outside the middle of the gap,
    and near the line through both classes, which may be overshot by as much as one signal."""
    first, second = torch.tensor(concept.ends, device=values.device)
    along = (values - first) @ (second - first) / (second - first).square().sum()
    beside = (values - first - along[:, None] * (second - first)).abs().amax(1)
    gap = (0.5 - concept.spread) / 2
    clear = ((along - 0.5).abs() > gap) & ((along - 0.5).abs() < 1.5)
    return (along > 0.5).long(), clear & (
        beside < circles_read.OFF + concept.spread * concept.signal
    )
