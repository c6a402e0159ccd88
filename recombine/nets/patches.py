"""Latent grid <-> tokens: each patch is a token."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor


def to_tokens(x: Float[Tensor, "b c h w"], patch: int) -> Float[Tensor, "b l p"]:
    return F.pixel_unshuffle(x, patch).flatten(2).mT


def to_grid(tokens: Float[Tensor, "b l p"], patch: int, rows: int) -> Float[Tensor, "b c h w"]:
    return F.pixel_shuffle(tokens.mT.unflatten(2, (rows, -1)), patch)
