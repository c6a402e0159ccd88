"""Pictures on disk: samples with a cross at every prompted location, and locality maps in grey."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float
from PIL import Image
from torch import Tensor

from recombine.metrics.locality_map import DECADES
from recombine.metrics.sheets import write_sheet
from recombine.worlds.layout import Layout

LOCATED, MISSED, EDGE = (0.55, 1.0, 0.2), (1.0, 0.1, 0.25), (0.05, 0.05, 0.05)
"""Colours of the cross at a location that was located, at one that was not, and of its edge."""
SIDE, ARM = 128, 1 / 40
"""Pictures are magnified to about this side; a cross reaches so far, as a share of it."""


def crossed(
    images: Float[Tensor, "b 3 h w"],
    locations: Layout,
    located: Bool[Tensor, "b k"],
    side: int = SIDE,
) -> Float[Tensor, "b 3 H W"]:
    """The pictures, magnified, with a small cross at every location."""
    zoom = max(1, side // images.shape[2])
    large = images.clamp(0, 1).repeat_interleave(zoom, 2).repeat_interleave(zoom, 3)
    h, w = large.shape[2:]
    device = locations.at.device
    x, y = (locations.at * torch.tensor((w, h), device=device)).floor().unbind(-1)
    across = (x[..., None] - torch.arange(w, device=device)).abs()[:, :, None]
    down = (y[..., None] - torch.arange(h, device=device)).abs()[..., None]
    present, good = locations.present[..., None, None], located[..., None, None]
    edge, core = (plus(across, down, round(ARM * h), more) & present for more in (1, 0))
    for where, colour in ((edge, EDGE), (core & ~good, MISSED), (core & good, LOCATED)):
        ink = torch.tensor(colour, device=large.device).view(3, 1, 1)
        large = torch.where(where.any(1, keepdim=True), ink, large)
    return large


def plus(across: Tensor, down: Tensor, arm: int, more: int) -> Bool[Tensor, "b k H W"]:
    """A cross one pixel thick, and `more` on every side."""
    flat = (across <= arm + more) & (down <= more)
    return flat | ((down <= arm + more) & (across <= more))


def write_heat(path: Path, heat: Float[Tensor, "n h w"]) -> None:
    """Maps with values up to 1, side by side, on a logarithmic scale of DECADES in 255 steps."""
    grey = 1 + heat.clamp(min=10.0**-DECADES).log10() / DECADES
    write_sheet(path, grey[None, :, None])


def read_heat(path: Path, count: int) -> Float[Tensor, "n h w"]:
    """The maps that `write_heat` wrote."""
    with Image.open(path) as picture:
        grey = torch.from_numpy(np.array(picture.convert("L"))).float() / 255
    return torch.stack((10 ** (DECADES * (grey - 1))).chunk(count, 1))
