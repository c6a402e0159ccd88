"""Conditions that enter every block of a network by an MLP of the block's own, as raw numbers,
instead of by one embedding for the whole network."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from recombine.config import UsageError
from recombine.nets.conditioning import Conditioning, Standardised
from recombine.worlds.factors import Condition, FactorSpace


class RawCondition(nn.Module):
    """The true values of all factors side by side, zero for absent ones, and zeros up to `numbers`.
    Learns nothing."""

    def __init__(self, space: FactorSpace, conditioning: Conditioning, numbers: int):
        super().__init__()
        if conditioning.mode == "quantised" or not space.dims or 0 in space.dims:
            raise UsageError("block_mlps: they take true values, which this condition has not")
        if sum(space.dims) > numbers:
            raise UsageError(f"block_mlps={numbers}: {sum(space.dims)} values do not fit")
        balanced = conditioning.embedding_scale == "balanced"
        self.units = nn.ModuleList(
            Standardised(f) if balanced else nn.Identity() for f in space.factors
        )
        self.dims, self.rest = list(space.dims), numbers - sum(space.dims)

    def forward(self, condition: Condition) -> Float[Tensor, "b n"]:
        values = condition.value.split(self.dims, dim=-1)
        parts = [
            units(value) * condition.present[:, i, None]
            for i, (units, value) in enumerate(zip(self.units, values, strict=True))
        ]
        return F.pad(torch.cat(parts, 1), (0, self.rest))


class BlockMLPs(nn.Module):
    """What one block adds to its channels: an MLP of the time's embedding, of width `time`, and one
    of the `numbers` of the condition that follow it."""

    def __init__(self, time: int, numbers: int, channels: int):
        super().__init__()
        self.sizes = [time, numbers]
        self.time, self.condition = mlp(time, channels), mlp(numbers, channels)

    def forward(self, embedded: Float[Tensor, "b d"]) -> Float[Tensor, "b c"]:
        time, condition = embedded.split(self.sizes, 1)
        return self.time(time) + self.condition(condition)


def mlp(inner: int, width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inner, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
