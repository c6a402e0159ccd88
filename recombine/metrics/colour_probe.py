"""A probe of colours: a crop of a picture around the location of an object -> its colour. It is
trained on fresh renders (`runs/colour_probe.py`) and tested on others before it is used."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from recombine.metrics.intervals import TRUST, wilson
from recombine.worlds.layout import Layout
from recombine.worlds.scenes.scene import COLORS

SIDE, PIXELS = 0.25, 16
"""A crop is this share of the picture wide, and has so many pixels a side."""
SURE = 0.5
"""The least probability of a colour; an object with less has none."""
NONE = -1
"""The colour of an object that has none, and of an empty slot."""


def crops(images: Float[Tensor, "b 3 h w"], at: Float[Tensor, "b 2"]) -> Float[Tensor, "b 3 s s"]:
    """A square of each picture around a location; beyond the edge, what is at the edge."""
    line = SIDE * ((torch.arange(PIXELS, device=at.device) + 0.5) / PIXELS - 0.5)
    offset = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)
    where = 2 * (at[:, None, None] + offset).to(images.dtype) - 1
    return F.grid_sample(images, where, padding_mode="border", align_corners=False)


class ColourNet(nn.Module):
    """Crops -> logits of the colours."""

    def __init__(self, width: int):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, width, 3, padding=1),
            nn.SiLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1),
            nn.SiLU(),
            nn.Conv2d(2 * width, 2 * width, 3, 2, 1),
            nn.SiLU(),
            nn.Flatten(),
            nn.Linear(2 * width * (PIXELS // 4) ** 2, len(COLORS)),
        )

    def forward(self, some: Float[Tensor, "b 3 s s"]) -> Float[Tensor, "b n"]:
        return self.net(2 * some - 1).float()


@dataclass(frozen=True)
class ColourProbe:
    """Pictures in [0, 1] and the locations of their objects -> the index of each object's colour;
    NONE where no colour is sure, and in empty slots."""

    net: ColourNet
    sure: float = SURE

    @torch.no_grad()
    def __call__(self, images: Float[Tensor, "b 3 h w"], objects: Layout) -> Int[Tensor, "b k"]:
        picture, slot = objects.present.nonzero(as_tuple=True)
        found = torch.full(objects.present.shape, NONE, device=images.device)
        for some, where in zip(picture.split(1024), slot.split(1024), strict=True):
            logits = self.net(crops(images[some].clamp(0, 1), objects.at[some, where]))
            best = logits.softmax(1).max(1)
            found[some, where] = best.indices.where(best.values >= self.sure, NONE)
        return found


def matches(
    found: Int[Tensor, "b k"], objects: Layout, wanted: Int[Tensor, "b m"]
) -> tuple[Bool[Tensor, "b"], Bool[Tensor, "b"]]:
    """For each picture: whether it holds exactly one object of each wanted colour and no other, and
    whether it holds each wanted colour, whatever else there is."""
    own = (found[:, None] == wanted[:, :, None]) & objects.present[:, None]
    exact = (own.sum(2) == 1).all(1) & (objects.present.sum(1) == wanted.shape[1])
    return exact, own.any(2).all(1)


def placed(
    found: Int[Tensor, "b k"],
    objects: Layout,
    wanted: Int[Tensor, "b m"],
    at: Float[Tensor, "b m 2"],
    radius: float,
) -> Bool[Tensor, "b"]:
    """For each picture: whether it is an exact match, and each object lies within a radius of the
    location of its colour."""
    near = (objects.at[:, None] - at[:, :, None]).norm(dim=-1) <= radius
    own = (found[:, None] == wanted[:, :, None]) & objects.present[:, None]
    return matches(found, objects, wanted)[0] & (own & near).any(2).all(1)


def color_row(
    found: Int[Tensor, "b k"], objects: Layout, wanted: Int[Tensor, "b m"]
) -> dict[str, Any]:
    """What pictures amount to: the shares with an exact match, with Wilson's interval, and with all
    wanted colours, and the mean number of objects."""
    exact, every = matches(found, objects, wanted)
    low, high = wilson(int(exact.sum()), len(exact))
    shares = {"exact_match": exact, "all_colors": every, "total": objects.present.sum(1)}
    made = {name: float(value.double().mean()) for name, value in shares.items()}
    return {"n": len(exact), **made, "exact_match_low": low, "exact_match_high": high}


def colour_doubt(rows: Iterable[dict[str, Any]]) -> str:
    """Why the probe cannot be used, in one line; empty if it can. From its rows on real pictures:
    the accuracy must be TRUST for every colour."""
    tested = [r for r in rows if r["kind"] == "colour probe"]
    if not tested:
        return "no colour probe was tested on real pictures"
    worst = min(tested, key=lambda r: r["accuracy"])
    if worst["accuracy"] >= TRUST:
        return ""
    reads = f"it reads {worst['accuracy']:.1%} of {worst['color']} objects"
    return f"the colour probe is not reliable: {reads}; {TRUST:.0%} are needed"
