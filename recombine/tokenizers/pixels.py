"""The trivial tokenizer: the latent is the picture itself, centred or as it is."""

from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from recombine.config import config
from recombine.tokenizers.tokenizer import Tokenizer


@config("tokenizer/pixels")
class Pixels(Tokenizer):
    """Pictures in [0, 1] <-> latents in [-1, 1], or the same numbers where not `centred`. Nothing is
    learned, so the config is the codec."""

    name: ClassVar[str] = "pixels"
    codes: ClassVar[None] = None
    centred: bool = True

    def latent_shape(self, image_shape: tuple[int, int, int]) -> tuple[int, int, int]:
        return image_shape

    def encode(self, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        return 2 * images - 1 if self.centred else images

    def decode(self, latents: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        return ((latents + 1) / 2 if self.centred else latents).clamp(0, 1)
