"""The learned tokenizer: a small convolutional encoder and decoder around a bottleneck, four pixels
to a latent cell."""

from dataclasses import dataclass, field, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from recombine.config import UsageError, config
from recombine.tokenizers.bottlenecks import VQ, Bottleneck, Squeezed
from recombine.tokenizers.tokenizer import Tokenizer, look_up, nearest

FACTOR = 4
CHUNK = 4096
"""How many pictures are encoded or decoded at once."""


@config("tokenizer/autoencoder")
class Autoencoder(Tokenizer):
    """`width` channels at half the resolution, with `fine` residual blocks, and twice as many at a
    quarter, with `coarse`; no fine ones is much cheaper on a CPU. Everything that decides the
    trained tokenizer is here: how long it is trained, and on what `data`: all compositions of the
    world, or the seen ones alone."""

    bottleneck: Bottleneck = field(default_factory=VQ)
    width: int = 64
    fine: int = 1
    coarse: int = 2
    steps: int = 3000
    batch: int = 256
    lr: float = 1e-3
    data: Literal["all", "seen"] = "all"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("width", "steps", "batch", "lr"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        if self.fine < 0 or self.coarse < 0:
            raise ValueError(f"fine {self.fine} and coarse {self.coarse} must not be negative")
        if self.width % 8:
            raise ValueError(f"width {self.width} is not a multiple of 8, which the norms need")

    @property
    def name(self) -> str:
        return self.bottleneck.name

    def with_seed(self, more: int) -> "Autoencoder":
        return replace(self, seed=self.seed + more)

    def latent_shape(self, image_shape: tuple[int, int, int]) -> tuple[int, int, int]:
        _, height, width = image_shape
        if height % FACTOR or width % FACTOR:
            raise UsageError(
                f"a learned tokenizer needs sides that are multiples of {FACTOR}, not {height}x{width}"
            )
        return self.bottleneck.channels, height // FACTOR, width // FACTOR

    def untrained(self) -> Float[Tensor, "n c"] | None:
        return self.bottleneck.codes()


class Residual(nn.Module):
    """Starts as the identity."""

    def __init__(self, width: int):
        super().__init__()
        conv = lambda: (nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, width, 3, 1, 1))  # noqa: E731
        self.body = nn.Sequential(*conv(), *conv())
        nn.init.zeros_(self.body[-1].weight)
        nn.init.zeros_(self.body[-1].bias)

    def forward(self, x: Float[Tensor, "b d h w"]) -> Float[Tensor, "b d h w"]:
        return x + self.body(x)


def last(width: int, out: int, kernel: int) -> tuple[nn.Module, ...]:
    return nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, out, kernel, 1, kernel // 2)


class AutoencoderNet(nn.Module):
    """Pictures in [-1, 1] on both sides."""

    def __init__(self, config: Autoencoder, channels: int):
        super().__init__()
        w, self.bottleneck = config.width, config.bottleneck
        fine = lambda: [Residual(w) for _ in range(config.fine)]  # noqa: E731
        coarse = lambda: [Residual(2 * w) for _ in range(config.coarse)]  # noqa: E731
        down = [
            nn.Conv2d(channels, w, 4, 2, 1),
            *(fine() or [nn.SiLU()]),
            nn.Conv2d(w, 2 * w, 2, 2),
        ]
        self.encoder = nn.Sequential(*down, *coarse(), *last(2 * w, self.bottleneck.features, 1))
        grow = [
            nn.Conv2d(2 * w, 4 * w, 1),
            nn.PixelShuffle(2),
            *fine(),
            *last(w, 4 * channels, 3),
            nn.PixelShuffle(2),
        ]
        leap = [*last(2 * w, 16 * channels, 1), nn.PixelShuffle(4)]
        up = grow if config.fine else leap
        self.decoder = nn.Sequential(
            nn.Conv2d(self.bottleneck.channels, 2 * w, 3, 1, 1), *coarse(), *up
        )
        codes = self.bottleneck.codes()
        self.codes = (
            nn.Parameter(codes, requires_grad=self.bottleneck.learned)
            if codes is not None
            else None
        )

    def forward(self, images: Float[Tensor, "b c h w"], draw: Tensor) -> Squeezed:
        """Reconstructions, and what the bottleneck charges. Channels last in memory: convolutions
        are faster so."""
        features = self.encoder(images.contiguous(memory_format=torch.channels_last))
        latents, penalty = self.bottleneck.squeeze(features, self.codes, draw)
        return Squeezed(
            self.decoder(latents.contiguous(memory_format=torch.channels_last)), penalty
        )


@dataclass(frozen=True)
class TrainedCodec:
    """A trained autoencoder as a Codec. `mean` and `std` bring each channel of the latents to mean
    0 and variance 1."""

    net: AutoencoderNet
    mean: Float[Tensor, "c"]
    std: Float[Tensor, "c"]

    @property
    def codes(self) -> Float[Tensor, "n c"] | None:
        return None if self.net.codes is None else (self.net.codes.detach() - self.mean) / self.std

    @torch.no_grad()
    def encode(self, images: Float[Tensor, "b p H W"]) -> Float[Tensor, "b c h w"]:
        parts = [raw_latents(self.net, some) for some in images.split(CHUNK)]
        if self.net.codes is None:
            return (torch.cat(parts) - self.mean[:, None, None]) / self.std[:, None, None]
        return torch.cat([look_up(nearest(z, self.net.codes), self.codes) for z in parts])

    @torch.no_grad()
    def decode(self, latents: Float[Tensor, "b c h w"]) -> Float[Tensor, "b p H W"]:
        raw = latents * self.std[:, None, None] + self.mean[:, None, None]
        return torch.cat(
            [((self.net.decoder(some) + 1) / 2).clamp(0, 1) for some in raw.split(CHUNK)]
        )


@torch.no_grad()
def raw_latents(net: AutoencoderNet, images: Float[Tensor, "b p H W"]) -> Float[Tensor, "b c h w"]:
    """Before the statistics: what the encoder gives, not yet snapped to a code."""
    return net.bottleneck.settle(net.encoder(2 * images - 1))


@torch.no_grad()
def codec_of(net: AutoencoderNet, images: Float[Tensor, "b p H W"]) -> TrainedCodec:
    """The codec of a trained network; `images` give the statistics of its latents."""
    latents = torch.cat([raw_latents(net, some) for some in images.split(CHUNK)])
    if net.codes is not None:
        latents = look_up(nearest(latents, net.codes), net.codes)
    spread = latents.std((0, 2, 3)).clamp(min=1e-6)
    return TrainedCodec(net.eval().requires_grad_(False), latents.mean((0, 2, 3)), spread)
