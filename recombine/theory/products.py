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
size, no sampling, and the end of training is just t = inf.

Where labels are left out in training, a factor has a third state: nothing is known of x_i, and in
its place stands sqrt(prior_i) times an indicator of that, as a learned null embedding would. The
products are then over all 3^n choices of 1, x_i or that indicator; the target stays x. Where a zero
stands in place of a label, it is taken for the first class."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

NOTHING, NARROW = 1e-14, 0.01
"""Eigenvalues below this share of the largest are zero: nothing in the pictures says anything of
them. Pictures that differ by less than `NARROW`, and yet differ, would be taken for pictures that
do not."""

Dropped = Literal["null", "together", "zero"]
"""How a label is left out, as in `Conditioning`."""


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

    def products(
        self, missing: Sequence[bool], dropped: Dropped
    ) -> tuple[Float[Tensor, "n 3 3"], Float[Tensor, "n 2 3"]]:
        """E[g g'] of each factor, g = (1, x, that x is missing), where those of `missing` are; and
        E[g], E[g x]."""
        m, gone = self.moments, torch.tensor(missing)[:, None, None]
        powers = torch.arange(2)
        given, aim = torch.zeros(len(m), 3, 3).double(), torch.zeros(len(m), 2, 3).double()
        given[:, :2, :2] = aim[..., :2] = m[:, powers[:, None] + powers]
        instead = torch.tensor((1.0, -1.0, 0.0) if dropped == "zero" else (1.0, 0.0, 1.0)).double()
        left_out = m[:, :2, None] * instead
        return torch.where(gone, instead.outer(instead), given), torch.where(gone, left_out, aim)


@dataclass(frozen=True)
class Products:
    """The model, trained on `corners`. `missing`: how often a label is left out; `dropped`: to a null,
    each by itself; `together`, all of a picture at once; or to `zero`, each by itself."""

    corners: tuple[Corner, ...]
    prior: tuple[float, ...]
    missing: float = 0.0
    dropped: Dropped = "null"

    def __post_init__(self) -> None:
        if not 0 <= self.missing < 1:
            raise ValueError(f"missing={self.missing}: from 0 to below 1")
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
        given = torch.stack([torch.ones_like(centre), centre, torch.zeros_like(centre)], 1)
        looked = given[torch.arange(len(centre)), sets].prod(1) * cheap
        known = values > NOTHING * values.max()
        rate = torch.where(known, values, 1.0)
        learned = (
            -torch.expm1(-rate * torch.tensor(times, dtype=torch.float64)[:, None]) / rate * known
        )
        return (learned * (looked @ vectors)) @ (vectors.T @ aim)

    def _sets(self) -> tuple[Int[Tensor, "s n"], Float[Tensor, "s"]]:
        """All products, as a state for each factor (0: not in it, 1: its value, 2: that it is
        missing), and the square roots of their k."""
        states = (0, 1, 2) if self.missing else (0, 1)
        sets = torch.tensor(list(itertools.product(states, repeat=len(self.prior))))
        prior = torch.tensor(self.prior, dtype=torch.float64)
        return sets, (prior ** (sets > 0)).prod(1).sqrt()

    def _patterns(self) -> list[tuple[tuple[bool, ...], float]]:
        """Which labels are missing, and how often."""
        n, p = len(self.prior), self.missing
        if self.dropped == "together" or not p:
            every = [((False,) * n, 1 - p), ((True,) * n, p)]
        else:
            masks = itertools.product((False, True), repeat=n)
            every = [(m, p ** sum(m) * (1 - p) ** (n - sum(m))) for m in masks]
        return [(mask, share) for mask, share in every if share]

    def _solved(
        self, sets: Tensor, cheap: Tensor
    ) -> tuple[Float[Tensor, "s"], Float[Tensor, "s s"], Float[Tensor, "s n"]]:
        """Eigenvalues and eigenvectors of E[phi phi'], and E[phi x']."""
        factors, single = torch.arange(sets.shape[1]), torch.eye(sets.shape[1]).long()
        both, aim = torch.zeros(len(sets), len(sets)), torch.zeros(sets.shape)
        for corner in self.corners:
            for missing, share in self._patterns():
                squares, aims = corner.products(missing, self.dropped)
                both = both + share * squares[factors, sets[:, None], sets].prod(-1)
                aim = aim + share * aims[factors, single, sets[:, None]].prod(-1)
        both, aim = (
            both * cheap[:, None] * cheap / len(self.corners),
            aim * cheap[:, None] / len(self.corners),
        )
        return *torch.linalg.eigh(both), aim
