"""Layout: the condition that says where objects are. It stands beside `Condition` of the worlds of
factors and offers the same methods, so that samplers, guidance and measures take either.

A location is a fraction of the picture: x right, y down, (0, 0) the upper left corner, as the
centres of scenes are given."""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from recombine.config import UsageError


class Layout(NamedTuple):
    """Up to k locations for each picture. What a slot holds that is not `present` is never read."""

    at: Float[Tensor, "b k 2"]
    present: Bool[Tensor, "b k"]

    @staticmethod
    def of(at: Float[Tensor, "b k 2"], present: Bool[Tensor, "b k"] | None = None) -> "Layout":
        """A checked layout; all slots are present unless said otherwise. UsageError for a location
        outside the picture."""
        present = (
            torch.ones(at.shape[:2], dtype=torch.bool, device=at.device)
            if present is None
            else present
        )
        outside = present & ~((at >= 0) & (at <= 1)).all(-1)
        if outside.any():
            x, y = at[outside][0].tolist()
            raise UsageError(
                f"location ({x:.3g}, {y:.3g}) lies outside the picture; both must lie between "
                "0 and 1"
            )
        return Layout(at, present)

    @staticmethod
    def empty(count: int, slots: int = 1, device: torch.device | str = "cpu") -> "Layout":
        """`count` pictures without any location."""
        at = torch.zeros(count, slots, 2, device=device)
        return Layout(at, torch.zeros(count, slots, dtype=torch.bool, device=device))

    def to(self, device: torch.device | str) -> "Layout":
        return Layout(*(t.to(device) for t in self))

    def rows(self, which: slice | Tensor) -> "Layout":
        """The layouts of some of the pictures."""
        return Layout(self.at[which], self.present[which])

    def keep(self, mask: Bool[Tensor, "#b k"]) -> "Layout":
        """Drop the locations where `mask` is False."""
        return self._replace(present=self.present & mask)

    def without(self, slot: int) -> "Layout":
        """One slot emptied in every picture."""
        present = self.present.clone()
        present[:, slot] = False
        return self._replace(present=present)

    def null(self) -> "Layout":
        """Everything dropped."""
        return self._replace(present=torch.zeros_like(self.present))

    def one(self, rng: torch.Generator) -> "Layout":
        """One location of each picture, all equally likely; none where there is none."""
        draw = torch.rand(self.present.shape, generator=rng, device=rng.device).masked_fill(
            ~self.present, -1.0
        )
        first = torch.zeros_like(self.present).scatter(1, draw.argmax(1, keepdim=True), True)
        return self.keep(first)

    def packed(self) -> "Layout":
        """The same locations moved up into the first slots, in their order; zeros behind them."""
        order = (~self.present).long().argsort(dim=1, stable=True)
        present = self.present.gather(1, order)
        at = self.at.gather(1, order[..., None].expand(-1, -1, 2))
        return Layout(torch.where(present[..., None], at, 0.0), present)

    def padded(self, slots: int) -> "Layout":
        """The same locations with empty slots behind them, `slots` in all."""
        more = slots - self.present.shape[1]
        if more < 0:
            raise UsageError(f"{self.present.shape[1]} locations do not fit into {slots} slots")
        pad = torch.nn.functional.pad
        return Layout(pad(self.at, (0, 0, 0, more)), pad(self.present, (0, more)))

    def cell(self, cells: int) -> Int[Tensor, "b k"]:
        """The cell of a grid of cells x cells that each location lies in, counted row by row."""
        column, row = (self.at * cells).long().clamp(0, cells - 1).unbind(-1)
        return row * cells + column

    def counts(self, cells: int) -> Float[Tensor, "b h w"]:
        """How many locations lie in each cell."""
        flat = self.at.new_zeros(len(self.at), cells**2).scatter_add(
            1, self.cell(cells), self.present.to(self.at.dtype)
        )
        return flat.unflatten(1, (cells, cells))

    def inside(self, cells: int, reach: int) -> Bool[Tensor, "b l k"]:
        """For each cell, which locations lie at most `reach` cells away from it, along both
        axes."""
        own, each = (
            self.cell(cells)[:, None],
            torch.arange(cells**2, device=self.at.device)[:, None],
        )
        rows, columns = (own // cells - each // cells).abs(), (own % cells - each % cells).abs()
        return (torch.maximum(rows, columns) <= reach) & self.present[:, None]
