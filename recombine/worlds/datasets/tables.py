"""Tables that name pictures: CSV, TSV, Parquet, JSON lines; a column file, file_name or path. The
layout of Hugging Face's imagefolder (metadata.csv, metadata.jsonl) is one of them, and so are
Parquet and Arrow files that hold the pictures themselves."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from recombine.config import UsageError
from recombine.limits import regular
from recombine.worlds.datasets.dataset import NAME, Dataset
from recombine.worlds.picture_files import read_inside

ReadPictures = Callable[[Sequence[int]], Iterator[Any]]
FILES = ("file", "file_name", "filename", "path", "file_path", "filepath", "image_path", "image")
"""What people call the column that names the picture, the most certain first."""
TABLES = tuple(
    f"{name}.{ending}"
    for name in ("factors", "metadata", "labels")
    for ending in ("csv", "parquet", "jsonl", "tsv", "json")
)
"""Names of tables that are looked for, in this order."""
ENDINGS = (".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".json", ".arrow")


def open_table(path: Path) -> Dataset:
    """The pictures that a table names, relative to its own folder, or holds."""
    table = read_table(path)
    table = table.rename({c: c.strip() for c in table.columns if c != c.strip()})
    column = next((c for c in FILES if c in table.columns), None)
    if column is None:
        known = ", ".join(map(repr, FILES[:4]))
        raise UsageError(f"{path}: needs a column {known}; it has {', '.join(table.columns)}")
    if not len(table):
        raise UsageError(f"{path}: has no rows")
    if isinstance(table.schema[column], pl.Struct):
        return _embedded(path, table, column)
    table = as_text(table).rename({column: NAME})
    note = () if column == NAME else (f"column {column!r} names the pictures",)
    return Dataset(str(path), "table", table, files_under(path.parent, table[NAME]), note)


def read_table(path: Path) -> pl.DataFrame:
    """A table as polars reads it; every column of a CSV file is text."""
    with regular(path):  # neither a pipe nor larger than allowed
        pass
    try:
        match path.suffix.lower():
            case ".parquet":
                return _named_classes(pl.read_parquet(path, glob=False), _features(path))
            case ".arrow":
                return _named_classes(pl.read_ipc_stream(path), _info(path.parent))
            case ".jsonl" | ".ndjson":
                return pl.read_ndjson(path, infer_schema_length=None)
            case ".json":
                return pl.read_json(path, infer_schema_length=None)
            case ending:
                tab = "\t" if ending == ".tsv" else ","
                return pl.read_csv(path, separator=tab, infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = " ".join(str(error).split())[:80]
        raise UsageError(f"{path}: is not a table that can be read ({reason})") from None


def as_text(table: pl.DataFrame) -> pl.DataFrame:
    """Every column as text; what is missing is empty. Lists and the like are left out."""
    flat = [c for c, kind in table.schema.items() if not kind.is_nested() and kind != pl.Binary]
    return table.select(pl.col(c).cast(pl.String, strict=False).fill_null("") for c in flat)


def files_under(root: Path, names: pl.Series) -> ReadPictures:
    """Reads the files of some rows; none outside the folder."""

    def read(rows: Sequence[int]) -> Iterator[bytes]:
        for row in rows:
            yield read_inside(root, names[row], f"row {row + 1}")

    return read


def _embedded(path: Path, table: pl.DataFrame, column: str) -> Dataset:
    """Pictures inside the table, as Hugging Face stores them: a struct of bytes and path."""
    parts = {f.name for f in table.schema[column].fields}
    if "bytes" not in parts:
        raise UsageError(f"{path}: column {column!r} holds {', '.join(sorted(parts))}, no bytes")
    held = table[column].struct.field("bytes")
    named = table[column].struct.field("path") if "path" in parts else None
    numbers = pl.int_range(len(table), eager=True).cast(pl.String)
    names = numbers if named is None else named.cast(pl.String).fill_null("")

    def read(rows: Sequence[int]) -> Iterator[bytes]:
        for row in rows:
            yield held[row] or b""

    text = as_text(table.drop(column)).with_columns(names.alias(NAME))
    return Dataset(str(path), "table with pictures", text, read)


def _named_classes(table: pl.DataFrame, features: dict[str, Any]) -> pl.DataFrame:
    """Class numbers as the names that Hugging Face's features give them."""
    for column, feature in features.items():
        names = feature.get("names") if isinstance(feature, dict) else None
        if names and column in table.columns and table.schema[column].is_integer():
            known = dict(enumerate(map(str, names)))
            table = table.with_columns(
                pl.col(column).replace_strict(known, default=None, return_dtype=pl.String)
            )
    return table


def _features(path: Path) -> dict[str, Any]:
    """What Hugging Face writes into a Parquet file about its columns."""
    text = pl.read_parquet_metadata(path).get("huggingface", "{}")
    return _features_of(text)


def _info(folder: Path) -> dict[str, Any]:
    """The same of a dataset that was saved to disk."""
    path = folder / "dataset_info.json"
    return _features_of(
        json.dumps({"info": json.loads(path.read_text())}) if path.is_file() else ""
    )


def _features_of(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
