"""What a folder of pictures holds, read from disk and checked: a table of factor values, and the
pictures it names.

The table (CSV, or Parquet) has a column `file` and one column per factor. A column
`<factor>.<anything>` holds numbers that describe the factor exactly, e.g. `color.r`, `color.g`,
`color.b`. Values are numbered in the order in which the table first names them. Rows are counted
from 1, below the header."""

import csv
import hashlib
import io
import math
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, pstdev
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from PIL import Image, ImageOps
from torch import Tensor

from recombine.config import UsageError
from recombine.worlds.factors import RESERVED, Factor, FactorSpace

UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)
Row = dict[str, str]


class Shelf(NamedTuple):
    """What a folder holds: every picture with its factors and values, ordered by composition."""

    space: FactorSpace
    images: UInt8[Tensor, "n 3 h w"]
    factors: Int[Tensor, "n k"]
    values: Float[Tensor, "n v"]
    content: str

    def to(self, device: torch.device) -> "Shelf":
        return self._replace(
            **{k: getattr(self, k).to(device) for k in ("images", "factors", "values")}
        )


def load(root: Path, table: str, asked: tuple[str, ...], size: int | None) -> Shelf:
    """Read everything; the first thing that is wrong ends it with a line that names it."""
    where, data = f"{root}/{table}", (root / table).read_bytes()
    columns, rows = _rows(data, where)
    names = _factor_columns(columns, asked, where)
    _agreeing(rows, names, where)
    space, index, values = _describe(rows, columns, names, where)
    digests, images = zip(*_pictures(root, rows, size), strict=True)
    content = hashlib.sha256(hashlib.sha256(data).digest() + b"".join(digests)).hexdigest()[:16]
    order = codes(index, space).argsort(stable=True)
    pictures = torch.from_numpy(np.stack(images)[order.numpy()]).permute(0, 3, 1, 2).contiguous()
    return Shelf(space, pictures, index[order], values[order], content)


def codes(factors: Int[Tensor, "n k"], space: FactorSpace) -> Int[Tensor, "n"]:
    """One number per composition, in the order of `space.compositions`."""
    code = torch.zeros_like(factors[:, 0])
    for k, size in enumerate(space.sizes):
        code = code * size + factors[:, k]
    return code


def _rows(data: bytes, where: str) -> tuple[list[str], list[Row]]:
    """Column names and rows of the table, every cell a stripped string."""
    if where.endswith(".parquet"):
        columns, cells = _parquet(data, where)
    else:
        try:
            columns, *cells = list(
                csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
            ) or [[]]
        except (ValueError, csv.Error) as error:
            raise UsageError(f"{where}: is not a CSV table in UTF-8 ({error})") from None
    columns = [c.strip() for c in columns]
    cells = [[c.strip() for c in row] for row in cells if row]
    if len(set(columns)) < len(columns):
        raise UsageError(f"{where}: two columns have the same name ({', '.join(columns)})")
    if "file" not in columns:
        raise UsageError(f"{where}: needs a column 'file'; it has {', '.join(columns) or 'none'}")
    if not cells:
        raise UsageError(f"{where}: has no rows")
    for number, row in enumerate(cells, 1):
        if len(row) != len(columns):
            raise UsageError(
                f"{where}: row {number} has {len(row)} cells where the header has {len(columns)}"
            )
    return columns, [dict(zip(columns, row, strict=True)) for row in cells]


def _parquet(data: bytes, where: str) -> tuple[list[str], list[list[str]]]:
    try:
        import polars as pl
    except ImportError:
        raise UsageError(f"{where}: reading Parquet needs polars; install it or use CSV") from None
    try:
        table = pl.read_parquet(data)
    except pl.exceptions.PolarsError as error:
        raise UsageError(
            f"{where}: is not a Parquet table ({str(error).splitlines()[0]})"
        ) from None
    cells = [["" if c is None else str(c) for c in row] for row in table.iter_rows()]
    return table.columns, cells


def _factor_columns(columns: list[str], asked: tuple[str, ...], where: str) -> tuple[str, ...]:
    found = tuple(c for c in columns if c != "file" and "." not in c)
    for name in asked:
        if name not in found:
            raise UsageError(
                f"{where}: has no factor column {name!r}; it has {', '.join(found) or 'none'}"
            )
    for column in columns:
        if "." in column and column.partition(".")[0] not in found:
            raise UsageError(
                f"{where}: column {column!r} describes no factor; they are {', '.join(found) or 'none'}"
            )
    if not found:
        raise UsageError(f"{where}: has no factor column beside 'file'")
    if taken := RESERVED.intersection(asked or found):
        raise UsageError(f"{where}: a factor cannot be called {min(taken)!r}; rename that column")
    return asked or found


def _agreeing(rows: list[Row], names: tuple[str, ...], where: str) -> None:
    """A picture that stands in two rows must show the same in both."""
    first: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        before = first.setdefault(row["file"], number)
        if any(row[name] != rows[before - 1][name] for name in names):
            raise UsageError(
                f"{where}: row {number} says otherwise of {row['file']} than row {before}"
            )


def _describe(
    rows: list[Row], columns: list[str], names: tuple[str, ...], where: str
) -> tuple[FactorSpace, Tensor, Tensor]:
    """The factor space, and each row's value indices and numbers."""
    factors, index, numbers = [], [], []
    for name in names:
        cells = [row[name] for row in rows]
        if "" in cells:
            raise UsageError(f"{where}: row {cells.index('') + 1} has no value for {name!r}")
        own = [c for c in columns if c.startswith(f"{name}.")]
        mine = [[_number(row[c], c, i, where) for i, row in enumerate(rows, 1)] for c in own]
        centre, unit = tuple(fmean(m) for m in mine), tuple(2 * pstdev(m) or 1.0 for m in mine)
        factor = Factor(name, tuple(dict.fromkeys(cells)), len(own), centre, unit)
        place = {value: i for i, value in enumerate(factor.values)}
        factors.append(factor)
        index.append([place[c] for c in cells])
        numbers += mine
    values = torch.tensor(numbers, dtype=torch.float32).reshape(-1, len(rows)).T.contiguous()
    return FactorSpace(tuple(factors)), torch.tensor(index).T.contiguous(), values


def _number(cell: str, column: str, row: int, where: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(
            f"{where}: row {row} has {cell!r} in column {column!r}, which needs a finite number"
        )
    return number


def _pictures(
    root: Path, rows: list[Row], size: int | None
) -> Iterator[tuple[bytes, UInt8[np.ndarray, "h w 3"]]]:
    """The digest of every file and its picture as RGB, in the table's order."""
    first: tuple[str, tuple[int, int]] | None = None
    for number, name in enumerate((row["file"] for row in rows), 1):
        try:
            data = (root / name).read_bytes()
        except OSError:
            raise UsageError(
                f"{root}: row {number} names {name!r}, and there is no such file"
            ) from None
        try:
            image = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
        except UNREADABLE:
            raise UsageError(
                f"{root}: row {number}, {name!r}, is not a picture that can be read"
            ) from None
        image = image if size is None else ImageOps.fit(image, (size, size))
        first = first or (name, image.size)
        if image.size != first[1]:
            here, there = "x".join(map(str, image.size)), "x".join(map(str, first[1]))
            raise UsageError(
                f"{root}: {name!r} is {here} but {first[0]!r} is {there} pixels; set size to make them equal"
            )
        yield hashlib.sha256(data).digest(), np.asarray(image)
