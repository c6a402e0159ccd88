"""What a network's config can do: say whether a latent fits, and build the network that denoises
it."""

from abc import ABC, abstractmethod

from torch import nn

from recombine.nets.conditioning import Conditioning
from recombine.worlds.factors import FactorSpace

Shape = tuple[int, int, int]
"""Channels, height and width of a latent."""


class NetConfig(ABC):
    """A frozen dataclass."""

    @abstractmethod
    def check(self, shape: Shape) -> None:
        """UsageError if latents of this shape do not fit."""

    @abstractmethod
    def build(self, conditioning: Conditioning, shape: Shape, space: FactorSpace) -> nn.Module:
        """A network (noisy latent, time, condition) -> something of the latent's shape."""
