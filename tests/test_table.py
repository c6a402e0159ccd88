"""Tables: typed columns, filters that keep what they should, and Parquet that gives back what it
was given."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine.analysis.table import Table, read_table, write_table
from recombine.config import UsageError

ROWS = [
    {"kind": "accuracy", "composition": "011", "seed": 0, "step": 5, "joint": 1},
    {"kind": "accuracy", "composition": "100", "seed": 1, "step": 5, "joint": 0.5},
    {"kind": "probe", "composition": "011", "share": 0.25},
]


def test_columns_are_typed_and_compositions_stay_text():
    types = dict(Table(ROWS).frame.schema)
    assert types["composition"] == pl.String
    assert types["joint"] == pl.Float64
    assert types["seed"] == types["step"] == pl.Int64


def test_filters():
    table = Table(ROWS)
    assert table.where(kind="accuracy", composition="011").column("joint") == [1.0]
    assert table.where(seed=None).column("kind") == ["probe"]
    assert len(table.where(kind="nothing")) == len(table.where(absent=3)) == 0
    assert list(table.by("kind")) == ["accuracy", "probe"]
    assert table.unique("composition") == ["011", "100"]
    assert table.one(kind="probe")["share"] == 0.25
    with pytest.raises(LookupError, match="2 rows match"):
        table.one(kind="accuracy")
    with pytest.raises(LookupError):
        table.column("absent")
    assert "share" not in table.where(kind="accuracy").frame.columns


def test_rows_are_flat():
    with pytest.raises(UsageError, match="rows are flat: 'a'"):
        Table([{"a": [1]}])


VALUES = st.none() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=6)
SOME = st.lists(
    st.fixed_dictionaries(
        {"kind": WORDS}, optional={"a": VALUES, "b": WORDS, "seed": st.integers(0, 9)}
    ),
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(SOME)
def test_parquet_gives_back_what_it_was_given(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("table") / "rows.parquet"
    table = Table(rows)
    write_table(path, table)
    again = read_table(path)
    assert again.frame.equals(table.frame)
    assert len(again) == len(rows)
    for row, there in zip(rows, again, strict=True):
        for name, value in row.items():
            assert (
                there[name] == pytest.approx(value)
                if isinstance(value, float)
                else there[name] == value
            )


@settings(max_examples=60, deadline=None)
@given(SOME, WORDS)
def test_a_filter_keeps_the_rows_that_match_and_their_order(rows, word):
    expected = [r.get("b") for r in rows if r["kind"] == word]
    found = Table(rows).where(kind=word)
    assert [r.get("b") for r in found] == expected


def test_what_is_no_table_is_one_line(tmp_path):
    (tmp_path / "rows.parquet").write_bytes(b"nonsense")
    with pytest.raises(UsageError, match="not a readable Parquet table") as error:
        read_table(tmp_path / "rows.parquet")
    assert "\n" not in str(error.value)
