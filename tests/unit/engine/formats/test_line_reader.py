"""Records that cannot be read: fail, skip or keep them, with their place and reason, whatever the batch
cuts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.connectors.registry import errors_table
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, DATE, DOUBLE, INT, STRING, TIMESTAMP
from penstock.engine.api.operator import Services
from penstock.engine.connectors.in_process.bad_records import MAX_KEPT, BadRecords, RejectedRecord
from tests.harness.reading import drain, open_source, read, resume_everywhere, table_of

COLUMNS = {"id": INT, "name": STRING, "x": DOUBLE}
CSV = b'id,name,x\n1,a,0.5\nx2,b,1\n3,c\n4,d,1,5\n5,"e,2\n6,\xff\xfe,1\n7,g,1e3\n99999999999,h,1\n9,"i ""q""",2\n10,j,zz\n\n11,k,3'
GOOD_CSV = [1, 7, 9, 11]
BAD_CSV = [
    (1, "id", "'x2' is not a valid INT"),
    (2, None, "2 values where the file has 3 columns"),
    (3, None, "4 values where the file has 3 columns"),
    (4, None, None),
    (5, "name", "'\\xff\\xfe' is not a valid STRING"),
    (7, "id", "'99999999999' is not a valid INT"),
    (9, "x", "'zz' is not a valid DOUBLE"),
]
JSON = b"""{"id":1,"name":"a","x":1}
{"id":"2"}
{"id":3
[4]
{"id":5}{"id":6}
{"id":7.5}

{"name":"\xff"}
{"id":null}
{"id":9,"x":"no"}
{"extra":1,"id":10}
"""
GOOD_JSON = [1, None, 10]
BAD_JSON = [(1, "id"), (2, None), (3, None), (4, None), (5, "id"), (6, None), (8, "x")]


def table_in(directory: Path, kind: str, data: bytes, policy: str, **options: str) -> Any:
    (directory / f"a.{kind}").write_bytes(data)
    return table_of(
        COLUMNS,
        {"connector": "filesystem", "path": str(directory / f"a.{kind}"), "on-error": policy, **options},
    )


@pytest.mark.parametrize(("kind", "data", "good"), [("csv", CSV, GOOD_CSV), ("json", JSON, GOOD_JSON)])
@pytest.mark.parametrize("batch", [1, 2, 1000])
def test_skip(tmp_path: Path, kind: str, data: bytes, good: list[int], batch: int) -> None:
    table = table_in(tmp_path, kind, data, "skip")
    operator = open_source(table, batch=batch)
    rows = drain(operator).rows
    assert [row["id"] for row in rows] == good
    assert operator._context.metrics.counters["bad_records"] == 7
    resume_everywhere(table, rows, batch=batch)


def test_csv_bad_records_say_where_and_why(tmp_path: Path) -> None:
    table = table_in(tmp_path, "csv", CSV, "table")
    store = BadRecords()
    assert [row["id"] for row in read(table, services=Services(store))] == GOOD_CSV
    read(table, services=Services(store))
    kept = read(errors_table(table), services=Services(store))
    assert store.total("T") == len(kept) == 7
    assert [(r["position"], r["column"]) for r in kept] == [
        (position, column) for position, column, _ in BAD_CSV
    ]
    for row, (_, _, error) in zip(kept, BAD_CSV, strict=True):
        assert error is None or row["error"] == error
    assert kept[0]["raw"] == "x2,b,1"
    assert kept[0]["source"] == str(tmp_path / "a.csv")


def test_json_bad_records_say_where_and_why(tmp_path: Path) -> None:
    table = table_in(tmp_path, "json", JSON, "table")
    store = BadRecords()
    read(table, services=Services(store))
    kept = read(errors_table(table), services=Services(store))
    assert [(r["position"], r["column"]) for r in kept] == BAD_JSON
    assert all(r["error"] for r in kept)


def test_fail_names_file_row_byte_column_and_value(tmp_path: Path) -> None:
    with pytest.raises(PenstockError) as caught:
        read(table_in(tmp_path, "csv", CSV, "fail"))
    error = caught.value
    assert error.code == "DAT-4201"
    assert error.message == f"{tmp_path}/a.csv, row 2 (byte 18): column id: 'x2' is not a valid INT"
    assert "x2,b,1" in str(error.detail)
    assert "on-error" in str(error.hint)


def test_bad_columns_that_are_not_read_fail_nothing(tmp_path: Path) -> None:
    table = table_in(tmp_path, "csv", b"id,name,x\n1,a,oops\n2,b,3\n", "fail")
    assert read(table, columns=["id"]) == [{"id": 1}, {"id": 2}]


def test_which_rows_are_left_out_does_not_depend_on_the_columns_read(tmp_path: Path) -> None:
    table = table_in(tmp_path, "csv", b"id,name,x\n1,a,oops\n2,b,3\n", "skip")
    assert read(table, columns=["name"]) == [{"name": "b"}]
    assert len(read(table, columns=[])) == 1


def test_long_values_are_cut(tmp_path: Path) -> None:
    table = table_in(tmp_path, "csv", b"id,name,x\n" + b"z" * 5000 + b",a,1\n", "fail")
    with pytest.raises(PenstockError) as caught:
        read(table)
    assert len(caught.value.message) < 500


def test_dates_and_times_that_do_not_exist(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        "d,t,n\n2013-02-30,2013-01-01 10:00:00,1\n2013-02-28,2013-01-01T25:00:00,1\n2013-01-01,2013-01-01 10:00:00Z,1\n,,\n"
    )
    table = table_of(
        {"d": DATE, "t": TIMESTAMP, "n": BIGINT},
        {"connector": "filesystem", "path": str(tmp_path / "a.csv"), "on-error": "table"},
    )
    store = BadRecords()
    assert read(table, services=Services(store)) == [{"d": None, "t": None, "n": None}]
    errors = store.arrow_table("t").to_pylist()
    assert [e["column"] for e in errors] == ["d", "t", "t"]
    assert "zone" in errors[2]["error"]


def test_many_bad_records_among_many(tmp_path: Path) -> None:
    lines = [f"{i},n,{'bad' if i % 10 == 0 else i}" for i in range(800)]
    table = table_in(tmp_path, "csv", ("id,name,x\n" + "\n".join(lines)).encode(), "skip")
    assert [row["id"] for row in read(table)] == [i for i in range(800) if i % 10]


def test_the_store_is_bounded_and_counts_all() -> None:
    store = BadRecords()
    for start in range(0, MAX_KEPT + 1000, 1000):
        store.add("t", [RejectedRecord("r", "f", "s", start + i, None, "e") for i in range(1000)])
    assert store.total("t") == MAX_KEPT + 1000
    assert store.arrow_table("t").num_rows == MAX_KEPT
    store.forget("T")
    assert store.total("t") == 0


def test_errors_of_a_table_that_keeps_none() -> None:
    with pytest.raises(PenstockError, match="SQL-1508"):
        errors_table(table_of({"a": INT}, {"connector": "filesystem", "path": "x.csv"}))
    assert errors_table(
        table_of({"a": INT}, {"connector": "filesystem", "path": "x.csv", "on-error": "table"})
    ).schema[0] == Field("raw", STRING)
