"""A small U-Net: residual blocks on ever coarser grids and back, conditioned on the time and the
condition in every block. It has the same call as `DiT`, so one may stand in for the other."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from recombine.config import UsageError, config
from recombine.nets.block_mlps import BlockMLPs, RawCondition
from recombine.nets.conditioning import ConditionEmbedding, Conditioning
from recombine.nets.keyed_dropout import KeyedDropout, key_of
from recombine.nets.net_config import NetConfig, Shape
from recombine.nets.transformer import Attention, TransformerConfig, waves
from recombine.worlds.factors import Condition, FactorSpace

TIME_WAVES = 64
GROUPS = 8


@config("net/unet")
class UNetConfig(NetConfig):
    """`widths`: channels at each level, the grid halves from one to the next. `blocks`: residual
    blocks per level, each way. `embedding`: the width of the vector that carries time and
    condition. `fold`: so many neighbouring pixels a side are folded into channels at the entry and
    unfolded at the exit; the finest grid costs most and does least. `scaled`: the embedding scales
    and shifts the channels after a norm, instead of being added before it. `coordinates`: every
    level is given the coordinates of its pixels; a network without them has only the borders.
    `block_mlps`: 0, or so many numbers enter an MLP of its own in every block: the true values,
    zero for absent factors, then zeros; another MLP takes the time. `dropout`: of the values that
    enter a block's second convolution, in training. `adds_input`: the network adds its answer to
    its input. Attention only at the coarsest level."""

    widths: tuple[int, ...] = (32, 64, 128)
    blocks: int = 2
    heads: int = 4
    embedding: int = 256
    fold: int = 1
    scaled: bool = False
    coordinates: bool = False
    block_mlps: int = 0
    dropout: float = 0.0
    adds_input: bool = False

    def __post_init__(self) -> None:
        if not self.widths or any(w <= 0 or w % GROUPS for w in self.widths):
            raise ValueError(f"widths {list(self.widths)}: one or more multiples of {GROUPS}")
        for name in ("blocks", "heads", "embedding", "fold"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        if self.block_mlps < 0 or not 0 <= self.dropout < 1:
            raise ValueError(
                f"block_mlps={self.block_mlps} must not be negative, and dropout={self.dropout} "
                "must lie in [0, 1)"
            )
        if self.block_mlps and self.scaled:
            raise ValueError("block_mlps: their answer is added, so scaled has no effect")
        if self.widths[-1] % self.heads:
            raise ValueError(
                f"the last width {self.widths[-1]} is not a multiple of heads {self.heads}"
            )

    def check(self, shape: Shape) -> None:
        by = self.fold * 2 ** (len(self.widths) - 1)
        if shape[1] % by or shape[2] % by:
            folded = f" after a fold of {self.fold}" if self.fold > 1 else ""
            raise UsageError(
                f"{len(self.widths)} levels{folded} need sides divisible by {by}, not "
                f"{shape[1]}x{shape[2]}"
            )

    def build(self, conditioning: Conditioning, shape: Shape, space: FactorSpace) -> "UNet":
        return UNet(self, conditioning, shape, space)


class Residual(nn.Module):
    """Two convolutions beside a shortcut; between them the embedding enters. Starts as the shortcut
    alone."""

    def __init__(self, inner: int, outer: int, config: UNetConfig):
        super().__init__()
        self.scaled, self.own_mlps, d = config.scaled, config.block_mlps > 0, config.embedding
        self.norm1, self.conv1 = nn.GroupNorm(GROUPS, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.modulation = (
            BlockMLPs(d, config.block_mlps, outer)
            if config.block_mlps
            else nn.Linear(d, 2 * outer if config.scaled else outer)
        )
        self.norm2, self.conv2 = nn.GroupNorm(GROUPS, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.shortcut = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()
        self.dropout = KeyedDropout(config.dropout)
        nn.init.zeros_(self.conv2.weight)
        nn.init.zeros_(self.conv2.bias)

    def forward(
        self,
        x: Float[Tensor, "b i h w"],
        embedded: Float[Tensor, "b d"],
        key: Int[Tensor, "b"] | None = None,
    ) -> Float[Tensor, "b o h w"]:
        y = self.conv1(F.silu(self.norm1(x)))
        added = self.modulation(embedded if self.own_mlps else F.silu(embedded))[:, :, None, None]
        if self.scaled:
            scale, shift = added.chunk(2, 1)
            y = self.norm2(y) * (1 + scale) + shift
        else:
            y = self.norm2(y + added)
        return self.shortcut(x) + self.conv2(self.dropout(F.silu(y), key))


class Mixing(nn.Module):
    """Attention between all cells of a grid, beside a shortcut."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm = nn.GroupNorm(GROUPS, width)
        self.attention = Attention(TransformerConfig(width=width, heads=heads))
        nn.init.zeros_(self.attention.out.weight)
        nn.init.zeros_(self.attention.out.bias)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        tokens = self.norm(x).flatten(2).mT
        return x + self.attention(tokens).mT.unflatten(2, x.shape[2:])


