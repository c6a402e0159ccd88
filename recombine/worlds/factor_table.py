"""The table of a folder of pictures, read and checked: the factor values of every row and the
picture it names.

The table (CSV, or Parquet) has a column `file` and one column per factor. A column
`<factor>.<anything>` holds numbers that describe the factor exactly, e.g. `color.r`, `color.g`,
`color.b`. Values are numbered in the order in which the table first names them. Rows are counted
from 1, below the header. Time and memory are linear in the rows."""

import itertools
import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from recombine.config import UsageError
from recombine.limits import allow
from recombine.worlds.factors import (
    ASIDE,
    RESERVED,
    Factor,
    FactorSpace,
    aside_note,
    merged_note,
    plain_value,
)
from recombine.worlds.table_files import Cells, read_cells

LARGEST = float(np.finfo(np.float32).max)
Decode = Callable[[Iterable[int]], Iterator[UInt8[np.ndarray, "h w 3"]]]
TABLE = "factors.csv"
"""The table of a folder where none is named; without it the folder may have any other layout."""
TOGETHER = 2_000
"""Rows that are read at a time."""


class FactorTable(NamedTuple):
    """A table, read and checked: of each row its picture, its factors' value indices and its
    numbers; of each picture the first row that names it."""

    space: FactorSpace
    files: list[str]
    first: Int[np.ndarray, "m"]
    file: Int[np.ndarray, "n"]
    factors: Int[np.ndarray, "n k"]
    values: Float[np.ndarray, "n v"]
    notes: tuple[str, ...] = ()
    read: Decode | None = None
    """How the pictures are read where they are no files that lie in the folder."""

    def who(self, file: int) -> str:
        return f"row {self.first[file] + 1}"


