"""Sheets of samples (one row per composition, square cells) as files beside the page."""

from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from recombine.config import UsageError

MOST_COLUMNS = ((16, 8), (36, 4))
"""Up to so many compositions, so many samples of each are shown; beyond, one."""


@dataclass(frozen=True)
class Grid:
    """A sheet as the page shows it: where it lies, its columns, how many of them are shown, the
    side of a cell."""

    uri: str
    columns: int
    shown: int
    cell: float


def grid_of(folder: Path, file: str, rows: int) -> Grid:
    """The sheet `folder/samples/<file>` with one row of square cells for each composition."""
    path = folder / "samples" / file
    width, height = size_of(path)
    cell = height / rows
    columns = round(width / cell)
    if columns < 1 or abs(columns * cell - width) > 0.02 * cell:
        raise UsageError(
            f"{path}: {width}x{height} pixels are no sheet of {rows} rows of square cells"
        )
    most = next((columns for limit, columns in MOST_COLUMNS if rows <= limit), 1)
    return Grid(f"samples/{file}", columns, min(columns, most), cell)


def size_of(path: Path) -> tuple[int, int]:
    """Width and height of a WebP picture."""
    try:
        with Image.open(path, formats=["WEBP"]) as picture:
            return picture.size
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such file") from None
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise UsageError(f"{path}: is not a readable WebP picture") from None
