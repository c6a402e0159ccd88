"""Pictures on disk: sheets of samples with their locations, and locality maps as grey ones."""

from pathlib import Path

import numpy as np
import torch
from jaxtyping import Bool, Float, Shaped
from PIL import Image
from torch import Tensor

from recombine.evaluate.locality_map import DECADES
from recombine.studies.sheets import write_sheet
from recombine.worlds.layout import Layout

HIT, MISSED, EDGE = (0.55, 1.0, 0.2), (1.0, 0.1, 0.25), (0.05, 0.05, 0.05)
"""Colours of the cross at a location that was located, of one that was not, and of its edge."""
SIDE, ARM = 128, 1 / 40
"""Pictures are magnified to about this side; a cross reaches so far, as a share of it."""


def crossed(
    images: Float[Tensor, "b 3 h w"], locations: Layout, located: Bool[Tensor, "b k"], side: int = SIDE
) -> Float[Tensor, "b 3 H W"]:
    """The pictures, magnified, with a small cross at every location."""
    zoom = max(1, side // images.shape[2])
    large = images.clamp(0, 1).repeat_interleave(zoom, 2).repeat_interleave(zoom, 3)
    h, w = large.shape[2:]
    x, y = (locations.at * torch.tensor((w, h), device=locations.at.device)).floor().unbind(-1)
    far = lambda at, n: (at[..., None] - torch.arange(n, device=at.device)).abs()  # noqa: E731
    across, down, arm = far(x, w)[:, :, None], far(y, h)[..., None], round(ARM * h)
    edge, core = (plus(across, down, arm, more) & locations.present[..., None, None] for more in (1, 0))
    for where, colour in ((edge, EDGE), (core & ~located[..., None, None], MISSED), (core & located[..., None, None], HIT)):
        ink = torch.tensor(colour, device=large.device).view(3, 1, 1)
        large = torch.where(where.any(1, keepdim=True), ink, large)
    return large


def plus(across: Tensor, down: Tensor, arm: int, more: int) -> Bool[Tensor, "b k H W"]:
    """A cross one pixel thick, and `more` on every side."""
    return ((across <= arm + more) & (down <= more)) | ((down <= arm + more) & (across <= more))


def cut(sheet: Path, rows: int, row: int, column: int = 0) -> Shaped[np.ndarray, "h w 3"]:
    """One square cell of a sheet."""
    with Image.open(sheet) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    side = pixels.shape[0] // rows
    return pixels[row * side : (row + 1) * side, column * side : (column + 1) * side]


def write_heat(path: Path, heat: Float[Tensor, "n h w"]) -> None:
    """Maps with values up to 1, side by side, on a logarithmic scale of DECADES in 255 steps."""
    grey = 1 + heat.clamp(min=10.0**-DECADES).log10() / DECADES
    write_sheet(path, grey[None, :, None])


def read_heat(path: Path, count: int) -> Float[Tensor, "n h w"]:
    with Image.open(path) as picture:
        grey = torch.from_numpy(np.array(picture)).float() / 255
    return torch.stack((10 ** (DECADES * (grey - 1))).chunk(count, 1))
