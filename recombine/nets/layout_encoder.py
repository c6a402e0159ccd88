"""How a layout enters a network. A `LayoutEncoder` writes it as numbers: a grid of cells, a list of
coordinates, or nothing. What follows is the same for all of them, so that two models differ in how
the condition is encoded and in nothing else.

`GlobalConfig` conditions a network on one vector for the whole picture, beside the time: whatever
locality it has, it has learned. The local network (`nets/local.py`) gets one vector for each cell,
of the locations in the patch around it."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from recombine.config import config
from recombine.nets.conditioning import Conditioning
from recombine.nets.net_config import NetConfig, Shape
from recombine.nets.unet import UNetConfig
from recombine.worlds.factors import Condition, FactorSpace
from recombine.worlds.layout import Layout


@dataclass(frozen=True)
class LayoutEncoder(ABC):
    """`labelled`: whether training conditions on all objects of a picture, or on one of them at
    random. `dropout`: how often it conditions on none, whatever the picture shows."""

    labelled: Literal["all", "one"] = "all"
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.dropout <= 1:
            raise ValueError(f"dropout {self.dropout} is not between 0 and 1")

    def drop(self, layout: Layout, rng: torch.Generator) -> Layout:
        """All locations of training pictures -> those that the network is conditioned on."""
        given = layout if self.labelled == "all" else layout.one(rng)
        if not self.dropout:
            return given
        return given.keep(
            torch.rand(len(given.present), 1, generator=rng, device=rng.device) >= self.dropout
        )

    @property
    @abstractmethod
    def size(self) -> int:
        """How many numbers encode the layout of a whole picture."""

    @abstractmethod
    def patch_size(self, reach: int) -> int:
        """How many numbers encode the locations in one patch of 2 reach + 1 cells a side."""

    @abstractmethod
    def code(self, layout: Layout) -> Float[Tensor, "b n"]:
        """The layout of each picture, in `size` numbers."""

    @abstractmethod
    def patch_code(self, layout: Layout, cells: int, reach: int) -> Float[Tensor, "b l n"]:
        """For each cell of a grid of cells x cells, the locations in the patch around it as seen
        from this cell, in `patch_size` numbers. Of other locations it holds nothing."""


@config("layout/grid")
class Grid(LayoutEncoder):
    """A grid of cells x cells, 1 where a location lies, 0 elsewhere."""

    cells: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cells < 1:
            raise ValueError(f"cells must be positive, not {self.cells}")

    @property
    def size(self) -> int:
        return self.cells**2

    def code(self, layout: Layout) -> Float[Tensor, "b n"]:
        return layout.counts(self.cells).clamp(max=1).flatten(1)

    def patch_size(self, reach: int) -> int:
        return (2 * reach + 1) ** 2

    def patch_code(self, layout: Layout, cells: int, reach: int) -> Float[Tensor, "b l n"]:
        locations = layout.counts(cells).clamp(max=1)
        return F.unfold(locations[:, None], 2 * reach + 1, padding=reach).mT


@config("layout/list")
class List(LayoutEncoder):
    """A list of `slots` entries (1, x, y), coordinates from -1 to 1, packed to its beginning; zeros
    where there is none."""

    slots: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.slots < 1:
            raise ValueError(f"slots must be positive, not {self.slots}")

    @property
    def size(self) -> int:
        return 3 * self.slots

    def code(self, layout: Layout) -> Float[Tensor, "b n"]:
        return entries(layout._replace(at=2 * layout.at - 1), self.slots)

    def patch_size(self, reach: int) -> int:
        return self.size

    def patch_code(self, layout: Layout, cells: int, reach: int) -> Float[Tensor, "b l n"]:
        """The list of the locations inside the patch alone; coordinates from -1 to 1 across the
        patch."""
        count, line = len(layout.at), torch.arange(cells, device=layout.at.device)
        centre = torch.cartesian_prod(line, line).flip(-1) + 0.5
        seen = layout.inside(cells, reach)
        at = (layout.at[:, None] * cells - centre[:, None]) / (reach + 0.5)
        return entries(Layout(at.flatten(0, 1), seen.flatten(0, 1)), self.slots).unflatten(
            0, (count, -1)
        )


def entries(layout: Layout, slots: int) -> Float[Tensor, "b n"]:
    """The list (1, x, y) of the locations that are present, packed, with zeros behind it."""
    layout = layout.packed().padded(slots)
    return torch.cat((layout.present[..., None].to(layout.at.dtype), layout.at), -1).flatten(1)


@config("layout/null")
class Null(LayoutEncoder):
    """Nothing, whatever the layout: an unconditional model."""

    @property
    def size(self) -> int:
        return 1

    def code(self, layout: Layout) -> Float[Tensor, "b n"]:
        return layout.at.new_zeros(len(layout.at), 1)

    def patch_size(self, reach: int) -> int:
        return 1

    def patch_code(self, layout: Layout, cells: int, reach: int) -> Float[Tensor, "b l n"]:
        return layout.at.new_zeros(len(layout.at), cells**2, 1)


def layout_projection(size: int, width: int) -> nn.Linear:
    """Numbers -> one vector. Locations are added up, each in its own direction; how they relate is
    for the network to learn. Weights are standard normal, so that one location has the scale of the
    time embedding however many there could be: with a smaller scale the network ignores locations
    for long."""
    projection = nn.Linear(size, width)
    nn.init.normal_(projection.weight)
    return projection


class LayoutNetConfig(ABC):
    """The config of a network that is conditioned on a layout; a frozen dataclass."""

    @abstractmethod
    def check(self, shape: Shape) -> None:
        """UsageError if pictures of this shape do not fit."""

    @abstractmethod
    def build(self, layout_encoder: LayoutEncoder, shape: Shape) -> nn.Module:
        """A network (noisy picture, time, layout) -> something of the picture's shape."""


@config("net/global")
class GlobalConfig(LayoutNetConfig):
    """Any network for pictures (U-Net, DiT), conditioned on the whole layout in one vector."""

    net: NetConfig = field(default_factory=UNetConfig)

    def check(self, shape: Shape) -> None:
        self.net.check(shape)

    def build(self, layout_encoder: LayoutEncoder, shape: Shape) -> "GlobalNet":
        return GlobalNet(self, layout_encoder, shape)


class GivenEmbedding(nn.Module):
    """Stands where a network embeds the factors of its condition, and passes on a vector that was
    made outside."""

    def forward(self, condition: Condition) -> Float[Tensor, "b d"]:
        return condition.value


class GlobalNet(nn.Module):
    def __init__(self, config: GlobalConfig, layout_encoder: LayoutEncoder, shape: Shape):
        super().__init__()
        self.net = config.net.build(Conditioning(), shape, FactorSpace(()))
        self.net.condition = GivenEmbedding()
        self.layout_encoder = layout_encoder
        self.layout = layout_projection(layout_encoder.size, self.net.time[-1].out_features)

    def forward(
        self, x: Float[Tensor, "b c h w"], t: Float[Tensor, "b"], condition: Layout
    ) -> Float[Tensor, "b c h w"]:
        given = self.layout(self.layout_encoder.code(condition))
        none = condition.present[:, :0]
        return self.net(x, t, Condition(none.long(), given, none))
