"""Folder: one's own pictures as a world. A folder holds pictures and a table that names the factors' values of each.

The table (CSV, or Parquet where pyarrow is installed) has a column `file` and one column per factor. A column
`<factor>.<anything>` holds numbers that describe the factor exactly, e.g. `color.r`, `color.g`, `color.b`. Values are
numbered in the order in which the table first names them."""

import csv
import hashlib
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple, Self

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from PIL import Image, ImageOps
from torch import Tensor

from recombine.config import UsageError
from recombine.worlds.base import Rendered, World
from recombine.worlds.factors import Composition, Factor, FactorSpace

UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)
Stamp = tuple[int, int]
Row = dict[str, str]


class Shelf(NamedTuple):
    """What a folder holds: every picture with its factors and values, ordered by composition."""

    space: FactorSpace
    images: UInt8[Tensor, "n 3 h w"]
    factors: Int[Tensor, "n k"]
    values: Float[Tensor, "n v"]
    content: str

    def to(self, device: torch.device) -> "Shelf":
        return self._replace(**{k: getattr(self, k).to(device) for k in ("images", "factors", "values")})


@dataclass(frozen=True)
class Folder(World):
    """Drawing picks, with replacement, one of the pictures of a composition. `factors` chooses columns and their order
    (none: all); `size` crops and scales to a square (None: pictures stay as they are and must be equal in size).
    `content` is the digest of table and pictures: make a Folder by `open`, which checks everything and fills it in, so
    that runs on changed data never share a name."""

    readable: ClassVar[bool] = False

    path: str
    table: str = "factors.csv"
    factors: tuple[str, ...] = ()
    size: int | None = None
    content: str = ""

    @classmethod
    def open(
        cls, path: str | Path, table: str = "factors.csv", factors: tuple[str, ...] = (), size: int | None = None
    ) -> Self:
        """The folder at `path`, read through and checked from the first row to the last."""
        _load.cache_clear()
        _resident.cache_clear()
        folder = cls(str(path), table, tuple(factors), size)
        return cls(folder.path, table, folder.factors, size, folder.shelf.content)

    @property
    def shelf(self) -> Shelf:
        """Read when first needed, then kept for as long as the table stays the same."""
        shelf = _load(self.path, self.table, self.factors, self.size, _stamp(self.path, self.table))
        if self.content and self.content != shelf.content:
            raise UsageError(
                f"{self.path}: its content is now {shelf.content}, not {self.content}; open the folder anew"
            )
        return shelf

    @property
    def space(self) -> FactorSpace:
        return self.shelf.space

    @property
    def image_shape(self) -> tuple[int, int, int]:
        return tuple(self.shelf.images.shape[1:])

    @property
    def present(self) -> tuple[Composition, ...]:
        """The compositions of which the folder has pictures."""
        return tuple(tuple(row) for row in self.shelf.factors.unique(dim=0).tolist())

    def render(self, factors: Int[Tensor, "b k"], rng: torch.Generator) -> Rendered:
        shelf = _resident(self, _stamp(self.path, self.table), rng.device)
        factors = factors.to(rng.device)
        have, want = _codes(shelf.factors, shelf.space), _codes(factors, shelf.space)
        first, end = torch.searchsorted(have, want), torch.searchsorted(have, want, right=True)
        if (first == end).any():
            missing = tuple(factors[(first == end).nonzero()[0, 0]].tolist())
            raise UsageError(f"{self.path}: has no picture of {shelf.space.describe(missing)}")
        pick = first + (torch.rand(len(want), generator=rng, device=rng.device) * (end - first)).long()
        return Rendered(shelf.images[pick].float() / 255, shelf.values[pick])

    def read(self, images: Float[Tensor, "b c h w"]) -> Int[Tensor, "b k"]:
        raise UsageError(f"{self.path}: a folder of pictures has no exact reader; judge samples with a trained probe")

    def canonical(self, factors: Int[Tensor, "b k"]) -> Float[Tensor, "b v"]:
        """Every factor's numbers, averaged over all pictures that share its value."""
        shelf = _resident(self, _stamp(self.path, self.table), factors.device)
        blocks = shelf.values.split(shelf.space.dims, 1)
        means = []
        for k, (block, size) in enumerate(zip(blocks, shelf.space.sizes, strict=True)):
            member = torch.nn.functional.one_hot(shelf.factors[:, k], size).float()
            means.append((member.T @ block / member.sum(0)[:, None])[factors[:, k]])
        return torch.cat(means, 1)


def _codes(factors: Int[Tensor, "n k"], space: FactorSpace) -> Int[Tensor, "n"]:
    """One number per composition, in the order of `space.compositions`."""
    code = torch.zeros_like(factors[:, 0])
    for k, size in enumerate(space.sizes):
        code = code * size + factors[:, k]
    return code


def _stamp(path: str, table: str) -> Stamp:
    root = Path(path)
    if not root.is_dir():
        raise UsageError(f"{path}: there is no such folder")
    if not (root / table).is_file():
        raise UsageError(f"{path}: there is no table {table} in this folder")
    stat = (root / table).stat()
    return stat.st_mtime_ns, stat.st_size


