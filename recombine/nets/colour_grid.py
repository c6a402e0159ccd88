"""A layout encoder for one object with a colour, whose location may be left out."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from recombine.config import config
from recombine.nets.layout_encoder import Grid, LayoutEncoder
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scene import COLORS

LEFT_OUT = -1.0
"""Both coordinates of an object of which the colour alone is given."""


@config("layout/colour-grid")
class ColourGrid(LayoutEncoder):
    """Slot i of a layout is an object of the i-th colour. Its code is the grid of locations and,
    behind it, a 1 for its colour; without a location the grid is empty. What is drawn in which colour
    where is unambiguous for one object, which is what models that are composed are given.
    `anywhere`: the share of training pictures whose location is left out."""

    cells: int = 16
    anywhere: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.anywhere <= 1:
            raise ValueError(f"anywhere {self.anywhere} is not between 0 and 1")
        self.grid  # noqa: B018  # refuses wrong numbers

    @property
    def grid(self) -> Grid:
        return Grid(cells=self.cells)

    def drop(self, layout: Layout, rng: torch.Generator) -> Layout:
        given = super().drop(layout, rng)
        anywhere = torch.rand(len(given.at), 1, 1, generator=rng, device=rng.device) < self.anywhere
        return given._replace(at=given.at.masked_fill(anywhere, LEFT_OUT))

    @property
    def size(self) -> int:
        return self.grid.size + len(COLORS)

    def code(self, layout: Layout) -> Float[Tensor, "b n"]:
        locations = self.grid.code(layout.keep(located(layout)))
        return torch.cat((locations, colors(layout.present, locations)), -1)

    def patch_size(self, reach: int) -> int:
        return self.grid.patch_size(reach) + len(COLORS)

    def patch_code(self, layout: Layout, cells: int, reach: int) -> Float[Tensor, "b l n"]:
        """Every patch has the colours whose location is left out."""
        there = layout.keep(located(layout))
        locations = self.grid.patch_code(there, cells, reach)
        anywhere = (layout.present & ~located(layout))[:, None]
        return torch.cat((locations, colors(there.inside(cells, reach) | anywhere, locations)), -1)


def located(layout: Layout) -> Bool[Tensor, "b k"]:
    """Which objects have a location."""
    return (layout.at >= 0).all(-1)


def colors(present: Bool[Tensor, "*b k"], like: Tensor) -> Float[Tensor, "*b n"]:
    """Slots as numbers, one for each colour."""
    some = present[..., : len(COLORS)].to(like.dtype)
    return F.pad(some, (0, len(COLORS) - some.shape[-1]))


def by_color(
    at: Float[Tensor, "b k 2"], present: Bool[Tensor, "b k"], color: Int[Tensor, "b k"]
) -> Layout:
    """The layout whose slots are colours. Of several objects of one colour it holds one."""
    slot = torch.where(present, color, len(COLORS))
    shape = (len(at), len(COLORS) + 1)
    there = torch.zeros(shape, dtype=torch.bool, device=at.device).scatter(1, slot, True)
    where = at.new_zeros(*shape, 2).scatter(1, slot[..., None].expand(-1, -1, 2), at)
    return Layout(where[:, :-1], there[:, :-1])
