"""What an objective can do: build the network it trains, draw a loss's randomness, give the loss,
and draw latents from what was learned. It holds no weights; it is handed the network. Loss and
sampler face each other in one file per objective."""

from abc import ABC, abstractmethod
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recombine.nets.conditioning import Conditioning
from recombine.nets.net_config import NetConfig, Shape
from recombine.worlds.factors import Condition, FactorSpace

Codes = Float[Tensor, "n c"] | None
"""The codebook of a discrete tokenizer; None for a continuous one."""


class Objective(ABC):
    """A frozen dataclass."""

    @property
    def needs_teacher(self) -> bool:
        """Whether the loss also wants the moving average of the network, as `teacher`."""
        return False

    @abstractmethod
    def network(
        self,
        net: NetConfig,
        conditioning: Conditioning,
        shape: Shape,
        space: FactorSpace,
        codes: Codes = None,
    ) -> nn.Module:
        """The network for latents of this shape. UsageError where config, latents and objective do
        not fit."""

    @abstractmethod
    def draw(self, shape: torch.Size, rng: torch.Generator) -> Any:
        """The randomness of one loss over a batch of latents of this shape, on the generator's
        device."""

    @abstractmethod
    def loss(
        self, net: nn.Module, x: Float[Tensor, "b c h w"], condition: Condition, draw: Any
    ) -> Float[Tensor, "b"]:
        """One number per sample."""

    def readings(
        self, net: nn.Module, x: Float[Tensor, "b c h w"], condition: Condition, draw: Any
    ) -> list[dict[str, Any]]:
        """Parts of the loss that a study wants to see beside it; rows without kind and step."""
        return []

    @abstractmethod
    def expect(
        self,
        net: nn.Module,
        x: Float[Tensor, "b c h w"],
        condition: Condition,
        gone: float,
        rng: torch.Generator,
    ) -> Float[Tensor, "b c h w"]:
        """What the model expects latents to be of which a part is gone: under the noise of time
        `gone`, or with this share of their tokens hidden; 0 where it can see for itself. What is
        gone is drawn from `rng`."""

    @abstractmethod
    def sample(
        self, net: nn.Module, shape: Shape, condition: Condition, rng: torch.Generator, sampler: Any
    ) -> Float[Tensor, "b c h w"]:
        """A latent per condition; all randomness from `rng`. `sampler` is the objective's own
        kind."""
