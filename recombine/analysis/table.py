"""Rows as a table: a polars data frame with a few short ways to pick from it. Parquet on disk."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from recombine.analysis.frames import pl
from recombine.config import UsageError
from recombine.files import Row, read_bytes, readable_parquet, write_atomic
from recombine.limits import allow, limit

TEXT = ("kind", "composition", "variant", "probe", "run", "scale")
"""Columns that are text whatever they look like: the composition 011 is not eleven."""
WHOLE = ("seed", "step", "level", "n")
FOLDER = re.compile(r"[a-z0-9][a-z0-9_-]*")


class NotMeasured(LookupError):
    """The rows do not hold what is to be measured; the message says what is missing."""


class Table:
    """Rows that do not change. `table.where(kind="accuracy", seed=0)` picks rows,
    `table.column("joint")` gives values, `table.frame` is the polars data frame. A column that some
    rows lack holds None there."""

    def __init__(self, rows: "Iterable[Row] | pl.DataFrame" = ()):
        self.frame = rows if isinstance(rows, pl.DataFrame) else to_frame(rows)
        self._known: dict[Any, Any] = {}

    def __len__(self) -> int:
        return len(self.frame)

    def __iter__(self) -> Iterator[Row]:
        return self.frame.iter_rows(named=True)

    def where(self, **equal: Any) -> "Table":
        """The rows that hold these values; None means that they hold nothing there."""
        found = self
        for name, value in equal.items():
            found = found.by(name).get(value) or Table(found.frame.clear())
        return found

    def by(self, name: str) -> "dict[Any, Table]":
        """All rows by what they hold in a column, in the order of first mention. Columns that are
        empty in a group are left out of it."""
        return self.once(("by", name), lambda: self._split(name))

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What follows from the rows, computed when first needed and then kept with them."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    def _split(self, name: str) -> "dict[Any, Table]":
        if name not in self.frame.columns:
            return {None: self} if len(self) else {}
        parts = self.frame.partition_by(name, maintain_order=True, as_dict=True)
        return {key: Table(_without_empty(part, name)) for (key,), part in parts.items()}

    def column(self, name: str) -> list[Any]:
        """NotMeasured where no row has it."""
        if name not in self.frame.columns:
            if not len(self):
                return []
            raise NotMeasured(f"no column {name!r}")
        return self.frame[name].to_list()

    def unique(self, name: str) -> list[Any]:
        """The values of a column, each once, in the order of first mention; without None."""
        values = self.once(("unique", name), lambda: list(dict.fromkeys(self.column(name))))
        return [v for v in values if v is not None]

    def lists(self, column: str, *names: str) -> dict[tuple[Any, ...], dict[Any, list[Any]]]:
        """What a column holds, by all that the rows hold in other ones, the last of them apart:
        in one go and once, where `where` would split the rows again for every combination."""
        return self.once((column, *names), lambda: self._lists(column, names)) if len(self) else {}

    def _lists(self, column: str, names: tuple[str, ...]) -> dict[tuple[Any, ...], Any]:
        keys = [n if n in self.frame.columns else pl.lit(None).alias(n) for n in names]
        made: dict[tuple[Any, ...], Any] = {}
        split = self.frame.group_by(keys, maintain_order=True).agg(pl.col(column))
        for *key, last, values in split.iter_rows():
            made.setdefault(tuple(key), {})[last] = values
        return made

    def one(self, **equal: Any) -> Row:
        """The only row that matches."""
        found = self.where(**equal)
        if len(found) != 1:
            raise NotMeasured(f"{len(found)} rows match {equal}, not one")
        return next(iter(found))

    def filter(self, *conditions: Any) -> "Table":
        """polars' own filter: `table.filter(pl.col("step") > 100)`."""
        return Table(self.frame.filter(*conditions))

    def with_columns(self, *columns: Any, **named: Any) -> "Table":
        return Table(self.frame.with_columns(*columns, **named))

    def concat(self, other: "Table") -> "Table":
        return Table(pl.concat([self.frame, other.frame], how="diagonal_relaxed"))

    def __add__(self, other: "Table") -> "Table":
        return self.concat(other)

    def __repr__(self) -> str:
        return repr(self.frame)

    def _repr_html_(self) -> str:
        return self.frame._repr_html_()


def _without_empty(frame: "pl.DataFrame", keep: str) -> "pl.DataFrame":
    if keep != "kind":
        return frame
    return frame[[s.name for s in frame if s.null_count() < len(frame) or s.name == keep]]


def to_frame(rows: Iterable[Row]) -> "pl.DataFrame":
    """Typed columns: a number is a float unless all are whole; what holds several kinds is text."""
    rows = list(rows)
    names = list(dict.fromkeys(key for row in rows for key in row))
    return pl.DataFrame([_column(name, [row.get(name) for row in rows]) for name in names])


def _column(name: str, values: list[Any]) -> "pl.Series":
    kinds = {type(v) for v in values if v is not None}
    if kinds - {bool, int, float, str}:
        raise UsageError(
            f"rows are flat: {name!r} must be a number or a text, not {(kinds - {int, float, str}).pop().__name__}"
        )
    if name in TEXT or str in kinds:
        return pl.Series(name, [None if v is None else str(v) for v in values], pl.String)
    whole = name in WHOLE and all(float(v).is_integer() for v in values if v is not None)
    if float in kinds and not whole:
        return pl.Series(name, [None if v is None else float(v) for v in values], pl.Float64)
    if kinds == {bool}:
        return pl.Series(name, values, pl.Boolean)
    return pl.Series(name, [None if v is None else int(v) for v in values], pl.Int64)


def write_table(path: Path, table: Table) -> None:
    import io

    buffer = io.BytesIO()
    table.frame.write_parquet(buffer, compression="zstd", compression_level=12, statistics=False)
    write_atomic(path, buffer.getvalue())


def read_table(path: Path) -> Table:
    """A Parquet file as a table; one that is damaged, nested or larger than allowed is refused."""
    data = read_bytes(path)
    with readable_parquet(str(path)):
        frame = pl.read_parquet(data, n_rows=limit("rows") + 1)
        frame.null_count()  # decodes every column, so that what is damaged is found here
    allow("rows", len(frame), str(path))
    if nested := [name for name, kind in frame.schema.items() if kind.is_nested()]:
        raise UsageError(f"{path}: column {nested[0]!r} holds neither text nor numbers")
    return Table(frame)


def read_rows_of(folder: Path, beside: str = "") -> Table:
    """The rows of a study's folder. `beside`: the study in the folder beside it whose rows, of the
    same runs, belong to it too, so that none is stored twice."""
    own = read_table(folder / "rows.parquet")
    if not beside:
        return own
    if not FOLDER.fullmatch(beside):
        raise UsageError(f"{folder / 'study.json'}: rows_of must name a study, not {beside!r}")
    return read_table(folder.parent / beside / "rows.parquet") + own
