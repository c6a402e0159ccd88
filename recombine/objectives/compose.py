"""The composition operator, denoiser -> denoiser: score = s_b + sum_j (s_j - s_b), that is, the
background b plus what each part adds to it.

Score and denoiser are tied by score = (alpha D - x) / sigma^2 and the coefficients sum to one, so
the same sum composes denoisers, at every noise level and for every solver. The background decides:

- empty: the law with nothing in it. Parts differ from it in their own pixels only, and the sum is
  exact.
- unconditional: an average of the parts themselves (Bayes). The usual choice, and wrong for parts
  that hold nothing else.
- cluttered: parts and background also hold other things, independently. Then even the average
  nearly factorises.

What a trained network gives without a condition depends on its training."""

from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from recombine.objectives.process import Denoiser, spread


@dataclass(frozen=True)
class Composed:
    """Several denoisers as one. One part is itself, bit for bit, and no part is the background."""

    background: Denoiser
    parts: tuple[Denoiser, ...]

    def __call__(
        self, x: Float[Tensor, "b *s"], t: Float[Tensor, "b"], condition: Any
    ) -> Float[Tensor, "b *s"]:
        base = self.background(x, t, condition)
        return sum((part(x, t, condition) for part in self.parts), (1 - len(self.parts)) * base)


@dataclass(frozen=True)
class OneByOne:
    """One conditional denoiser, given one condition at a time and composed. The background is its
    own output without a condition, or that of another denoiser. All conditions of all pictures are
    evaluated in one call, or in several of at most `most` pictures."""

    inner: Denoiser
    background: Denoiser | None = None
    most: int = 1024

    def __post_init__(self) -> None:
        if self.most < 1:
            raise ValueError(f"most must be positive, not {self.most}")

    def __call__(
        self, x: Float[Tensor, "b *s"], t: Float[Tensor, "b"], condition: Any
    ) -> Float[Tensor, "b *s"]:
        base = (self.background or self.inner)(x, t, condition.null())
        picture, slot = condition.present.nonzero(as_tuple=True)
        alone = condition.rows(picture).keep(F.one_hot(slot, condition.present.shape[1]).bool())
        parts = x.new_zeros(*condition.present.shape, *x.shape[1:])
        for first in range(0, len(picture), self.most):
            some = slice(first, first + self.most)
            own = picture[some]
            parts[own, slot[some]] = self.inner(x[own], t[own], alone.rows(some))
        return parts.sum(1) + spread(1 - condition.present.sum(1, dtype=x.dtype), x) * base
