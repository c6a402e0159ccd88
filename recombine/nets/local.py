"""The local network: every cell of the picture is denoised from the patch of cells around it, the
locations inside that patch and its own coordinates, and from nothing else, however deep the network
is.

The literal way runs a network on one patch for each cell, so every cell is processed as often as
there are cells in a patch: 25 times for a reach of 2. Here a cell is a token and is processed once.
In an ordinary network the receptive field grows with every layer; here it does not, because keys
and values stand still. A stage takes a copy of the tokens and keeps it as its source. Its layers
update the copy again and again, each token attending to the source tokens within the stage's radius
and never to updated neighbours. So a stage of any depth adds its radius once, and the radii of all
stages add up to the reach. Norms are per token, and a mask keeps out tokens too far away.

With `layout_scope="patch"` each cell is conditioned on the locations in its patch as one vector,
from a small MLP: with a plain sum, as `GlobalNet` has it, small networks were worse where a patch
holds two locations. The vector enters with the last stage, and only the tokens that are updated
there, whose patch it is; no source ever holds it. With `layout_scope="cell"` each location enters
at its own cell, and other cells attend to it. Either way gradients and effects are exactly zero
outside the patch, and nowhere inside. But locations at cells show the network which pixels a
location belongs to, and even one that reaches over the whole picture learns to be local from that.
So the control, the same network with a large reach, needs the vector: there, all that is local
about it is its reach.

A token that is turned into a cell of pixels knows its neighbours' pixels only as far as its vector
holds them, and pictures show seams between cells. With `fine` a few convolutions beside the tokens
look at the noisy pixels themselves, no farther than the reach; a cell's token is then turned into
pixels one by one, together with their features."""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from recombine.config import UsageError, config
from recombine.nets.layout_encoder import LayoutEncoder, LayoutNetConfig, layout_projection
from recombine.nets.net_config import Shape
from recombine.nets.patches import to_grid, to_tokens
from recombine.nets.transformer import mlp, modulated, sincos, waves
from recombine.worlds.layout import Layout

TIME_WAVES, FINE_DEPTH = 256, 4


