"""Latent grid <-> tokens: each patch is a token."""

from einops import rearrange
from jaxtyping import Float
from torch import Tensor


def to_tokens(x: Float[Tensor, "b c h w"], patch: int) -> Float[Tensor, "b l p"]:
    return rearrange(x, "b c (h p) (w q) -> b (h w) (c p q)", p=patch, q=patch)


def to_grid(tokens: Float[Tensor, "b l p"], patch: int, rows: int) -> Float[Tensor, "b c h w"]:
    return rearrange(tokens, "b (h w) (c p q) -> b c (h p) (w q)", h=rows, p=patch, q=patch)
