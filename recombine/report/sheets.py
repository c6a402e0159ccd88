"""Contact sheets (one row per composition, square cells) as data URIs, made smaller only as far as the page's size needs."""

import base64
import io
import re
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from recombine.config import UsageError

BUDGET = 3_600_000
"""Characters that all sheets of a page may take together; the whole page should stay under 6 MB."""
TALLEST = 16_000
"""Pixels; the lossy format holds no taller picture."""
STEP = re.compile(r"step_(\d+)\.png")


@dataclass(frozen=True)
class Rung:
    """One way to store sheets: at most so many columns, cells of at most so many pixels, lossless or lossy."""

    columns: int
    cell: int
    quality: int | None = None


LADDER = (Rung(8, 64), Rung(8, 64, 85), Rung(4, 64, 80), Rung(4, 32, 70), Rung(2, 32, 60), Rung(1, 24, 50))
MOST_COLUMNS = ((16, 8), (36, 4))
"""Up to so many compositions, so many samples of each; beyond, one."""


@dataclass(frozen=True)
class Sheet:
    """A sheet as the page holds it."""

    uri: str
    columns: int
    cell: int


def find_sheets(samples: Path) -> dict[int, Path]:
    """Step -> sheet, for all that a run has kept."""
    found = {int(m.group(1)): path for path in samples.glob("step_*.png") if (m := STEP.fullmatch(path.name))}
    return dict(sorted(found.items()))


def encode(paths: list[Path], rows: int) -> list[Sheet]:
    """All sheets on the first rung of the ladder that fits the budget, or on the last one."""
    pictures = [_open(path, rows) for path in paths]
    for rung in LADDER:
        sheets, left = [], BUDGET
        while len(sheets) < len(pictures) and (left >= 0 or rung is LADDER[-1]):
            sheets.append(_store(pictures[len(sheets)], rows, rung))
            left -= len(sheets[-1].uri)
        if left >= 0:
            break
    return sheets


def _open(path: Path, rows: int) -> Image.Image:
    """The sheet, with no more columns than the page shows."""
    picture = read_picture(path)
    cell, rest = divmod(picture.height, rows)
    if rest or not cell or picture.width % cell:
        raise UsageError(f"{path}: {picture.width}x{picture.height} pixels are no sheet of {rows} rows of square cells")
    columns = next((columns for most, columns in MOST_COLUMNS if rows <= most), 1)
    return picture.crop((0, 0, min(columns * cell, picture.width), picture.height))


def _store(picture: Image.Image, rows: int, rung: Rung) -> Sheet:
    cell = picture.height // rows
    columns, size = min(rung.columns, picture.width // cell), min(cell, rung.cell, TALLEST // rows)
    picture = picture.crop((0, 0, columns * cell, picture.height))
    if size < cell:
        picture = picture.resize((columns * size, rows * size), Image.Resampling.LANCZOS)
    buffer, kind = io.BytesIO(), "png" if rung.quality is None else "webp"
    picture.save(buffer, kind, **({"quality": rung.quality} if rung.quality else {}))
    return Sheet(data_uri(buffer.getvalue(), kind), columns, size)


def data_uri(content: bytes, kind: str) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def picture_uri(path: Path, width: int = 1600) -> str:
    """A figure's PNG, no wider than it will be shown."""
    picture = read_picture(path)
    picture.thumbnail((width, 4 * width))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return data_uri(buffer.getvalue(), "png")


def read_picture(path: Path) -> Image.Image:
    try:
        with Image.open(path, formats=["PNG"]) as picture:
            return picture.convert("RGB")
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise UsageError(f"{path}: is not a readable PNG picture") from None
