"""Dropout without a random state. What is dropped is a hash of a key of each picture and of the
place in it: a resumed or repeated run drops the same, also where an update is replayed as a CUDA
graph."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

WEYL, FIRST, SECOND = -1640531527, 2146121005, -2073254261
"""Odd numbers whose multiples spread over all 32 bits."""


def key_of(x: Float[Tensor, "b *s"]) -> Int[Tensor, "b"]:
    """A number for each picture that changes with any of its pixels. A noisy picture's is as random
    as its noise."""
    bits = x.detach().float().flatten(1).contiguous().view(torch.int32)
    place = torch.arange(bits.shape[1], device=x.device, dtype=torch.int32)
    return mixed(bits + WEYL * place).sum(1, dtype=torch.int32)


def mixed(x: Int[Tensor, "*s"]) -> Int[Tensor, "*s"]:
    """32 bits -> 32 bits, of which each depends on all."""
    for shift, factor in ((16, FIRST), (15, SECOND)):
        x = (x ^ ((x >> shift) & ((1 << (32 - shift)) - 1))) * factor
    return x ^ ((x >> 16) & 0xFFFF)


def kept(shape: torch.Size, key: Int[Tensor, "b"], rate: float) -> Bool[Tensor, "b *s"]:
    """Which values stay, a share of 1 - rate of them."""
    count = shape[1:].numel()
    place = torch.arange(count, device=key.device, dtype=torch.int32)
    drawn = mixed(mixed(WEYL * place)[None] + mixed(key)[:, None])
    return ((drawn & 0x7FFFFFFF) >= int(rate * 2**31)).view(shape)


class KeyedDropout(nn.Module):
    """Sets a share `rate` of values to zero and scales the others up, in training only. Layers of
    one network share a key and need a `layer` of their own."""

    def __init__(self, rate: float, layer: int = 0):
        super().__init__()
        self.rate, self.layer = rate, layer

    def forward(
        self, x: Float[Tensor, "b *s"], key: Int[Tensor, "b"] | None
    ) -> Float[Tensor, "b *s"]:
        if key is None or not self.rate or not self.training:
            return x
        return x * kept(x.shape, key + self.layer, self.rate) / (1 - self.rate)
