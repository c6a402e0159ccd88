"""A dataset: a table with one row per picture, and pictures that are read only when needed."""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from jaxtyping import UInt8
from PIL import Image, ImageOps

from recombine.config import UsageError
from recombine.worlds.picture_files import decode, rgb

Picture = UInt8[np.ndarray, "_ _ 3"]
UNREADABLE = (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError)
NAME = "file"
"""The column that says which picture a row is about."""


@dataclass(frozen=True)
class Dataset:
    """`table`: text columns, one row per picture, with a column `file`. `read(rows)` gives the
    pictures of these rows, whose numbers ascend: a file's bytes, a Pillow image or an array.
    `notes`: what was understood and what was left out, in lines for the user."""

    where: str
    layout: str
    table: pl.DataFrame
    read: Callable[[Sequence[int]], Iterator[Any]]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.table)

    def noted(self, *notes: str) -> "Dataset":
        return replace(self, notes=(*self.notes, *notes))

    def renamed(self, names: dict[str, str]) -> "Dataset":
        return replace(self, table=self.table.rename(names))

    def pictures(self, rows: Iterable[int] | None = None) -> Iterator[Picture]:
        """RGB pictures of some rows, in ascending order of rows; all without an argument."""
        chosen = range(len(self)) if rows is None else sorted(rows)
        for row, found in zip(chosen, self.read(chosen), strict=True):
            yield self._picture(row, found)

    def _picture(self, row: int, found: Any) -> Picture:
        try:
            return as_rgb(found)
        except UNREADABLE:
            name = self.table[NAME][row]
            raise UsageError(
                f"{self.where}: row {row + 1}, {name!r}, is not a picture that can be read"
            ) from None


def as_rgb(found: Any) -> Picture:
    """A file's bytes, a Pillow image or an array of any usual shape and range -> h x w x 3, uint8.
    ValueError where it is no picture."""
    if isinstance(found, bytes):
        return decode(found, "it")
    if isinstance(found, Image.Image):
        return np.asarray(rgb(found))
    pixels = np.asarray(found)
    if pixels.ndim == 3 and pixels.shape[-1] not in (1, 3, 4) and pixels.shape[0] in (1, 3, 4):
        pixels = pixels.transpose(1, 2, 0)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    if pixels.ndim != 3 or pixels.shape[-1] not in (1, 3, 4) or not pixels.size:
        raise ValueError(f"an array of shape {tuple(np.shape(found))} is no picture")
    pixels = _as_bytes(pixels)
    if pixels.shape[-1] == 4:
        return np.asarray(rgb(Image.fromarray(pixels)))
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))


def _as_bytes(pixels: np.ndarray) -> np.ndarray:
    """Floats in [0, 1] or whole numbers in 0..255, as uint8."""
    if pixels.dtype == np.bool_:
        return pixels.astype(np.uint8) * 255
    if np.issubdtype(pixels.dtype, np.floating):
        low, high = float(pixels.min()), float(pixels.max())
        # a little outside is rounding; NaN compares with nothing
        if not -0.25 <= low <= high <= 1.25:
            raise ValueError(f"numbers from {low:.3g} to {high:.3g}, not in [0, 1]")
        return (pixels.clip(0, 1) * 255).round().astype(np.uint8)
    if not np.issubdtype(pixels.dtype, np.integer) or pixels.min() < 0 or pixels.max() > 255:
        raise ValueError(f"{pixels.dtype} from {pixels.min()} to {pixels.max()}, not in 0..255")
    return pixels.astype(np.uint8)


def resized(picture: Picture, size: int) -> Picture:
    """Cropped to a square at the centre and scaled to this side."""
    if picture.shape[:2] == (size, size):
        return picture
    return np.asarray(ImageOps.fit(Image.fromarray(picture), (size, size)))


def picture_digest(picture: Picture) -> bytes:
    """Of what is seen, whatever file it lay in."""
    size = np.array(picture.shape[:2], "<i8").tobytes()
    return hashlib.sha256(size + picture.tobytes()).digest()


def natural(name: str) -> list[Any]:
    """A key that sorts 2.png before 10.png."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