class Coordinates(nn.Module):
    """Adds a learned function of its coordinates to each cell of a grid."""

    WAVES = 8

    def __init__(self, width: int):
        super().__init__()
        self.project = nn.Linear(4 * self.WAVES, width)

    def forward(self, x: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        rows, columns = (
            torch.linspace(-1, 1, n + 1, device=x.device)[1:] - 1 / n for n in x.shape[2:]
        )
        speed = torch.arange(1, self.WAVES + 1, device=x.device) * torch.pi / 2
        down, along = rows[:, None] * speed, columns[:, None] * speed
        parts = (down.sin()[:, None], down.cos()[:, None], along.sin()[None], along.cos()[None])
        each = torch.cat([part.expand(len(rows), len(columns), -1) for part in parts], -1)
        return x + self.project(each).permute(2, 0, 1)


class UNet(nn.Module):
    """(noisy picture, time, condition) -> something of the picture's shape. Starts at exactly
    zero, or as its input where that is added."""

    def __init__(
        self, config: UNetConfig, conditioning: Conditioning, shape: Shape, space: FactorSpace
    ):
        super().__init__()
        config.check(shape)
        if conditioning.enters == "tokens":
            raise UsageError("conditioning.enters=tokens: only a transformer has tokens")
        w, d, n, self.fold = config.widths, config.embedding, config.blocks, config.fold
        self.adds_input, self.drops = config.adds_input, config.dropout > 0
        self.own_mlps = config.block_mlps > 0
        channels = shape[0] * config.fold**2
        self.time = nn.Sequential(nn.Linear(TIME_WAVES, d), nn.SiLU(), nn.Linear(d, d))
        self.condition = (
            RawCondition(space, conditioning, config.block_mlps)
            if self.own_mlps
            else ConditionEmbedding(space, conditioning, d)
        )

        def block(inner: int, outer: int) -> Residual:
            return Residual(inner, outer, config)

        def stack(first: int, width: int) -> nn.ModuleList:
            return nn.ModuleList(block(first if i == 0 else width, width) for i in range(n))

        self.enter = nn.Conv2d(channels, w[0], 3, padding=1)
        self.down = nn.ModuleList(stack(width, width) for width in w)
        self.coordinates = nn.ModuleList(
            Coordinates(width) if config.coordinates else nn.Identity() for width in w
        )
        self.coarser = nn.ModuleList(nn.Conv2d(a, b, 2, 2) for a, b in zip(w, w[1:], strict=False))
        self.mixing = Mixing(w[-1], config.heads)
        self.middle = block(w[-1], w[-1])
        self.up = nn.ModuleList(stack(2 * width, width) for width in w)
        self.finer = nn.ModuleList(
            nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(w, w[1:], strict=False)
        )
        self.last, self.leave = nn.GroupNorm(GROUPS, w[0]), nn.Conv2d(w[0], channels, 3, padding=1)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)
        layers = [m for m in self.modules() if isinstance(m, KeyedDropout)]
        for number, layer in enumerate(layers):
            layer.layer = number

    def embed(self, t: Float[Tensor, "b"], condition: Condition) -> Float[Tensor, "b d"]:
        """What every block gets of time and condition."""
        time, given = self.time(waves(1000 * t, TIME_WAVES)), self.condition(condition)
        return torch.cat((F.silu(time), given), 1) if self.own_mlps else time + given

    def forward(
        self, x: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], condition: Condition
    ) -> Float[Tensor, "b c h w"]:
        given, embedded = x, self.embed(t, condition)
        key = key_of(x) if self.drops and self.training else None
        x, kept = self.enter(F.pixel_unshuffle(x, self.fold)), []
        for level, blocks in enumerate(self.down):
            x = self.coarser[level - 1](x) if level else x
            x = through(blocks, self.coordinates[level](x), embedded, key)
            kept.append(x)
        x = self.middle(self.mixing(x), embedded, key)
        for level in reversed(range(len(self.up))):
            x = through(self.up[level], torch.cat((x, kept[level]), 1), embedded, key)
            x = self.finer[level - 1](x) if level else x
        answer = F.pixel_shuffle(self.leave(F.silu(self.last(x))), self.fold)
        return given + answer if self.adds_input else answer


def through(blocks: nn.ModuleList, x: Tensor, embedded: Tensor, key: Tensor | None) -> Tensor:
    for block in blocks:
        x = block(x, embedded, key)
    return x
