"""The networks behind the heads: from the hidden vector of a token to what describes its
distribution. What that means as a likelihood, and how it is drawn from, is decided in
`objectives.heads`."""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from recombine.nets.dit import TIME_WAVES
from recombine.nets.transformer import modulated, waves


class Last(nn.Module):
    """A last layer: starts at zero, and answers in the precision of its weights (float32) also
    under autocast."""

    def __init__(self, width: int, out: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(out, width))
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x: Float[Tensor, "*s d"]) -> Float[Tensor, "*s out"]:
        with torch.autocast(x.device.type, enabled=False):
            return F.linear(x.to(self.weight.dtype), self.weight, self.bias)


class CodeNet(nn.Module):
    """Logits over the rows of a codebook. The codebook belongs to the tokenizer: it is kept here
    but not saved."""

    def __init__(self, width: int, codes: Float[Tensor, "n c"]):
        super().__init__()
        self.register_buffer("codes", codes.detach().clone(), persistent=False)
        self.leave = Last(width, len(codes))

    def forward(self, hidden: Float[Tensor, "*s d"]) -> Float[Tensor, "*s n"]:
        return self.leave(hidden)

    def nearest(self, token: Float[Tensor, "*s c"]) -> Int[Tensor, "*s"]:
        """The index of the row closest to each token; its own, for a token that is a row. In
        float64, which neither autocast nor TF32 touches: rounded products would mistake close rows
        for one another."""
        return nearest_code(token, self.codes)


def nearest_code(token: Float[Tensor, "*s c"], codes: Float[Tensor, "n c"]) -> Int[Tensor, "*s"]:
    token, codes = token.double(), codes.double()
    return (codes.square().sum(1) - 2 * token @ codes.T).argmin(-1)


class Gaussians(NamedTuple):
    """A mixture of m diagonal Gaussians for each token."""

    log_weight: Float[Tensor, "*s m"]
    mean: Float[Tensor, "*s m c"]
    log_scale: Float[Tensor, "*s m c"]


class MixtureNet(nn.Module):
    """The parameters of a Gaussian mixture, scales bounded smoothly to [floor, cap]. Untrained,
    every token has the same mixture, of mean 0 and variance 1 in each channel. Its means differ,
    because components that start equal stay equal."""

    SPREAD = 0.5
    """The standard deviation of the untrained means across components."""

    def __init__(
        self,
        width: int,
        dim: int,
        components: int,
        floor: float,
        cap: float,
        codes: Float[Tensor, "n c"] | None = None,
    ):
        super().__init__()
        held = codes.detach().clone() if codes is not None else None
        self.register_buffer("codes", held, persistent=False)
        self.sizes = [components, components * dim, components * dim]
        self.components, self.low, self.range = components, math.log(floor), math.log(cap / floor)
        self.leave = Last(width, sum(self.sizes))
        spread = self.SPREAD if components > 1 else 0.0
        share = (0.5 * math.log(1 - spread**2) - self.low) / self.range
        self.start = math.log(share / (1 - share))
        mean = torch.randn(components, dim)
        mean = spread * (mean - mean.mean(0)) / mean.std(0, correction=0).clamp(min=1e-6)
        with torch.no_grad():
            self.leave.bias[components : components + mean.numel()] = mean.flatten()

    def forward(self, hidden: Float[Tensor, "*s d"]) -> Gaussians:
        weight, mean, raw = self.leave(hidden).split(self.sizes, dim=-1)
        log_scale = self.low + self.range * torch.sigmoid(raw + self.start)
        apart = (self.components, -1)
        return Gaussians(
            weight.log_softmax(-1), mean.unflatten(-1, apart), log_scale.unflatten(-1, apart)
        )


class DenoisingNet(nn.Module):
    """(noisy token, time, hidden) -> something of the token's shape: an MLP of residual blocks,
    each entered through a norm modulated by time and hidden vector and left through a gate. Starts
    at exactly zero."""

    def __init__(self, hidden: int, dim: int, width: int, depth: int):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(TIME_WAVES, width), nn.SiLU(), nn.Linear(width, width))
        self.hidden = nn.Linear(hidden, width)
        self.enter = nn.Linear(dim, width)
        self.modulation = nn.Linear(width, (3 * depth + 2) * width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
            for _ in range(depth)
        )
        self.leave = Last(width, dim)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(
        self, x: Float[Tensor, "n c"], t: Float[Tensor, "n"], hidden: Float[Tensor, "n d"]
    ) -> Float[Tensor, "n c"]:
        c = self.time(waves(1000 * t, TIME_WAVES)) + self.hidden(hidden)
        *each, shift, scale = self.modulation(F.silu(c))[:, None].split(self.width, dim=-1)
        x = self.enter(x)[:, None]  # every token is a sequence of its own
        for i, block in enumerate(self.blocks):
            x = x + each[3 * i + 2] * block(modulated(x, *each[3 * i : 3 * i + 2]))
        return self.leave(modulated(x, shift, scale))[:, 0]
