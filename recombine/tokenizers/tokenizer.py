"""The tokenizer: how pictures become a grid of latents and come back. Its config has no weights; a
codec has them."""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from recombine.config import UsageError, find_class

KINDS = (
    "tokenizer/pixels",
    "tokenizer/autoencoder",
    "bottleneck/kl",
    "bottleneck/vq",
    "bottleneck/fsq",
)
CHUNK = 65_536
"""How many latents are compared with all codes at once."""


class Tokenizer(ABC):
    """A frozen dataclass: it is its own config."""

    @classmethod
    def from_text(cls, text: str) -> "Tokenizer":
        """A tokenizer given by name, as in `--set tokenizer=vq`: its usual settings."""
        pixels, autoencoder, *bottlenecks = (find_class(tag, text) for tag in KINDS)
        known = [pixels(), *(autoencoder(bottleneck()) for bottleneck in bottlenecks)]
        named = {tokenizer.name: tokenizer for tokenizer in known if isinstance(tokenizer, cls)}
        if text not in named:
            raise UsageError(f"{text!r} is not one of {', '.join(named)}")
        return named[text]

    @property
    @abstractmethod
    def name(self) -> str:
        """The short word for this kind of tokenizer."""

    @abstractmethod
    def latent_shape(self, image_shape: tuple[int, int, int]) -> tuple[int, int, int]:
        """Channels, height and width of the latent of such a picture; UsageError where the picture
        does not fit."""

    def with_seed(self, more: int) -> "Tokenizer":
        """The same with other randomness: its seed is moved. What is not learned has none."""
        return self

    def untrained(self) -> Float[Tensor, "n c"] | None:
        """As many codes as there will be, one per row; None where latents are not from a
        codebook."""
        return None


@runtime_checkable
class Codec(Protocol):
    """A tokenizer ready for use. `codes` are the only latents that `encode` gives, one per row;
    None = any latent."""

    @property
    def codes(self) -> Float[Tensor, "n c"] | None: ...

    def encode(self, images: Float[Tensor, "b p H W"]) -> Float[Tensor, "b c h w"]:
        """Latents with mean 0 and variance 1 per channel over the training pictures."""

    def decode(self, latents: Float[Tensor, "b c h w"]) -> Float[Tensor, "b p H W"]:
        """Pictures in [0, 1]."""


@torch.no_grad()
def nearest(latents: Float[Tensor, "b c h w"], codes: Float[Tensor, "n c"]) -> Int[Tensor, "b h w"]:
    """The row of `codes` that lies nearest to each latent. Differences are taken one by one, not
    through a matrix product, so a latent that IS a code is at distance zero from it and always
    found again."""
    b, _, h, w = latents.shape
    points = latents.movedim(1, -1).flatten(0, 2).to(codes.dtype).split(CHUNK)
    away = lambda some: torch.cdist(some, codes, compute_mode="donot_use_mm_for_euclid_dist")  # noqa: E731
    return torch.cat([away(some).argmin(1) for some in points]).view(b, h, w)


def look_up(index: Int[Tensor, "b h w"], codes: Float[Tensor, "n c"]) -> Float[Tensor, "b c h w"]:
    """The latents that these rows of `codes` stand for."""
    return codes[index].movedim(-1, 1)
