"""The auxiliary loss for a discrete model: at hidden positions, chosen blocks must also predict,
through a small predictor, what the same blocks of the moving average output when they see every
token. A continuous target inside a network that is otherwise trained on categories. Nothing outside
the network is needed. Paper A, section 6."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from recombine.config import config
from recombine.worlds.factors import Condition


@config("jepa")
class Jepa:
    """`layers` are blocks counted from 0; their losses are averaged, and `weight` multiplies the
    mean. `squares`: predicted are the hidden tokens inside so many random squares of the grid, each
    about a third of its side wide or more; 0 = all hidden tokens."""

    layers: tuple[int, ...] = (3, 4, 5)
    weight: float = 0.6
    squares: int = 0

    def __post_init__(self) -> None:
        if not self.layers or len(set(self.layers)) < len(self.layers) or min(self.layers) < 0:
            raise ValueError(
                f"layers {list(self.layers)}: one or more blocks, counted from 0, each once"
            )
        for name in ("weight", "squares"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, not {getattr(self, name)}")

    def draw(self, batch: int, grid: tuple[int, int], rng: torch.Generator) -> Bool[Tensor, "b l"]:
        """Where it may predict, for each picture."""
        if not self.squares:
            return torch.ones(batch, math.prod(grid), dtype=torch.bool, device=rng.device)
        inside = torch.zeros(batch, *grid, dtype=torch.bool, device=rng.device)
        rows, columns = (torch.arange(n, device=rng.device) for n in grid)
        for _ in range(self.squares):
            share, top, left = torch.rand(3, batch, 1, generator=rng, device=rng.device)
            tall, wide = ((n * (1 + share) / 3).ceil() for n in grid)
            first = (top * (grid[0] - tall + 1)).floor(), (left * (grid[1] - wide + 1)).floor()
            high = (rows >= first[0]) & (rows < first[0] + tall)
            across = (columns >= first[1]) & (columns < first[1] + wide)
            inside |= high[:, :, None] & across[:, None, :]
        return inside.flatten(1)

    def loss(
        self,
        net: nn.Module,
        states: list[Float[Tensor, "b l d"]],
        goals: list[Float[Tensor, "b l d"]],
        mask: Bool[Tensor, "b l"],
    ) -> Float[Tensor, "b"]:
        """The mean over layers of their errors at the positions of `mask`."""
        total = torch.zeros(len(mask), device=mask.device)
        for layer in self.layers:
            total = total + self.error(net, layer, states[layer], goals[layer], mask)
        return self.weight * total / len(self.layers)

    def error(
        self,
        net: nn.Module,
        layer: int,
        state: Float[Tensor, "b l d"],
        goal: Float[Tensor, "b l d"],
        mask: Bool[Tensor, "b l"],
    ) -> Float[Tensor, "b"]:
        """The mean squared error of one layer, in units of the goal's own spread (it is normed per
        token)."""
        off = net.predictors[str(layer)](state).float() - normed(goal)
        return (off.square().mean(-1) * mask).sum(1) / mask.sum(1).clamp(min=1)

    def readings(
        self,
        net: nn.Module,
        states: list[Float[Tensor, "b l d"]],
        goals: list[Float[Tensor, "b l d"]],
        mask: Bool[Tensor, "b l"],
    ) -> list[dict[str, Any]]:
        """Of each layer the error, and how much what it predicts differs from picture to picture: 0
        where all pictures have the same, as after a collapse."""
        return [
            {
                "layer": i,
                "error": self.error(net, i, states[i], goals[i], mask).mean().item(),
                "spread": normed(goals[i]).var(0, correction=0).mean().item(),
            }
            for i in self.layers
        ]


def normed(goal: Float[Tensor, "b l d"]) -> Float[Tensor, "b l d"]:
    return F.layer_norm(goal.float(), goal.shape[-1:])


@torch.no_grad()
def goals(
    teacher: nn.Module, tokens: Float[Tensor, "b l p"], condition: Condition
) -> list[Float[Tensor, "b l d"]]:
    """What the teacher's blocks say when nothing is hidden; no gradient flows into it."""
    nothing = torch.zeros(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
    return teacher.trace(tokens, nothing, condition)[1]
