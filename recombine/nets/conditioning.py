"""How a condition enters a network: one vector per factor, summed, or one token per factor."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recombine.config import config
from recombine.worlds.factors import Condition, Factor, FactorSpace


@config("conditioning")
class Conditioning:
    """`mode`: `continuous` embeds true values with an MLP and factors without them by index;
    `quantised` embeds every factor by its class index.
    `dropout`: how often training drops a factor. `dropped`: to a learned `null`, each factor of
    each picture by itself; `together`, the same for all factors of a picture at once, as guided
    models are trained; to `zero`, for a whole batch at once; or to `both`, a null in some pictures and
    zero in some batches, as in public code of paper A. For a class, zero is not "unknown" but the
    first class, so this gives the model a false label.
    `embedding_scale`: `balanced` embeds all factors at the same scale (values in units of the
    distance between classes, tables that start as large); `raw` takes values as they are and
    small tables, as DiT code commonly does. A factor embedded at a smaller scale is at first
    explained by the others, and that entanglement stays.
    `enters`: `adaln` modulates all norms by the sum over factors; `tokens` puts one token per
    factor before those of the picture, to which a transformer attends as to any other."""

    mode: Literal["continuous", "quantised"] = "continuous"
    dropout: float = 0.0
    embedding_scale: Literal["balanced", "raw"] = "balanced"
    dropped: Literal["null", "together", "zero", "both"] = "null"
    enters: Literal["adaln", "tokens"] = "adaln"

    def __post_init__(self) -> None:
        if not 0 <= self.dropout <= 1:
            raise ValueError(f"dropout {self.dropout} is not between 0 and 1")

    def drop(self, condition: Condition, space: FactorSpace, rng: torch.Generator) -> Condition:
        """The condition as training gives it, some factors dropped."""
        if not self.dropout:
            return condition
        batch, factors = condition.present.shape
        shapes = {"null": (batch, factors), "together": (batch, 1), "zero": (1, factors)}
        for how in ("null", "zero") if self.dropped == "both" else (self.dropped,):
            keep = torch.rand(shapes[how], generator=rng, device=rng.device) >= self.dropout
            mask = keep.expand(batch, factors)
            zero = how == "zero"
            condition = condition.zeroed(mask, space.dims) if zero else condition.keep(mask)
        return condition

    def without(self, factors: int) -> float:
        """The share of training pictures from which all factors are dropped."""
        if self.dropped == "zero":
            return 0.0
        return self.dropout if self.dropped == "together" else self.dropout**factors


TABLE_SCALE = {"balanced": 0.5, "raw": 0.02}


class Standardised(nn.Module):
    """A factor's numbers in its own units: (value - centre) / unit."""

    def __init__(self, factor: Factor):
        super().__init__()
        self.register_buffer(
            "centre", torch.tensor(factor.centre or (0.0,) * factor.dim), persistent=False
        )
        self.register_buffer(
            "unit", torch.tensor(factor.unit or (1.0,) * factor.dim), persistent=False
        )

    def forward(self, value: Float[Tensor, "b v"]) -> Float[Tensor, "b v"]:
        return (value - self.centre) / self.unit


class FactorEmbedding(nn.Module):
    """One factor -> one vector: a table of its values, or an MLP of its true numbers; a learned
    null where it is absent."""

    def __init__(self, factor: Factor, conditioning: Conditioning, width: int):
        super().__init__()
        scale = TABLE_SCALE[conditioning.embedding_scale]
        self.continuous = conditioning.mode != "quantised" and factor.dim > 0
        if self.continuous:
            enter = (
                Standardised(factor)
                if conditioning.embedding_scale == "balanced"
                else nn.Identity()
            )
            self.value = nn.Sequential(
                enter, nn.Linear(factor.dim, width), nn.GELU(), nn.Linear(width, width)
            )
        else:
            self.table = nn.Embedding(len(factor.values), width)
            nn.init.normal_(self.table.weight, std=scale)
        self.null = nn.Parameter(scale * torch.randn(width))

    def forward(self, index: Tensor, value: Tensor, present: Tensor) -> Float[Tensor, "b d"]:
        given = self.value(value) if self.continuous else self.table(index)
        return torch.where(present[:, None], given, self.null.to(given.dtype))


class ConditionEmbedding(nn.Module):
    """All factors of a space: one vector each (`parts`), or their sum."""

    def __init__(self, space: FactorSpace, conditioning: Conditioning, width: int):
        super().__init__()
        self.dims = list(space.dims)
        self.factors = nn.ModuleList(FactorEmbedding(f, conditioning, width) for f in space.factors)

    def parts(self, condition: Condition) -> list[Float[Tensor, "b d"]]:
        values = condition.value.split(self.dims, dim=-1)
        return [
            embed(condition.index[:, i], value, condition.present[:, i])
            for i, (embed, value) in enumerate(zip(self.factors, values, strict=True))
        ]

    def forward(self, condition: Condition) -> Float[Tensor, "b d"]:
        return torch.stack(self.parts(condition)).sum(0)

    def tokens(self, condition: Condition) -> Float[Tensor, "b k d"]:
        return torch.stack(self.parts(condition), 1)
