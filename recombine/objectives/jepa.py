"""The auxiliary loss for a discrete model: at hidden positions, chosen blocks must also predict,
through a small predictor, what the same blocks of the moving average output when they see every
token. A continuous target inside a network that is otherwise trained on categories. Nothing outside
the network is needed. Paper A, section 6."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from recombine.config import config
from recombine.worlds.factors import Condition


@config("jepa")
class Jepa:
    """`layers` are blocks counted from 0; their losses are averaged, and `weight` multiplies the
    mean."""

    layers: tuple[int, ...] = (3, 4, 5)
    weight: float = 0.6

    def __post_init__(self) -> None:
        if not self.layers or len(set(self.layers)) < len(self.layers) or min(self.layers) < 0:
            raise ValueError(
                f"layers {list(self.layers)}: one or more blocks, counted from 0, each once"
            )
        if self.weight < 0:
            raise ValueError(f"weight must not be negative, not {self.weight}")

    def loss(
        self,
        net: nn.Module,
        states: list[Float[Tensor, "b l d"]],
        goals: list[Float[Tensor, "b l d"]],
        mask: Bool[Tensor, "b l"],
    ) -> Float[Tensor, "b"]:
        """The mean squared error over hidden positions, in units of the goal's own spread (it is
        normed per token)."""
        total = torch.zeros(len(mask), device=mask.device)
        for layer in self.layers:
            goal = F.layer_norm(goals[layer].float(), goals[layer].shape[-1:])
            error = (net.predictors[str(layer)](states[layer]).float() - goal).square().mean(-1)
            total = total + (error * mask).sum(1) / mask.sum(1).clamp(min=1)
        return self.weight * total / len(self.layers)


@torch.no_grad()
def goals(
    teacher: nn.Module, tokens: Float[Tensor, "b l p"], condition: Condition
) -> list[Float[Tensor, "b l d"]]:
    """What the teacher's blocks say when nothing is hidden; no gradient flows into it."""
    nothing = torch.zeros(tokens.shape[:2], dtype=torch.bool, device=tokens.device)
    return teacher.trace(tokens, nothing, condition)[1]
