"""A U-Net conditioned on text: residual blocks, and after each of them a transformer block whose
cells attend to each other and to the words. The text encoder is a small transformer, trained with
it. Blocks are named as in diffusers, so that what opens those opens these."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from recombine.config import UsageError, config
from recombine.nets.transformer import waves

TIME_WAVES, GROUPS = 64, 8


@config("net/text-unet")
class TextUNetConfig:
    """`widths`: channels at each level, the grid halves from one to the next; `blocks` per level,
    each way. `text`: the width of a word's embedding; `layers` of the text encoder."""

    widths: tuple[int, ...] = (96, 192)
    blocks: int = 2
    heads: int = 4
    embedding: int = 256
    text: int = 128
    layers: int = 2

    def __post_init__(self) -> None:
        for name in ("blocks", "heads", "embedding", "text", "layers"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, not {getattr(self, name)}")
        if not self.widths or any(w <= 0 or w % (GROUPS * self.heads) for w in self.widths):
            raise ValueError(
                f"widths {list(self.widths)}: one or more multiples of {GROUPS * self.heads}"
            )
        if self.text % self.heads:
            raise ValueError(f"text {self.text} is not a multiple of heads {self.heads}")

    def check(self, shape: tuple[int, int, int]) -> None:
        by = 2 ** (len(self.widths) - 1)
        if shape[1] % by or shape[2] % by:
            raise UsageError(f"{len(self.widths)} levels need sides divisible by {by}")


class Attend(nn.Module):
    """Multi-head attention of one sequence to another, or to itself."""

    def __init__(self, width: int, context: int, heads: int):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_kv = nn.Linear(context, 2 * width, bias=False)
        self.to_out = nn.Linear(width, width)

    def forward(
        self, x: Float[Tensor, "b l d"], context: Float[Tensor, "b k c"]
    ) -> Float[Tensor, "b l d"]:
        q = self.to_q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = (
            self.to_kv(context).unflatten(-1, (2, self.heads, -1)).permute(2, 0, 3, 1, 4).unbind()
        )
        mixed = F.scaled_dot_product_attention(q, k.to(q.dtype), v.to(q.dtype))
        return self.to_out(mixed.transpose(1, 2).flatten(2))


class CrossAttention(Attend):
    """Attention by a name that tools look for."""


class TextLayer(nn.Module):
    """One layer of the text encoder."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attend(width, width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Float[Tensor, "b l d"]) -> Float[Tensor, "b l d"]:
        y = self.norm1(x)
        x = x + self.attention(y, y)
        return x + self.mlp(self.norm2(x))


class TextEncoder(nn.Module):
    """Numbers of words -> an embedding of each, which knows the others."""

    def __init__(self, words: int, length: int, width: int, layers: int, heads: int):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.position = nn.Parameter(0.02 * torch.randn(length, width))
        self.layers = nn.ModuleList(TextLayer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, tokens: Int[Tensor, "b l"]) -> Float[Tensor, "b l d"]:
        x = self.words(tokens) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class ResidualBlock(nn.Module):
    """Two convolutions beside a shortcut; the time enters between them."""

    def __init__(self, inner: int, outer: int, embedding: int):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(GROUPS, inner), nn.Conv2d(inner, outer, 3, padding=1)
        self.time = nn.Linear(embedding, 2 * outer)
        self.norm2, self.conv2 = nn.GroupNorm(GROUPS, outer), nn.Conv2d(outer, outer, 3, padding=1)
        self.shortcut = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()
        nn.init.zeros_(self.conv2.weight)
        nn.init.zeros_(self.conv2.bias)

    def forward(
        self, x: Float[Tensor, "b i h w"], time: Float[Tensor, "b d"]
    ) -> Float[Tensor, "b o h w"]:
        scale, shift = self.time(F.silu(time))[:, :, None, None].chunk(2, 1)
        y = self.norm2(self.conv1(F.silu(self.norm1(x)))) * (1 + scale) + shift
        return self.shortcut(x) + self.conv2(F.silu(y))


class TextTransformerBlock(nn.Module):
    """Self-attention, attention to the words, and an MLP, each beside a shortcut."""

    def __init__(self, width: int, text: int, heads: int):
        super().__init__()
        self.norm1, self.attn1 = nn.LayerNorm(width), CrossAttention(width, width, heads)
        self.norm2, self.attn2 = nn.LayerNorm(width), CrossAttention(width, text, heads)
        self.norm3 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(
        self, x: Float[Tensor, "b l d"], words: Float[Tensor, "b k c"]
    ) -> Float[Tensor, "b l d"]:
        y = self.norm1(x)
        x = x + self.attn1(y, y)
        x = x + self.attn2(self.norm2(x), words)
        return x + self.mlp(self.norm3(x))


class Stage(nn.Module):
    """A residual block and a transformer block over the cells of its grid."""

    def __init__(self, inner: int, outer: int, config: TextUNetConfig):
        super().__init__()
        self.residual = ResidualBlock(inner, outer, config.embedding)
        self.transformer = TextTransformerBlock(outer, config.text, config.heads)

    def forward(self, x: Tensor, time: Tensor, words: Tensor) -> Tensor:
        x = self.residual(x, time)
        return self.transformer(x.flatten(2).mT, words).mT.unflatten(2, x.shape[2:])


class TextUNet(nn.Module):
    """(noisy latent, time, caption) -> something of the latent's shape, zero at first. `encode` and
    `denoise` are its two halves: the words, and the rest."""

    def __init__(
        self, config: TextUNetConfig, shape: tuple[int, int, int], words: int, length: int
    ):
        super().__init__()
        config.check(shape)
        w, n, d = config.widths, config.blocks, config.embedding
        self.text = TextEncoder(words, length, config.text, config.layers, config.heads)
        self.time = nn.Sequential(nn.Linear(TIME_WAVES, d), nn.SiLU(), nn.Linear(d, d))
        self.position = nn.Parameter(0.02 * torch.randn(w[0], *shape[1:]))
        self.enter = nn.Conv2d(shape[0], w[0], 3, padding=1)

        def stages(first: int, width: int) -> nn.ModuleList:
            return nn.ModuleList(Stage(first if i == 0 else width, width, config) for i in range(n))

        self.down = nn.ModuleList(stages(width, width) for width in w)
        self.coarser = nn.ModuleList(nn.Conv2d(a, b, 2, 2) for a, b in zip(w, w[1:], strict=False))
        self.middle = Stage(w[-1], w[-1], config)
        self.up = nn.ModuleList(stages(2 * width, width) for width in w)
        pairs = zip(w, w[1:], strict=False)
        self.finer = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in pairs)
        self.last, self.leave = nn.GroupNorm(GROUPS, w[0]), nn.Conv2d(w[0], shape[0], 3, padding=1)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def encode(self, tokens: Int[Tensor, "b l"]) -> Float[Tensor, "b l d"]:
        return self.text(tokens)

    def denoise(
        self, x: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], words: Float[Tensor, "b l d"]
    ) -> Float[Tensor, "b c h w"]:
        time = self.time(waves(1000 * t, TIME_WAVES))
        x, kept = self.enter(x) + self.position, []
        for level, stages in enumerate(self.down):
            x = self.coarser[level - 1](x) if level else x
            for stage in stages:
                x = stage(x, time, words)
            kept.append(x)
        x = self.middle(x, time, words)
        for level in reversed(range(len(self.up))):
            x = torch.cat((x, kept[level]), 1)
            for stage in self.up[level]:
                x = stage(x, time, words)
            x = self.finer[level - 1](x) if level else x
        return self.leave(F.silu(self.last(x)))

    def forward(
        self, x: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], condition: object
    ) -> Float[Tensor, "b c h w"]:
        """`condition`: a caption (`tokens`), or words that are embedded (`encoded.embeds`)."""
        given = getattr(condition, "tokens", None)
        embedded = getattr(condition, "encoded", None)
        words = self.encode(given) if embedded is None else embedded.embeds
        return self.denoise(x, t, words)
