"""Which columns of a table are factors, and what value each picture has of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from jaxtyping import Int

from recombine.config import UsageError, nearest
from recombine.worlds.datasets.dataset import NAME, Dataset
from recombine.worlds.factors import (
    ASIDE,
    RESERVED,
    Factor,
    FactorSpace,
    aside_note,
    merged_note,
    plain_value,
)

FEW = 10
"""In a table of fewer rows nothing looks like an id."""


@dataclass(frozen=True)
class Labels:
    """`index`: one value index per picture and factor; -1 where the value is unknown."""

    space: FactorSpace
    index: Int[np.ndarray, "n k"]


def factor_columns(
    dataset: Dataset, wanted: Sequence[str] = ()
) -> tuple[tuple[str, ...], list[str]]:
    """The factors among the columns, and notes on columns that were left out."""
    found = [c for c in dataset.table.columns if c != NAME and "." not in c]
    for name in wanted:
        if name not in found:
            have = ", ".join(found) or "none"
            raise UsageError(
                f"{dataset.where}: has no column {name!r}; it has {have}{nearest(name, found)}"
            )
        if name in RESERVED:
            raise UsageError(
                f"{dataset.where}: a factor cannot be called {name!r}; rename that column"
            )
    if wanted:
        return tuple(wanted), []
    rows, kept, notes = len(dataset), [], []
    for name in found:
        values = dataset.table[name].n_unique()
        if name.lower() in ASIDE or name in RESERVED:
            notes.append(aside_note(name))
        elif rows >= FEW and values > rows // 2:
            notes.append(f"column {name!r} is left out: {values:,} values in {rows:,} rows, an id")
        else:
            kept.append(name)
    return tuple(kept), notes


def label(dataset: Dataset, names: Sequence[str]) -> tuple[Labels, list[str]]:
    """Factors and values as the table first spells them. Case and spaces make no difference; where
    spellings were merged a note says so."""
    factors, columns, notes = [], [], []
    for name in names:
        cells = dataset.table[name]
        keys = plain(cells)
        if (keys == "").any():
            row = int((keys == "").arg_max()) + 1
            raise UsageError(f"{dataset.where}: row {row} has no value for {name!r}")
        spellings = pl.DataFrame({"key": keys, "cell": cells.str.strip_chars()}).unique(
            maintain_order=True
        )
        first = spellings.unique("key", keep="first", maintain_order=True)
        if len(first) < len(spellings):
            merged = spellings.filter(pl.col("key").is_duplicated())["cell"].to_list()
            notes.append(merged_note(name, merged))
        factors.append(Factor(name, tuple(first["cell"])))
        columns.append(keys.cast(pl.Enum(first["key"])).to_physical().to_numpy())
    return Labels(FactorSpace(tuple(factors)), np.stack(columns, 1).astype(np.int64)), notes


def plain(cells: pl.Series) -> pl.Series:
    """What two spellings of a value share."""
    return cells.str.strip_chars().str.replace_all(r"\s+", " ").str.to_lowercase()


def matched(dataset: Dataset, space: FactorSpace) -> Int[np.ndarray, "n k"]:
    """The value indices of a dataset's pictures in a known space; UsageError names the first value
    that is unknown."""
    columns = []
    for factor in space.factors:
        if factor.name not in dataset.table.columns:
            have = ", ".join(c for c in dataset.table.columns if c != NAME)
            raise UsageError(
                f"{dataset.where}: has no column {factor.name!r}; it has {have}{nearest(factor.name, dataset.table.columns)}"
            )
        cells = dataset.table[factor.name]
        place = {plain_value(v): i for i, v in enumerate(factor.values)}
        index = plain(cells).replace_strict(place, default=-1, return_dtype=pl.Int64).to_numpy()
        if (index < 0).any():
            row = int((index < 0).argmax())
            raise UsageError(
                f"{dataset.where}: row {row + 1} has {factor.name} {cells[row]!r}; known are {factor.words}"
            )
        columns.append(index)
    return np.stack(columns, 1)
