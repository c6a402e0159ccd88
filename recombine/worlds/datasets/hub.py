"""Hugging Face datasets: folders as the hub stores them (Parquet or metadata in parts), as
`save_to_disk` writes them (Arrow), and by name where the package `datasets` is installed."""

import bisect
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from recombine.config import UsageError, install_command
from recombine.worlds.datasets.dataset import NAME, Dataset, natural

PARTS = ("data-*.arrow", "*/data-*.arrow", "*.parquet", "data/*.parquet", "*/metadata.*")


def parts_of(path: Path) -> list[Path]:
    """The files that make up a dataset in parts; none where there are none."""
    for pattern in PARTS:
        if found := sorted(path.glob(pattern), key=lambda p: natural(p.as_posix())):
            return found
    return []


def open_parts(where: Path, paths: Sequence[Path]) -> Dataset:
    """Several tables as one; the part of the dataset each belongs to is its column `split`."""
    from recombine.worlds.datasets.tables import open_table

    opened = [open_table(path) for path in paths]
    tables = [
        d.table.with_columns(pl.lit(_split(p)).alias("split"))
        if "split" not in d.table.columns
        else d.table
        for d, p in zip(opened, paths, strict=True)
    ]
    starts = [0, *itertools.accumulate(map(len, opened))]

    def read(rows: Sequence[int]) -> Iterator[Any]:
        for k, some in itertools.groupby(rows, lambda row: bisect.bisect_right(starts, row) - 1):
            yield from opened[k].read([row - starts[k] for row in some])

    table = pl.concat(tables, how="diagonal").with_columns(pl.all().fill_null(""))
    notes = tuple(dict.fromkeys(note for d in opened for note in d.notes))
    return Dataset(str(where), "Hugging Face", table, read, notes)


def _split(path: Path) -> str:
    """`data/train-00000-of-00002.parquet` and `train/metadata.csv` -> train."""
    name = path.stem.partition("-")[0]
    return path.parent.name if name in ("metadata", "data") else name


def open_hub(name: str) -> Dataset:
    """`owner/name` or `owner/name:split` of the hub; needs the package and its files."""
    try:
        import datasets
    except ModuleNotFoundError:
        raise UsageError(
            f"hf:{name}: needs the package datasets; {install_command('hf')}"
        ) from None
    title, _, split = name.partition(":")
    try:
        found = datasets.load_dataset(title, split=split or "train")
    except Exception as error:
        reason = " ".join(str(error).split())[:100]
        raise UsageError(f"hf:{name}: cannot be loaded ({reason})") from None
    kinds = found.features
    picture = next((c for c, kind in kinds.items() if type(kind).__name__ == "Image"), None)
    if picture is None:
        raise UsageError(f"hf:{name}: has no column of pictures, only {', '.join(kinds)}")
    plain = found.remove_columns([picture])
    columns = {c: plain[c] for c in plain.column_names}
    for column, kind in kinds.items():
        if hasattr(kind, "int2str") and column in columns:
            columns[column] = [kind.int2str(v) for v in columns[column]]
    text = {c: [str(v) for v in values] for c, values in columns.items() if c != NAME}

    def read(rows: Sequence[int]) -> Iterator[Any]:
        for row in rows:
            yield found[row][picture]

    return Dataset(
        f"hf:{name}",
        "Hugging Face",
        pl.DataFrame({NAME: list(map(str, range(len(found)))), **text}),
        read,
    )
