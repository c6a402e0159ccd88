"""The composition operator, denoiser -> denoiser: score = s_b + sum_i (s_i - s_b), that is, the background b plus what
each part adds to it.

Score and denoiser are tied by score = (alpha D - x) / sigma^2 and the coefficients sum to one, so the same sum composes
denoisers, at every noise level. Everything hangs on the background:
  empty       the law with nothing in it: parts differ from it in their own pixels only, and the sum is exact;
  Bayes       the unconditional law, an average of the parts themselves: the usual choice, and wrong for parts that
              hold nothing else;
  cluttered   parts and background also hold other things, independently: then even the average nearly factorises."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from recombine.objectives.process import Denoiser, spread
from recombine.theory.mixtures import Block, Law, Mixture, points, unconditional
from recombine.worlds.factors import Condition


@dataclass(frozen=True)
class Composed:
    """Several denoisers as one."""

    background: Denoiser
    parts: tuple[Denoiser, ...]

    def __call__(self, x: Float[Tensor, "b *s"], t: Float[Tensor, "b"], condition: Any) -> Float[Tensor, "b *s"]:
        base = self.background(x, t, condition)
        return base + sum(part(x, t, condition) - base for part in self.parts)


@dataclass(frozen=True)
class OneByOne:
    """One conditional denoiser, asked for one condition at a time and composed. The background is its own answer to no
    condition (Bayes, for a model trained on unlabelled parts) unless another denoiser is given."""

    inner: Denoiser
    background: Denoiser | None = None

    def __call__(self, x: Float[Tensor, "b *s"], t: Float[Tensor, "b"], condition: Condition) -> Float[Tensor, "b *s"]:
        base = (self.background or self.inner)(x, t, condition.null())
        total = base
        for j in range(condition.present.shape[1]):
            alone = condition.keep(only(j, condition))
            asked = spread(alone.present[:, j].to(x.dtype), x)
            total = total + asked * (self.inner(x, t, alone) - base)
        return total


def only(j: int, condition: Condition) -> Bool[Tensor, "b k"]:
    mask = torch.zeros_like(condition.present)
    mask[:, j] = True
    return mask


@dataclass(frozen=True)
class Lamps:
    """A row of lamps, the smallest world with a right answer: part i has lamp i on. Other lamps are off or, with
    `clutter`, on by chance, each by itself. A lamp that is on reads 1, one that is off 0, give or take `width`."""

    count: int = 8
    width: float = 0.05
    clutter: float = 0.0

    def __post_init__(self) -> None:
        if self.count < 2 or self.width <= 0 or not 0 <= self.clutter < 1:
            raise ValueError("lamps need count >= 2, width > 0 and 0 <= clutter < 1")

    def with_on(self, lit: tuple[int, ...]) -> Law:
        """The lamps `lit` are on for certain: () is the background, (i,) part i, more of them the right composition."""
        on = torch.tensor([float(i in lit) for i in range(self.count)], dtype=torch.float64)
        if not self.clutter:
            return unconditional(points(on[None], width=self.width))
        law = tuple(Block((i,), self._lamp(i in lit)) for i in range(self.count))
        return lambda asked: law

    def average(self) -> Law:
        """The parts, each as likely as any other: what a model of the data without labels learns."""
        states = torch.cartesian_prod(*[torch.arange(2)] * self.count).double()
        on = states.sum(1)
        if not self.clutter:
            return unconditional(points(torch.eye(self.count, dtype=torch.float64), width=self.width))
        log = on.log() + on * math.log(self.clutter) + (self.count - on) * math.log1p(-self.clutter)
        return unconditional(points(states[1:], log[1:], self.width))

    def _lamp(self, certain: bool) -> Mixture:
        chances = torch.tensor([0.0, 1.0] if certain else [1 - self.clutter, self.clutter], dtype=torch.float64)
        return points(torch.tensor([[0.0], [1.0]], dtype=torch.float64), chances.log(), self.width)
