"""The local network in the paper's own form: a U-Net on the patch around a cell, given the
locations inside the patch and the coordinates of its centre, and nothing else.

A picture is denoised cell by cell: of every patch's output only the centre cell is kept, so all
cells see patches centred on themselves. Training takes two patches of every picture, one that holds
a location and one that holds none, and averages their losses over whole patches, outside the
picture excepted. `nets/local.py` is the fast form of the same idea. Sampling costs (patch / cell)^2
times as much as a U-Net on the whole picture, which is what `cost` says."""

from dataclasses import field

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from recombine.config import UsageError, config
from recombine.nets.conditioning import Conditioning
from recombine.nets.layout_encoder import (
    GivenEmbedding,
    LayoutEncoder,
    LayoutNetConfig,
    layout_projection,
)
from recombine.nets.net_config import Shape
from recombine.nets.transformer import sincos
from recombine.nets.unet import UNetConfig
from recombine.worlds.factors import Condition, FactorSpace
from recombine.worlds.layout import Layout

AT_ONCE = 16_384
"""Patches that go through the U-Net together where no gradient is needed, on pictures of 20 pixels;
fewer where patches are larger."""


@config("net/patch-unet")
class PatchConfig(LayoutNetConfig):
    """`cells`: the picture is a grid of cells x cells. `reach`: how many cells a patch extends in
    every direction; 8 of 16 is as large as the picture. `net`: the network on a patch."""

    cells: int = 16
    reach: int = 2
    net: UNetConfig = field(default_factory=lambda: UNetConfig((32, 64), fold=2))

    def __post_init__(self) -> None:
        if self.cells < 1 or not 0 <= self.reach < self.cells:
            raise ValueError(f"reach={self.reach}: between 0 and {self.cells - 1}, below cells")

    def side(self, shape: Shape) -> int:
        """The side of a patch in pixels."""
        return (2 * self.reach + 1) * shape[1] // self.cells

    def cost(self, shape: Shape) -> float:
        """Pixels that the network processes for each pixel of a picture when it samples."""
        return (self.cells * self.side(shape) / shape[1]) ** 2

    def check(self, shape: Shape) -> None:
        if shape[1] != shape[2] or shape[1] % self.cells:
            raise UsageError(
                f"{self.cells} cells do not divide a picture of {shape[1]}x{shape[2]} into squares"
            )
        self.net.check((shape[0] + 1, self.side(shape), self.side(shape)))

    def build(self, layout_encoder: LayoutEncoder, shape: Shape) -> "PatchNet":
        return PatchNet(self, layout_encoder, shape)


class PatchNet(nn.Module):
    """(noisy picture, time, layout) -> something of the picture's shape. Starts at exactly zero."""

    def __init__(self, config: PatchConfig, layout_encoder: LayoutEncoder, shape: Shape):
        super().__init__()
        config.check(shape)
        self.config, self.layout_encoder = config, layout_encoder
        self.cell, side = shape[1] // config.cells, config.side(shape)
        self.net = config.net.build(Conditioning(), (shape[0] + 1, side, side), FactorSpace(()))
        self.net.condition = GivenEmbedding()
        width = config.net.embedding
        self.layout = layout_projection(layout_encoder.patch_size(config.reach), width)
        self.centre = nn.Linear(width, width)
        self.register_buffer("place", sincos((config.cells,) * 2, width), persistent=False)

    def patches(
        self, x: Float[Tensor, "b c h w"], index: Int[Tensor, "b p"]
    ) -> Float[Tensor, "b p d s s"]:
        """The patches around these cells; the last channel is 1 inside the picture, and all are 0
        outside."""
        margin = self.config.reach * self.cell
        whole = F.pad(torch.cat((x, torch.ones_like(x[:, :1])), 1), (margin,) * 4)
        line = torch.arange((2 * self.config.reach + 1) * self.cell, device=x.device)
        rows = index // self.config.cells * self.cell
        columns = index % self.config.cells * self.cell
        place = (rows[..., None, None] + line[:, None]) * whole.shape[3]
        place = place + columns[..., None, None] + line
        flat = whole.flatten(2).gather(2, place.flatten(1)[:, None].expand(-1, whole.shape[1], -1))
        return flat.unflatten(2, place.shape[1:]).transpose(1, 2)

    def codes(self, layout: Layout) -> Float[Tensor, "b l n"]:
        return self.layout_encoder.patch_code(layout, self.config.cells, self.config.reach)

    def on(
        self,
        patches: Float[Tensor, "n d s s"],
        t: Float[Tensor, "n"],
        codes: Float[Tensor, "n k"],
        index: Int[Tensor, "n"],
    ) -> Float[Tensor, "n c s s"]:
        """The U-Net on patches around these cells."""
        given = self.layout(codes) + self.centre(self.place[index].to(codes.dtype))
        none = torch.zeros(len(t), 0, dtype=torch.bool, device=t.device)
        return self.net(patches, t, Condition(none.long(), given, none))[:, :-1]

    def two(
        self,
        x: Float[Tensor, "b c h w"],
        t: Float[Tensor, "b"],
        condition: Layout,
        goal: Float[Tensor, "b c h w"],
        pick: Float[Tensor, "b 2 l"],
    ) -> Float[Tensor, "b"]:
        """The mean squared error over two patches of every picture: one whose cell sees a location,
        and one that sees none, each of them the one of the highest `pick`."""
        seen = condition.inside(self.config.cells, self.config.reach).any(2)
        masks = torch.stack((seen, ~seen), 1)
        index = pick.masked_fill(~masks, -1.0).argmax(2)
        own = self.codes(condition)
        codes = own.gather(1, index[..., None].expand(-1, -1, own.shape[2]))
        enter, wanted = self.patches(x, index), self.patches(goal, index)
        output = self.on(
            enter.flatten(0, 1), t.repeat_interleave(2), codes.flatten(0, 1), index.flatten()
        ).float()
        inside = wanted[:, :, -1:]
        error = (output.unflatten(0, index.shape) - wanted[:, :, :-1]).square() * inside
        pixels = inside.sum((2, 3, 4)) * error.shape[2]
        return (error.sum((2, 3, 4)) / pixels).mean(1)

    def forward(
        self, x: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], condition: Layout
    ) -> Float[Tensor, "b c h w"]:
        """Every cell from the patch around it, many patches at once."""
        cells, m, b = self.config.cells, self.cell, len(x)
        edge, side = self.config.reach * m, (2 * self.config.reach + 1) * m
        codes, parts = self.codes(condition), []
        room = max(1, AT_ONCE * 20**2 // side**2 // b)
        for index in torch.arange(cells**2, device=x.device).split(room):
            each = index.expand(b, -1)
            made = self.on(
                self.patches(x, each).flatten(0, 1),
                t.repeat_interleave(len(index)),
                codes[:, index].flatten(0, 1),
                each.flatten(),
            )
            parts.append(made[:, :, edge : edge + m, edge : edge + m].unflatten(0, (b, -1)))
        grid = torch.cat(parts, 1).unflatten(1, (cells, cells))
        return grid.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)

    def sees(self, layout: Layout) -> Bool[Tensor, "b h w"]:
        """The pixels whose patch holds a location."""
        cells = self.config.cells
        seen = layout.inside(cells, self.config.reach).any(2).unflatten(1, (cells, cells))
        return seen.repeat_interleave(self.cell, 1).repeat_interleave(self.cell, 2)
