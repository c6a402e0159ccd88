"""Sheets of samples (one row per composition, square cells) as files beside the page."""

from dataclasses import dataclass
from pathlib import Path

from recombine.config import UsageError
from recombine.files import read_bytes
from recombine.limits import allow

HEAD = 30
"""Bytes of a WebP file that say how large its picture is."""
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
    """Width and height of a WebP picture, from its first bytes: nothing is decoded, whatever they
    say."""
    if not path.exists():
        raise UsageError(f"{path}: there is no such file")
    head = read_bytes(path, most=HEAD)
    size = webp_size(head) if len(head) == HEAD else None
    if size is None:
        raise UsageError(f"{path}: is not a readable WebP picture")
    allow("pixels", size[0] * size[1], str(path))
    return size


def webp_size(head: bytes) -> tuple[int, int] | None:
    """Of the three kinds of WebP: extended, lossless, lossy."""
    if head[:4] != b"RIFF" or head[8:12] != b"WEBP":
        return None
    kind, word = head[12:16], lambda i, n: int.from_bytes(head[i : i + n], "little")
    if kind == b"VP8X":
        return word(24, 3) + 1, word(27, 3) + 1
    if kind == b"VP8L" and head[20] == 0x2F:
        bits = word(21, 4)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        width, height = word(26, 2) & 0x3FFF, word(28, 2) & 0x3FFF
        return (width, height) if width and height else None
    return None
