"""Who composes, exactly: gradient flow on all products of conditions.

A condition has a number for each factor, whose two classes are -1 and 1; nothing is between them
but within-class jitter. The model answers with the factors themselves,

    f(x) = sum over sets S of factors of  w_S sqrt(k_S) prod_{i in S} x_i,
    k_S = prod_{i in S} prior_i,

one vector w_S for each set, so it may give every combination a meaning of its own. `prior` says how
cheap a product is: near 0 sums come first; at 1 the two classes of a factor share nothing, as if
each had a model to itself. It is trained from w = 0 by gradient flow on L = 1/2 E|f(x) - x|^2,
where training pictures are corners (compositions), all equally often, each spread uniformly around
its centre. Everything is a linear equation in 2^n unknowns, solved by its eigenvectors: no step
size, no sampling, and the end of training is just t = inf."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

NOTHING, NARROW = 1e-14, 0.01
"""Eigenvalues below this share of the largest are zero: nothing in the pictures says anything of
them. Pictures that differ by less than `NARROW`, and yet differ, would be taken for pictures that
do not."""


@dataclass(frozen=True)
class Corner:
    """A composition, and the half-width of its pictures around their centre in each factor."""

    at: tuple[int, ...]
    spread: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.at) != len(self.spread) or not set(self.at) <= {0, 1}:
            raise ValueError(
                f"at={self.at}, spread={self.spread}: a class, 0 or 1, and a width for each factor"
            )
        if not all(s == 0 or NARROW <= s < math.inf for s in self.spread):
            raise ValueError(f"spread={self.spread}: widths are finite, and 0 or at least {NARROW}")

    @property
    def moments(self) -> Float[Tensor, "n 3"]:
        """E[x^p] of each factor, p = 0, 1, 2."""
        centre = 2.0 * torch.tensor(self.at, dtype=torch.float64) - 1
        width = torch.tensor(self.spread, dtype=torch.float64)
        return torch.stack([torch.ones_like(centre), centre, centre**2 + width**2 / 3], 1)


@dataclass(frozen=True)
class Products:
    """The model, trained on `corners`."""

    corners: tuple[Corner, ...]
    prior: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.corners or any(len(c.at) != len(self.prior) for c in self.corners):
            raise ValueError(
                f"corners: one or more, with {len(self.prior)} factors each, as the prior has"
            )
        if not all(0 < p <= 1 for p in self.prior):
            raise ValueError(f"prior={self.prior}: above 0, at most 1")

    def answers(self, composition: Sequence[int], times: Sequence[float]) -> Float[Tensor, "t n"]:
        """The outputs for the centre of a composition, after each of `times`."""
        sets, cheap = self._sets()
        values, vectors, aim = self._solved(sets, cheap)
        centre = 2.0 * torch.tensor(composition, dtype=torch.float64) - 1
        looked = (centre**sets).prod(1) * cheap
        known = values > NOTHING * values.max()
        rate = torch.where(known, values, 1.0)
        learned = (
            -torch.expm1(-rate * torch.tensor(times, dtype=torch.float64)[:, None]) / rate * known
        )
        return (learned * (looked @ vectors)) @ (vectors.T @ aim)

    def _sets(self) -> tuple[Float[Tensor, "s n"], Float[Tensor, "s"]]:
        """All sets of factors, as exponents, and the square roots of their k."""
        sets = torch.tensor(
            list(itertools.product((0, 1), repeat=len(self.prior))), dtype=torch.float64
        )
        return sets, (torch.tensor(self.prior, dtype=torch.float64) ** sets).prod(1).sqrt()

    def _solved(
        self, sets: Tensor, cheap: Tensor
    ) -> tuple[Float[Tensor, "s"], Float[Tensor, "s s"], Float[Tensor, "s n"]]:
        """Eigenvalues and eigenvectors of E[phi phi'], and E[phi x']."""
        factors, powers, single = (
            torch.arange(sets.shape[1]),
            sets.long(),
            torch.eye(sets.shape[1]).long(),
        )
        both, aim = torch.zeros(len(sets), len(sets)), torch.zeros_like(sets)
        for corner in self.corners:
            moments = corner.moments
            both = both + moments[factors, powers[:, None] + powers].prod(-1)
            aim = aim + moments[factors, powers[:, None] + single].prod(-1)
        both, aim = (
            both * cheap[:, None] * cheap / len(self.corners),
            aim * cheap[:, None] / len(self.corners),
        )
        return *torch.linalg.eigh(both), aim
