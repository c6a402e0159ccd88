"""The transformer that all families share: tokens in, tokens out, modulated by one vector
(adaLN-zero) or conditioned by tokens. What its outputs mean is decided elsewhere. Submodules are
named so that activations can be captured from outside with hooks."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from recombine.config import config


@config("net/transformer")
class TransformerConfig:
    depth: int = 7
    width: int = 448
    heads: int = 7
    mlp_ratio: int = 4
    qk_norm: bool = False
    causal: bool = False

    def __post_init__(self) -> None:
        for name in ("depth", "width", "heads", "mlp_ratio"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        if self.width % self.heads:
            raise ValueError(f"width {self.width} is not a multiple of heads {self.heads}")
        if self.width % 4:
            raise ValueError(
                f"width {self.width} is not a multiple of 4, which the position code needs"
            )


class Attention(nn.Module):
    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.heads, self.causal = config.heads, config.causal
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        head = config.width // config.heads
        self.q_norm = nn.RMSNorm(head, eps=1e-6) if config.qk_norm else nn.Identity()
        self.k_norm = nn.RMSNorm(head, eps=1e-6) if config.qk_norm else nn.Identity()

    def forward(self, x: Float[Tensor, "b l d"]) -> Float[Tensor, "b l d"]:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind()
        q, k = self.q_norm(q).to(v.dtype), self.k_norm(k).to(v.dtype)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(mixed.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and MLP, each entered through a modulated norm and left through a gate.
    `modulation` holds the six vectors."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.attention = Attention(config)
        self.mlp = mlp(config.width, config.mlp_ratio)

    def forward(
        self, x: Float[Tensor, "b l d"], modulation: Float[Tensor, "b six_d"]
    ) -> Float[Tensor, "b l d"]:
        shift1, scale1, gate1, shift2, scale2, gate2 = modulation[:, None].chunk(6, dim=-1)
        x = x + gate1 * self.attention(modulated(x, shift1, scale1))
        return x + gate2 * self.mlp(modulated(x, shift2, scale2))


def mlp(width: int, ratio: int) -> nn.Sequential:
    """Of a block: to `ratio` times the width and back."""
    return nn.Sequential(
        nn.Linear(width, ratio * width),
        nn.GELU(approximate="tanh"),
        nn.Linear(ratio * width, width),
    )


def modulated(
    x: Float[Tensor, "b l d"], shift: Float[Tensor, "b #l d"], scale: Float[Tensor, "b #l d"]
) -> Tensor:
    return F.layer_norm(x, x.shape[-1:]).to(x.dtype) * (1 + scale) + shift


class Transformer(nn.Module):
    """`depth` blocks over a grid of tokens. One matrix makes the modulation of all blocks at once;
    it starts at zero, so the untrained network is the identity up to its last norm. `prefix`: how
    many condition tokens stand before those of the grid, with learned positions; all tokens attend
    to them, and they are not given back. Not `modulated`: shifts, scales and gates are learned
    constants, and gates start at one, as in a plain transformer."""

    def __init__(
        self,
        config: TransformerConfig,
        grid: tuple[int, int],
        prefix: int = 0,
        modulated: bool = True,
    ):
        super().__init__()
        self.config, self.prefix = config, prefix
        self.register_buffer("position", sincos(grid, config.width), persistent=False)
        if modulated:
            self.modulation = nn.Linear(config.width, (6 * config.depth + 2) * config.width)
        else:
            self.constant = nn.Parameter(_open_gates(config))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.depth))
        self.apply(_xavier)
        if modulated:
            nn.init.zeros_(self.modulation.weight)
        if prefix:
            self.prefix_position = nn.Parameter(0.02 * torch.randn(prefix, config.width))

    def forward(
        self,
        x: Float[Tensor, "b l d"],
        condition: Float[Tensor, "b d"] | None = None,
        prefix: Float[Tensor, "b k d"] | None = None,
    ) -> Float[Tensor, "b l d"]:
        return self.trace(x, condition, prefix)[0]

    def trace(
        self,
        x: Float[Tensor, "b l d"],
        condition: Float[Tensor, "b d"] | None = None,
        prefix: Float[Tensor, "b k d"] | None = None,
    ) -> tuple[Float[Tensor, "b l d"], list[Float[Tensor, "b l d"]]]:
        """The answer, and the tokens as each block left them; without those of the prefix."""
        width, depth = self.config.width, self.config.depth
        modulation = self._modulation(x, condition)
        *each, last = modulation.split([6 * width] * depth + [2 * width], dim=-1)
        x, states = x + self.position.to(x.dtype), []
        if prefix is not None:
            x = torch.cat([(prefix + self.prefix_position).to(x.dtype), x], dim=1)
        for block, m in zip(self.blocks, each, strict=True):
            x = block(x, m)
            states.append(x[:, self.prefix :])
        return modulated(x[:, self.prefix :], *last[:, None].chunk(2, dim=-1)), states

    def _modulation(self, x: Tensor, condition: Tensor | None) -> Float[Tensor, "b m"]:
        if condition is None:
            return self.constant.to(x.dtype).expand(len(x), -1)
        return self.modulation(F.silu(condition))


def _open_gates(config: TransformerConfig) -> Float[Tensor, "m"]:
    """The modulation of a plain transformer: gates of one, all else zero."""
    block = torch.zeros(6, config.width)
    block[[2, 5]] = 1
    return torch.cat([block.flatten().repeat(config.depth), torch.zeros(2 * config.width)])


def _xavier(module: nn.Module) -> None:
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)


def waves(x: Float[Tensor, "n"], dim: int, longest: float = 10_000.0) -> Float[Tensor, "n dim"]:
    """Sines and cosines of x at `dim / 2` frequencies, from 1 down to 1 / longest."""
    frequency = torch.exp(
        -math.log(longest)
        * torch.arange(dim // 2, device=x.device, dtype=torch.float32)
        / (dim // 2)
    )
    angle = x[:, None].float() * frequency
    return torch.cat([angle.sin(), angle.cos()], dim=-1)


def sincos(grid: tuple[int, int], width: int) -> Float[Tensor, "l width"]:
    """The fixed two-dimensional position code: half of the width for the row, half for the
    column."""
    rows, cols = torch.meshgrid(torch.arange(grid[0]), torch.arange(grid[1]), indexing="ij")
    return torch.cat(
        [waves(rows.flatten().float(), width // 2), waves(cols.flatten().float(), width // 2)],
        dim=-1,
    )