@lru_cache(maxsize=8)
def _resident(folder: Folder, stamp: Stamp, device: torch.device) -> Shelf:
    """The folder's pictures, kept on the device that draws from them."""
    return folder.shelf.to(device)


@lru_cache(maxsize=8)
def _load(path: str, table: str, factors: tuple[str, ...], size: int | None, stamp: Stamp) -> Shelf:
    data = (Path(path) / table).read_bytes()
    columns, rows = _rows(data, f"{path}/{table}")
    names = _factor_columns(columns, factors, f"{path}/{table}")
    space, index, values = _describe(rows, columns, names, f"{path}/{table}")
    sha = hashlib.sha256(data)
    images = torch.from_numpy(np.stack(list(_pictures(Path(path), rows, size, sha)))).permute(0, 3, 1, 2).contiguous()
    order = _codes(index, space).argsort(stable=True)
    return Shelf(space, images[order], index[order], values[order], sha.hexdigest()[:16])


def _rows(data: bytes, where: str) -> tuple[list[str], list[Row]]:
    """Column names and rows of the table, every cell a stripped string."""
    if where.endswith(".parquet"):
        columns, cells = _parquet(data, where)
    else:
        try:
            columns, *cells = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""))
        except (ValueError, csv.Error) as error:
            raise UsageError(f"{where}: is not a CSV table in UTF-8 ({error})") from None
    columns = [c.strip() for c in columns]
    cells = [[c.strip() for c in row] for row in cells if row]
    if len(set(columns)) < len(columns):
        raise UsageError(f"{where}: two columns have the same name ({', '.join(columns)})")
    if "file" not in columns:
        raise UsageError(f"{where}: needs a column 'file'; it has {', '.join(columns)}")
    if not cells:
        raise UsageError(f"{where}: has no rows")
    for number, row in enumerate(cells, 1):
        if len(row) != len(columns):
            raise UsageError(f"{where}: row {number} has {len(row)} cells where the header has {len(columns)}")
    return columns, [dict(zip(columns, row, strict=True)) for row in cells]


def _parquet(data: bytes, where: str) -> tuple[list[str], list[list[str]]]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise UsageError(f"{where}: reading Parquet needs pyarrow; install recombine[parquet] or use CSV") from None
    try:
        table = parquet.read_table(pyarrow.BufferReader(data))
    except pyarrow.ArrowException as error:
        raise UsageError(f"{where}: is not a Parquet table ({str(error).splitlines()[0]})") from None
    cells = [["" if c is None else str(c) for c in row.values()] for row in table.to_pylist()]
    return table.column_names, cells


def _factor_columns(columns: list[str], asked: tuple[str, ...], where: str) -> tuple[str, ...]:
    found = tuple(c for c in columns if c != "file" and "." not in c)
    for name in asked:
        if name not in found:
            raise UsageError(f"{where}: has no factor column {name!r}; it has {', '.join(found) or 'none'}")
    for column in columns:
        if "." in column and column.partition(".")[0] not in found:
            raise UsageError(f"{where}: column {column!r} describes no factor; they are {', '.join(found) or 'none'}")
    if not found:
        raise UsageError(f"{where}: has no factor column beside 'file'")
    return asked or found


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
        factor = Factor(name, tuple(dict.fromkeys(cells)), len(own))
        place = {value: i for i, value in enumerate(factor.values)}
        factors.append(factor)
        index.append([place[c] for c in cells])
        numbers += [[_number(row[c], c, i, where) for i, row in enumerate(rows, 1)] for c in own]
    values = torch.tensor(numbers, dtype=torch.float32).reshape(-1, len(rows)).T.contiguous()
    return FactorSpace(tuple(factors)), torch.tensor(index).T.contiguous(), values


def _number(cell: str, column: str, row: int, where: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UsageError(f"{where}: row {row} has {cell!r} in column {column!r}, which needs a finite number")
    return number


def _pictures(
    root: Path, rows: list[Row], size: int | None, sha: "hashlib._Hash"
) -> Iterator[UInt8[np.ndarray, "h w 3"]]:
    """Every picture as RGB, in the table's order; `sha` is fed the files as they are read."""
    first: tuple[str, tuple[int, int]] | None = None
    for number, name in enumerate((row["file"] for row in rows), 1):
        try:
            data = (root / name).read_bytes()
        except OSError:
            raise UsageError(f"{root}: row {number} names {name!r}, and there is no such file") from None
        sha.update(hashlib.sha256(data).digest())
        try:
            image = ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")
        except UNREADABLE as error:
            raise UsageError(f"{root}: row {number}, {name!r}, is not a picture that can be read ({error})") from None
        image = image if size is None else ImageOps.fit(image, (size, size))
        first = first or (name, image.size)
        if image.size != first[1]:
            here, there = "x".join(map(str, image.size)), "x".join(map(str, first[1]))
            raise UsageError(
                f"{root}: {name!r} is {here} but {first[0]!r} is {there} pixels; set size to make them equal"
            )
        yield np.asarray(image)
