"""A row of lamps: the smallest world in which composing scores has a right answer. Every law is a
mixture of Gaussians, so part, background and composition have exact denoisers, and
`objectives.compose` is put to the test."""

import math
from dataclasses import dataclass

import torch

from recombine.theory.mixtures import Block, Law, Mixture, points, unconditional


@dataclass(frozen=True)
class Lamps:
    """Part i has lamp i on. Other lamps are off or, with `clutter`, on by chance, each by itself. A
    lamp that is on reads 1, one that is off 0, give or take `width`."""

    count: int = 8
    width: float = 0.05
    clutter: float = 0.0

    def __post_init__(self) -> None:
        if self.count < 2 or self.width <= 0 or not 0 <= self.clutter < 1:
            raise ValueError("lamps need count >= 2, width > 0 and 0 <= clutter < 1")

    def with_on(self, lit: tuple[int, ...]) -> Law:
        """The lamps `lit` are on for certain: () is the background, (i,) part i, more of them the
        right composition."""
        on = torch.tensor([float(i in lit) for i in range(self.count)], dtype=torch.float64)
        if not self.clutter:
            return unconditional(points(on[None], width=self.width))
        law = tuple(Block((i,), self._lamp(i in lit)) for i in range(self.count))
        return lambda prompt: law

    def average(self) -> Law:
        """The parts, each as likely as any other: what a model of the data without labels
        learns."""
        states = torch.cartesian_prod(*[torch.arange(2)] * self.count).double()
        on = states.sum(1)
        if not self.clutter:
            return unconditional(
                points(torch.eye(self.count, dtype=torch.float64), width=self.width)
            )
        log = on.log() + on * math.log(self.clutter) + (self.count - on) * math.log1p(-self.clutter)
        return unconditional(points(states[1:], log[1:], self.width))

    def _lamp(self, certain: bool) -> Mixture:
        chances = torch.tensor(
            [0.0, 1.0] if certain else [1 - self.clutter, self.clutter], dtype=torch.float64
        )
        return points(torch.tensor([[0.0], [1.0]], dtype=torch.float64), chances.log(), self.width)
