"""How a model's expectation depends on its conditions, one condition = one factor: what a change of
each alone does, and what a change of two does together. Works on any objective that says what it
expects (`Objective.expect`).

Two numbers, each 1 where the theory of local scores holds exactly (every place depends on one
condition, so that effects neither overlap nor interact):

- sparse: the share of the squared effects that belongs to the strongest condition of its place. 1:
  no place depends on two; 1 / k: all places depend on all k alike.
- additive: 1 - the squared interactions of pairs over the squared effects. 1: the effect of a
  change does not depend on the other conditions, which is what adding scores assumes; 0:
  interactions as large as the effects themselves."""

from collections.abc import Callable
from itertools import combinations
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import UsageError
from recombine.worlds.factors import Condition
from recombine.worlds.world import World

Expect = Callable[[Condition], Float[Tensor, "b c h w"]]
"""A condition -> what the model expects of the same pictures under it."""


class Dependence(NamedTuple):
    sparse: float
    additive: float


@torch.no_grad()
def dependence(expect: Expect, world: World, factors: Int[Tensor, "b k"]) -> Dependence:
    """Of pictures that show `factors`: each factor is changed to its next value, alone and together
    with each other one. Costs 1 + k + k (k - 1) / 2 expectations a picture."""
    count = factors.shape[1]
    if count < 2:
        raise UsageError("dependence compares conditions; this world has one factor")
    base = _expected(expect, world, factors, ())
    alone = [base - _expected(expect, world, factors, (j,)) for j in range(count)]
    energy = torch.stack([e.square().sum(1) for e in alone])
    met, apart = 0.0, 0.0
    for i, j in combinations(range(count), 2):
        together = base - _expected(expect, world, factors, (i, j))
        met += float((alone[i] + alone[j] - together).square().sum())
        apart += float(energy[i].sum() + energy[j].sum())
    total = float(energy.sum())
    if total == 0:
        return Dependence(1.0, 1.0)
    return Dependence(float(energy.amax(0).sum()) / total, 1 - met / apart)


def _expected(
    expect: Expect, world: World, factors: Int[Tensor, "b k"], changed: tuple[int, ...]
) -> Tensor:
    index = factors.clone()
    for j in changed:
        index[:, j] = (index[:, j] + 1) % world.space.sizes[j]
    answer = expect(world.describe(index, world.canonical(index)))
    if answer.ndim != 4 or len(answer) != len(factors):
        raise UsageError(
            f"expect must give (pictures, channels, height, width), {len(factors)} pictures, not "
            f"{tuple(answer.shape)}; "
            "tokens (b, n, d) are places too: tokens.mT[..., None]"
        )
    return answer.float()