@config("net/local")
class LocalConfig(LayoutNetConfig):
    """`cells`: the picture is a grid of cells x cells. `reach`: how many cells away a cell still
    looks, so its patch has a side of 2 reach + 1. `depth`: layers of all `stages` together.
    `layout_scope`: whether a cell is conditioned on all locations in its patch or on those in
    itself. `fine`: channels of the convolutions beside the tokens; 0: none. `always`: whether the
    layout modulates every layer of the last stage, as the time does, instead of entering before its
    first."""

    cells: int = 16
    reach: int = 2
    width: int = 256
    depth: int = 8
    heads: int = 4
    stages: int = 2
    mlp_ratio: int = 4
    layout_scope: Literal["patch", "cell"] = "patch"
    fine: int = 0
    always: bool = False

    def __post_init__(self) -> None:
        for name in ("cells", "width", "depth", "heads", "stages", "mlp_ratio"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        if self.fine < 0:
            raise ValueError(f"fine must not be negative, not {self.fine}")
        if not 0 <= self.reach < self.cells:
            raise ValueError(
                f"reach must lie between 0 and {self.cells - 1}, one less than cells, not "
                f"{self.reach}"
            )
        if self.width % self.heads or self.width % 4:
            raise ValueError(f"width {self.width} is not a multiple of 4 and of heads {self.heads}")
        if self.depth % self.stages:
            raise ValueError(f"depth {self.depth} is not a multiple of stages {self.stages}")

    @property
    def layout_reach(self) -> int:
        """How far away a location may be that a cell is conditioned on."""
        return self.reach if self.layout_scope == "patch" else 0

    @property
    def radii(self) -> tuple[int, ...]:
        """How far each stage looks; together the reach, the larger ones last."""
        return tuple(
            (self.reach * (i + 1)) // self.stages - (self.reach * i) // self.stages
            for i in range(self.stages)
        )

    def check(self, shape: Shape) -> None:
        if shape[1] != shape[2] or shape[1] % self.cells:
            raise UsageError(
                f"{self.cells} cells do not divide a picture of {shape[1]}x{shape[2]} into squares"
            )

    def build(self, layout_encoder: LayoutEncoder, shape: Shape) -> "LocalNet":
        return LocalNet(self, layout_encoder, shape)


def near(cells: int, radius: int) -> Bool[Tensor, "l l"]:
    """Which cells of a grid are at most `radius` cells apart, along both axes."""
    row, column = torch.arange(cells**2) // cells, torch.arange(cells**2) % cells
    down, across = ((line[:, None] - line[None, :]).abs() for line in (row, column))
    return torch.maximum(down, across) <= radius


class LocalAttention(nn.Module):
    """Attention from tokens to the source tokens that the mask lets through; no mask: to all."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.q, self.kv, self.out = (
            nn.Linear(width, width),
            nn.Linear(width, 2 * width),
            nn.Linear(width, width),
        )

    def forward(
        self,
        x: Float[Tensor, "b l d"],
        source: Float[Tensor, "b l d"],
        mask: Bool[Tensor, "l l"] | None,
    ) -> Float[Tensor, "b l d"]:
        each = (self.q(x), *self.kv(source).chunk(2, dim=-1))
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in each)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(mixed.transpose(1, 2).flatten(2))


class LocalBlock(nn.Module):
    """Attention and an MLP, each entered through a modulated norm and left through a gate."""

    def __init__(self, config: LocalConfig):
        super().__init__()
        self.attention = LocalAttention(config.width, config.heads)
        self.mlp = mlp(config.width, config.mlp_ratio)

    def forward(
        self,
        x: Float[Tensor, "b l d"],
        source: Float[Tensor, "b l d"],
        mask: Tensor | None,
        time: Float[Tensor, "b 1 six_d"],
        layout: Float[Tensor, "b l six_d"] | None = None,
    ) -> Float[Tensor, "b l d"]:
        """Modulated by the time and the layout. The source is modulated by the time alone: other
        cells attend to it."""
        given = time if layout is None else time + layout
        shift1, scale1, gate1, shift2, scale2, gate2 = given.chunk(6, dim=-1)
        source = modulated(source, *time.chunk(6, dim=-1)[:2])
        x = x + gate1 * self.attention(modulated(x, shift1, scale1), source, mask)
        return x + gate2 * self.mlp(modulated(x, shift2, scale2))


class Fine(nn.Module):
    """Convolutions over the noisy pixels (of a folded picture, where cells allow it), and from each
    pixel and the token of its cell to an answer. A layer that would look beyond the patch of a
    pixel at the edge of its cell looks at the pixel alone. Starts at exactly zero."""

    def __init__(self, config: LocalConfig, shape: Shape, embedding: int):
        super().__init__()
        patch, c = shape[1] // config.cells, config.fine
        self.fold = 1 if patch % 2 else 2
        self.side, dim = patch // self.fold, shape[0] * self.fold**2
        self.near = [i < config.reach * self.side for i in range(FINE_DEPTH)]
        sizes = [dim, *[c] * (FINE_DEPTH - 1)]
        self.convolutions = nn.ModuleList(nn.Conv2d(size, c, 3, padding=1) for size in sizes)
        self.modulation = nn.Linear(embedding, 2 * c * (FINE_DEPTH - 1))
        self.token = nn.Linear(config.width, c * self.side**2)
        self.join, self.leave = nn.Conv2d(2 * c, 2 * c, 1), nn.Conv2d(2 * c, dim, 1)
        for zero in (
            self.modulation.weight,
            self.modulation.bias,
            self.leave.weight,
            self.leave.bias,
        ):
            nn.init.zeros_(zero)

    def convolve(self, layer: int, y: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d h w"]:
        own = self.convolutions[layer]
        return own(y) if self.near[layer] else F.conv2d(y, own.weight[..., 1:2, 1:2], own.bias)

    def forward(
        self,
        x: Float[Tensor, "b c h w"],
        tokens: Float[Tensor, "b l d"],
        time: Float[Tensor, "b d"],
        cells: int,
    ) -> Float[Tensor, "b c h w"]:
        y = self.convolve(0, F.pixel_unshuffle(x, self.fold))
        for i, m in enumerate(self.modulation(time)[:, None].chunk(FINE_DEPTH - 1, dim=-1), 1):
            each = modulated(y.flatten(2).mT, *m.chunk(2, dim=-1)).mT.unflatten(2, y.shape[2:])
            y = y + self.convolve(i, F.silu(each))
        coarse = to_grid(self.token(tokens), self.side, cells)
        return F.pixel_shuffle(self.leave(F.silu(self.join(torch.cat((y, coarse), 1)))), self.fold)


class LocalNet(nn.Module):
    """(noisy picture, time, layout) -> something of the picture's shape. Starts at exactly zero."""

    def __init__(self, config: LocalConfig, layout_encoder: LayoutEncoder, shape: Shape):
        super().__init__()
        config.check(shape)
        self.config, self.layout_encoder = config, layout_encoder
        self.patch, d = shape[1] // config.cells, config.width
        dim = shape[0] * self.patch**2
        self.time = nn.Sequential(nn.Linear(TIME_WAVES, d), nn.SiLU(), nn.Linear(d, d))
        codes = layout_encoder.patch_size(config.layout_reach)
        self.layout = nn.Sequential(layout_projection(codes, d), nn.SiLU(), nn.Linear(d, d))
        self.enter, self.leave = nn.Linear(dim, d), nn.Linear(d, dim)
        self.fine = Fine(config, shape, d) if config.fine else None
        anew = config.depth // config.stages if config.always else 0
        self.anew = nn.ModuleList(nn.Linear(d, 6 * d) for _ in range(anew))
        self.modulation = nn.Linear(d, (6 * config.depth + 2) * d)
        self.blocks = nn.ModuleList(LocalBlock(config) for _ in range(config.depth))
        for silent in (self.leave, self.modulation, *self.anew):
            nn.init.zeros_(silent.weight)
            nn.init.zeros_(silent.bias)
        self.register_buffer("position", sincos((config.cells, config.cells), d), persistent=False)
        masks = torch.stack([near(config.cells, radius) for radius in config.radii])
        self.register_buffer("masks", masks, persistent=False)
        self.open = [bool(mask.all()) for mask in masks]

    def forward(
        self, x: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], condition: Layout
    ) -> Float[Tensor, "b c h w"]:
        config = self.config
        time = F.silu(self.time(waves(1000 * t, TIME_WAVES)))
        *each, last = self.modulation(time).split(
            [6 * config.width] * config.depth + [2 * config.width], dim=-1
        )
        layout = self.layout(
            self.layout_encoder.patch_code(condition, config.cells, config.layout_reach)
        )
        y = self.enter(to_tokens(x, self.patch))
        y = y + self.position.to(y.dtype) + (layout if config.layout_scope == "cell" else 0)
        per_stage = config.depth // config.stages
        for stage, free in enumerate(self.open):
            source, mask, ends = y, None if free else self.masks[stage], stage == config.stages - 1
            if config.layout_scope == "patch" and ends:
                y = y + layout
            for i, n in enumerate(range(stage * per_stage, (stage + 1) * per_stage)):
                anew = self.anew[i](F.silu(layout)) if self.anew and ends else None
                y = self.blocks[n](y, source, mask, each[n][:, None], anew)
        y = modulated(y, *last[:, None].chunk(2, dim=-1))
        out = to_grid(self.leave(y), self.patch, config.cells)
        return out + self.fine(x, y, time, config.cells) if self.fine else out

    def sees(self, layout: Layout) -> Bool[Tensor, "b h w"]:
        """The pixels whose patch holds a location. Their outputs depend on the condition, those of
        other pixels do not."""
        seen = (
            layout.inside(self.config.cells, self.config.reach)
            .any(2)
            .unflatten(1, (self.config.cells, -1))
        )
        return seen.repeat_interleave(self.patch, 1).repeat_interleave(self.patch, 2)
