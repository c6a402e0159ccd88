"""The trivial tokenizer: the latent is the picture itself, centred."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Pixels:
    """Pictures in [0, 1] <-> latents in [-1, 1]."""

    def latent_shape(self, image_shape: tuple[int, int, int]) -> tuple[int, int, int]:
        return image_shape

    def encode(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        return 2 * images - 1

    def decode(self, latents: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        return ((latents + 1) / 2).clamp(0, 1)
