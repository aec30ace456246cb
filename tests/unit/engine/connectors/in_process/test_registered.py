"""Registered tables: names without case, what becomes a table, and how often it can be read."""

from __future__ import annotations

from collections import namedtuple
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.in_process.registered import (
    RegisteredTables,
    conform,
    registered_source,
    rows_to_batch,
)

DICTS = [{"k": 1, "v": "a"}, {"k": None, "v": "b"}]
TABLE = pa.table({"k": pa.array([1, None], pa.int64()), "v": ["a", "b"]})
Pair = namedtuple("Pair", ["k", "v"])
REPEATED: dict[str, Any] = {
    "a table": TABLE,
    "a batch": TABLE.to_batches()[0],
    "columns": {"k": [1, None], "v": ["a", "b"]},
    "dicts": DICTS,
    "named tuples": [Pair(1, "a"), Pair(None, "b")],
    "batches": TABLE.to_batches(),
    "a function of rows": lambda: iter(DICTS),
    "a function of a table": lambda: TABLE,
    "a function of a reader": lambda: TABLE.to_reader(),
}
ONCE: dict[str, Any] = {"an iterator": lambda: iter(DICTS), "a reader": lambda: TABLE.to_reader()}


def rows_of(source: Any) -> list[dict[str, Any]]:
    return [row for batch in source.batches() for row in batch.to_pylist()]


@pytest.mark.parametrize("what", REPEATED)
def test_what_can_be_read_again_has_the_same_rows(what: str) -> None:
    source = registered_source(REPEATED[what])
    assert source.schema.names == ["k", "v"] and not source.once
    assert rows_of(source) == DICTS == rows_of(source)
    assert (source.table is None) == what.startswith("a function")


@pytest.mark.parametrize("what", ONCE)
def test_an_iterator_is_read_once_and_no_row_of_it_is_lost(what: str) -> None:
    source = registered_source(ONCE[what]())
    assert source.once and rows_of(source) == DICTS
    with pytest.raises(PenstockError, match="DAT-4503"):
        source.items()


def test_types_are_known_from_the_first_value_that_is_not_null() -> None:
    read = []

    def items() -> Any:
        for number in range(200):
            read.append(number)
            yield {"k": None if number < 3 else number}

    source = registered_source(items())
    assert read == [0, 1, 2, 3], "no further row is waited for"
    assert [row["k"] for row in rows_of(source)] == [None] * 3 + list(range(3, 200))


def test_names_have_no_case_and_a_wrong_one_has_a_hint() -> None:
    tables = RegisteredTables()
    assert tables.register("Clicks", DICTS).names == ["k", "v"]
    assert tables.source("cLICKS") is tables.source("clicks") and tables.names() == ["clicks"]
    tables.register("CLICKS", [(1,)], ["n"])
    assert tables.source("clicks").schema.names == ["n"], "the newer one stays"
    with pytest.raises(PenstockError, match="DAT-4502") as caught:
        tables.source("click")
    assert "clicks" in str(caught.value.hint)
    tables.unregister("Clicks")
    tables.unregister("Clicks")
    assert tables.names() == []


def test_a_batch_is_matched_by_name_and_cast_or_refused() -> None:
    arrow = pa.schema([("k", pa.int64()), ("v", pa.string())])
    other = pa.record_batch({"more": [1.5], "v": ["a"], "k": pa.array([1], pa.int8())})
    assert conform(other, arrow).to_pylist() == [{"k": 1, "v": "a"}] and conform(other, arrow).schema == arrow
    for wrong, word in (({"k": [1]}, "lacks column v"), ({"k": ["x"], "v": ["a"]}, "column k does not fit")):
        with pytest.raises(PenstockError, match=f"DAT-4504.*{word}"):
            conform(pa.record_batch(wrong), arrow)


@pytest.mark.parametrize("rows", [[(1, "a"), (1,)], [(1,), ("x",)], [{"k": 1}, {"k": "x"}], [1, 2]], ids=str)
def test_rows_of_several_shapes_are_no_table(rows: list[Any]) -> None:
    with pytest.raises(PenstockError, match="DAT-4501"):
        rows_to_batch(rows, None, None)


@pytest.mark.parametrize("source", [5, "text", b"bytes", [], {"k": [1], "v": []}], ids=str)
def test_what_is_no_table_is_refused(source: Any) -> None:
    with pytest.raises(PenstockError, match="DAT-4501"):
        registered_source(source)


def test_an_error_of_the_program_is_the_user_s() -> None:
    def items() -> Any:
        yield {"k": 1}
        raise ValueError("of mine")

    with pytest.raises(PenstockError, match="DAT-4505.*ValueError: of mine"):  # noqa: RUF043
        rows_of(registered_source(items()))


@pytest.mark.parametrize(
    ("column", "wanted", "rows"),
    [
        (pa.array(["2024-01-01", None]), pa.timestamp("us"), [datetime(2024, 1, 1), None]),
        (pa.array([{"a": 1}]), pa.struct([("b", pa.int64())]), [{"b": None}]),
        (pa.array([1.5]), pa.timestamp("us"), None),
        (pa.array(["x"]), pa.list_(pa.int64()), None),
        (pa.array(["x"]), pa.duration("us"), None),
        (pa.array([5.5]), pa.int64(), None),
    ],
    ids=[
        "text of a time",
        "other fields",
        "number as a time",
        "text as an array",
        "text as an interval",
        "fraction",
    ],
)
def test_a_later_batch_of_another_kind_is_cast_or_refused(
    column: pa.Array, wanted: pa.DataType, rows: list[Any] | None
) -> None:
    batch, schema = pa.record_batch([column], names=["a"]), pa.schema([("a", wanted)])
    if rows is not None:
        assert conform(batch, schema)["a"].to_pylist() == rows
        return
    with pytest.raises(PenstockError, match="DAT-4504"):
        conform(batch, schema)


@pytest.mark.parametrize(
    ("column", "rows"),
    [
        (pa.array([1999, None], pa.timestamp("ns")), [datetime(1970, 1, 1, 0, 0, 0, 1), None]),
        (pa.array([1999, None], pa.duration("ns")), [timedelta(microseconds=1), None]),
        (pa.array([[1], None], pa.list_view(pa.int32())), [[1], None]),
        (pa.array([UUID(int=5), None], pa.uuid()), [str(UUID(int=5)), None]),
        (pa.ExtensionArray.from_storage(pa.json_(), pa.array(["{}", None])), ["{}", None]),
    ],
    ids=["ns", "duration", "list view", "uuid", "json"],
)
def test_columns_are_read_as_those_of_files(column: pa.Array, rows: list[Any]) -> None:
    source = registered_source(pa.table({"a": column}))
    assert pa.Table.from_batches(source.batches(), source.arrow)["a"].to_pylist() == rows
    assert source.table is not None and source.table["a"].to_pylist() == rows
