"""The cells of a table on disk, CSV or Parquet, as text, row by row: never more than some of them
in memory as Python objects."""

import csv
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from recombine.config import UsageError
from recombine.files import readable_parquet
from recombine.limits import limit, regular

Cells = Iterable[list[str]]
TOGETHER = 50_000
"""Rows of a Parquet table that become Python objects at a time."""


@contextmanager
def read_cells(path: Path, where: str) -> Iterator[tuple[list[str], Cells]]:
    """Column names and rows, while the file is open; UsageError where it is no such table."""
    with _readable(where), regular(path) as file:
        columns, rows = (_parquet if where.endswith(".parquet") else _csv)(file, where)
        yield [c.strip() for c in columns], rows


@contextmanager
def _readable(where: str) -> Iterator[None]:
    try:
        yield
    except UsageError:
        raise
    except (ValueError, csv.Error) as error:
        raise UsageError(f"{where}: is not a CSV table in UTF-8 ({error})") from None
    except OSError as error:
        raise UsageError(f"{where}: cannot be read ({error.strerror or error})") from None


def _csv(file: BinaryIO, where: str) -> tuple[list[str], Cells]:
    rows = csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline=""))
    return next(rows, []), rows


def _parquet(file: BinaryIO, where: str) -> tuple[list[str], Cells]:
    try:
        import polars as pl
    except ImportError:
        raise UsageError(f"{where}: reading Parquet needs polars; install it or use CSV") from None
    with readable_parquet(where):
        table = pl.read_parquet(file.read(), n_rows=limit("rows") + 1)
        nested = [
            c for c, t in table.schema.items() if t.is_nested() or t in (pl.Binary, pl.Object)
        ]
        if nested:
            raise UsageError(f"{where}: column {nested[0]!r} holds neither text nor numbers")
        plain = [
            c if t.is_numeric() else pl.col(c).cast(pl.String) for c, t in table.schema.items()
        ]
        return table.columns, _slices(table.select(plain))


def _slices(table: Any) -> Cells:
    for some in table.iter_slices(TOGETHER):
        for row in some.rows():
            yield ["" if cell is None else str(cell) for cell in row]