def some_of(listing: FactorTable, most: int) -> FactorTable:
    """At most so many rows of each composition, evenly spaced; all where `most` is 0."""
    if not most:
        return listing
    code = composition_index(torch.from_numpy(listing.factors), listing.space).numpy()
    order = code.argsort(kind="stable")
    _, start, count = np.unique(code[order], return_index=True, return_counts=True)
    picks = [
        s + np.unique(np.arange(min(n, most)) * n // min(n, most))
        for s, n in zip(start, count, strict=True)
    ]
    rows = np.sort(order[np.concatenate(picks)])
    used, file = np.unique(listing.file[rows], return_inverse=True)
    files, factors, values = (
        [listing.files[i] for i in used],
        listing.factors[rows],
        listing.values[rows],
    )
    read = (
        None if listing.read is None else lambda which: listing.read([int(used[i]) for i in which])
    )
    return listing._replace(
        files=files, first=listing.first[used], file=file, factors=factors, values=values, read=read
    )


def index_in_composition(factors: Int[Tensor, "n k"]) -> tuple[Int[Tensor, "n"], Int[Tensor, "n"]]:
    """Of rows in the order of their combinations: each one's number in its combination, and how
    many that has."""
    _, place, count = factors.unique_consecutive(dim=0, return_inverse=True, return_counts=True)
    return torch.arange(len(place)) - (count.cumsum(0) - count)[place], count[place]


def composition_index(factors: Int[Tensor, "n k"], space: FactorSpace) -> Int[Tensor, "n"]:
    """One number per composition, in the order of `space.compositions`."""
    code = torch.zeros_like(factors[:, 0])
    for k, size in enumerate(space.sizes):
        code = code * size + factors[:, k]
    return code


def tally(
    factors: Int[Tensor, "n k"], space: FactorSpace
) -> tuple[Int[Tensor, "m k"], Int[Tensor, "m"]]:
    """The compositions that occur, in their order, and how often each does."""
    code = composition_index(factors, space).numpy(force=True)
    _, first, counts = np.unique(code, return_index=True, return_counts=True)
    return factors[torch.from_numpy(first).to(factors.device)], torch.from_numpy(counts)


def read_table(root: Path, table: str, wanted: tuple[str, ...] = ()) -> FactorTable:
    """The table of a folder; no picture is read."""
    if table == TABLE and not os.path.lexists(root / table):
        from recombine.worlds.datasets.listing import list_dataset

        return FactorTable(*list_dataset(root, wanted))
    where = f"{root}/{table}"
    with read_cells(root / table, where) as (columns, rows):
        names = _factor_columns(columns, wanted, where)
        own = {name: [c for c in columns if c.startswith(f"{name}.")] for name in names}
        used = ["file", *names, *itertools.chain(*own.values())]
        found = _columns(rows, columns, used, set(itertools.chain(*own.values())), where)
    files, file = found["file"]
    factors, notes = [], [aside_note(c) for c in columns if c.lower() in ASIDE and c not in names]
    for name in names:
        values, found[name], merged = _merged(name, *found[name])
        notes += merged
        numbers = [found[c] for c in own[name]]
        centre = tuple(float(n.mean(dtype=np.float64)) for n in numbers)
        unit = tuple(2 * float(n.std(dtype=np.float64)) or 1.0 for n in numbers)
        factors.append(Factor(name, tuple(values), len(numbers), centre, unit))
    space = FactorSpace(tuple(factors))
    if space.count >= 2**62:
        raise UsageError(
            f"{where}: {len(names)} factors make {float(space.count):.1e} compositions; choose "
            "fewer of its columns as factors"
        )
    index = np.stack([found[name] for name in names], 1)
    numbers = [found[c] for name in names for c in own[name]]
    values = np.stack(numbers, 1) if numbers else np.zeros((len(file), 0), np.float32)
    first = _agreeing(files, file, index, where)
    return FactorTable(space, files, first, file, index, values, tuple(notes))


def _columns(
    rows: Cells, columns: list[str], used: list[str], numeric: set[str], where: str
) -> dict[str, tuple[list[str], np.ndarray] | np.ndarray]:
    """Each used column: its values with each row's place among them, or its numbers."""
    places: dict[str, dict[str, int]] = {c: defaultdict() for c in used if c not in numeric}
    for place in places.values():
        place.default_factory = place.__len__
    parts: dict[str, list[np.ndarray]] = {c: [] for c in used}
    count = 0
    for some in _batches(rows):
        _rectangular(some, len(columns), count, where)
        turned = dict(zip(columns, zip(*some, strict=True), strict=True))
        for c in used:
            cells = list(map(str.strip, turned[c]))
            if c in numeric:
                parts[c].append(_numbers(cells, c, count, where))
            else:
                parts[c].append(
                    np.fromiter(map(places[c].__getitem__, cells), np.int64, len(cells))
                )
        count += len(some)
        allow("rows", count, where)
    if not count:
        raise UsageError(f"{where}: has no rows")
    whole = {c: np.concatenate(part) for c, part in parts.items()}
    for c, place in places.items():
        if (empty := place.get("")) is not None:
            row = int((whole[c] == empty).argmax()) + 1
            raise UsageError(f"{where}: row {row} has no value for {c!r}")
    return {c: whole[c] if c in numeric else (list(places[c]), whole[c]) for c in used}


def _merged(
    name: str, values: list[str], index: np.ndarray
) -> tuple[list[str], np.ndarray, list[str]]:
    """Values that differ in capitals or spaces alone become one, as first spelt; a note says so."""
    keys = [plain_value(v) for v in values]
    first: dict[str, int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    if len(first) == len(values):
        return values, index, []
    place = {key: i for i, key in enumerate(first)}
    often = Counter(keys)
    note = merged_note(name, [v for v, k in zip(values, keys, strict=True) if often[k] > 1])
    return [values[i] for i in first.values()], np.array([place[k] for k in keys])[index], [note]


def _batches(rows: Cells) -> Iterator[list[list[str]]]:
    filled = filter(None, rows)
    while some := list(itertools.islice(filled, TOGETHER)):
        yield some


def _rectangular(some: list[list[str]], width: int, before: int, where: str) -> None:
    wrong = [i for i, count in enumerate(map(len, some)) if count != width]
    if wrong:
        number, count = before + wrong[0] + 1, len(some[wrong[0]])
        raise UsageError(f"{where}: row {number} has {count} cells where the header has {width}")


def _numbers(cells: list[str], column: str, before: int, where: str) -> np.ndarray:
    try:
        numbers = np.fromiter(map(float, cells), np.float64, len(cells))
    except ValueError:
        numbers = np.fromiter(map(_number, cells), np.float64, len(cells))
    wrong = ~(np.abs(numbers) <= LARGEST)  # NaN too; more does not fit into a float32
    if wrong.any():
        i = int(wrong.argmax())
        raise UsageError(
            f"{where}: row {before + i + 1} has {cells[i][:40]!r} in column {column!r}, "
            "which needs a finite number"
        )
    return numbers.astype(np.float32)


def _number(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return math.nan


def _factor_columns(columns: list[str], wanted: tuple[str, ...], where: str) -> tuple[str, ...]:
    if len(set(columns)) < len(columns):
        raise UsageError(f"{where}: two columns have the same name ({_some(columns)})")
    if "file" not in columns:
        raise UsageError(f"{where}: needs a column 'file'; it has {_some(columns)}")
    found = tuple(c for c in columns if c != "file" and "." not in c)
    known = set(found)
    for name in wanted:
        if name not in known:
            raise UsageError(f"{where}: has no factor column {name!r}; it has {_some(found)}")
    for column in columns:
        if "." in column and column.partition(".")[0] not in known:
            raise UsageError(
                f"{where}: column {column!r} describes no factor; they are {_some(found)}"
            )
    usual = tuple(c for c in found if c.lower() not in ASIDE)
    if not usual and not wanted:
        raise UsageError(f"{where}: has no factor column beside 'file'")
    if len(set(wanted)) < len(wanted):
        raise UsageError(f"{where}: a factor is named twice ({_some(wanted)})")
    if taken := RESERVED.intersection(wanted or usual):
        raise UsageError(f"{where}: a factor cannot be called {min(taken)!r}; rename that column")
    return wanted or usual


def _some(names: Iterable[str]) -> str:
    first = [name[:40] for name in itertools.islice(names, 21)]
    return ", ".join(first[:20] + ["..."] * (len(first) > 20)) or "none"


def _agreeing(files: list[str], file: np.ndarray, index: np.ndarray, where: str) -> np.ndarray:
    """A picture that stands in two rows must show the same in both; the first row of each."""
    first = np.zeros(len(files), np.int64)
    first[file[::-1]] = np.arange(len(file))[::-1]
    wrong = (index != index[first[file]]).any(1)
    if wrong.any():
        row = int(wrong.argmax())
        raise UsageError(
            f"{where}: row {row + 1} says otherwise of {files[file[row]]} than row "
            f"{first[file[row]] + 1}"
        )
    return first
