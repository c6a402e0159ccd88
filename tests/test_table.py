"""Tables: typed columns, filters that keep what they should, and Parquet that gives back what it
was given."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recombine.analysis.table import NotMeasured, Table, read_rows_of, read_table, write_table
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


def test_a_nested_column_is_refused(tmp_path):
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"a": [1], "b": [[1, 2]]}).write_parquet(path)
    says = r"rows\.parquet: column 'b' holds neither text nor numbers$"
    with pytest.raises(UsageError, match=says):
        read_table(path)


def test_as_many_rows_as_are_allowed_are_read_and_no_more(tmp_path, monkeypatch):
    path = tmp_path / "rows.parquet"
    write_table(path, Table([{"a": i} for i in range(3)]))
    monkeypatch.setenv("RECOMBINE_MAX_ROWS", "3")
    assert len(read_table(path)) == 3
    monkeypatch.setenv("RECOMBINE_MAX_ROWS", "2")
    with pytest.raises(UsageError, match="has 3 rows, more than the 2 that are allowed"):
        read_table(path)


def test_rows_of_a_folder_may_stand_beside_those_of_another_study(tmp_path):
    for name, value in (("own", 2), ("other", 1)):
        write_table(tmp_path / name / "rows.parquet", Table([{"a": value}]))
    assert read_rows_of(tmp_path / "own").column("a") == [2]
    assert read_rows_of(tmp_path / "own", "other").column("a") == [1, 2]
    for wrong in ("../other", "Other", "-other", "other/"):
        with pytest.raises(UsageError, match="rows_of must name a study, not"):
            read_rows_of(tmp_path / "own", wrong)


def test_a_table_finds_one_row_and_says_how_many_there_are():
    rows = Table([{"a": 1, "b": 2}, {"a": 1, "b": 3}])
    assert rows.one(b=3) == {"a": 1, "b": 3}
    for wanted, count in (({"a": 1}, 2), ({"a": 7}, 0)):
        with pytest.raises(LookupError, match=f"^{count} rows match {wanted}, not one$"):
            rows.one(**wanted)
    assert rows.lists("b", "a") == {(): {1: [2, 3]}}
    assert rows.lists("b", "c", "a") == {(None,): {1: [2, 3]}}
    assert Table([]).lists("b", "a") == {}
    assert Table([]).column("b") == []
    with pytest.raises(NotMeasured, match="no column 'c'"):
        rows.column("c")


def test_columns_that_no_row_of_a_kind_has_are_left_out_of_it():
    rows = Table([{"kind": "a", "x": 1}, {"kind": "b", "y": 2.0}])
    assert rows.where(kind="a").frame.columns == ["kind", "x"]
    assert rows.by("x")[1].frame.columns == ["kind", "x", "y"]
    assert rows.where(z=None).column("kind") == ["a", "b"]
    assert len(rows.where(z=1)) == 0


def test_whole_numbers_stay_whole_where_they_count():
    rows = Table([{"seed": 1.0, "step": 2, "x": 1.0, "n": 1.5, "ok": True}])
    types = {name: str(kind) for name, kind in rows.frame.schema.items()}
    assert types == {
        "seed": "Int64", "step": "Int64", "x": "Float64", "n": "Float64", "ok": "Boolean",
    }  # fmt: skip
    with pytest.raises(UsageError, match=r"^rows are flat: 'a' must be .*, not list$"):
        Table([{"a": [1]}])
