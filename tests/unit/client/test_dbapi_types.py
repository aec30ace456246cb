"""The type objects and constructors of PEP 249, and rows as frames of other libraries."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

import penstock
from penstock.client.connection import Connection
from tests.harness.connections import WAYS, connected

GROUPS = (penstock.STRING, penstock.BINARY, penstock.NUMBER, penstock.DATETIME, penstock.ROWID)


@pytest.fixture(params=WAYS)
def conn(request: pytest.FixtureRequest) -> Iterator[Connection]:
    with connected(request.param, {"bounded.backend": "duckdb"}) as made:
        yield made


@pytest.mark.parametrize(
    ("literal", "group"),
    [
        ("'a'", penstock.STRING),
        ("X'00'", penstock.BINARY),
        ("1", penstock.NUMBER),
        ("1.5", penstock.NUMBER),
        ("CAST(1 AS DOUBLE)", penstock.NUMBER),
        ("TRUE", penstock.NUMBER),
        ("DATE '2026-01-01'", penstock.DATETIME),
        ("TIME '10:00:00'", penstock.DATETIME),
        ("TIMESTAMP '2026-01-01 10:00:00'", penstock.DATETIME),
        ("ARRAY[1]", None),
    ],
)
def test_a_type_code_equals_one_type_object(conn: Connection, literal: str, group: object) -> None:
    description = conn.execute(f"SELECT {literal} AS x").description
    assert description is not None
    code = description[0][1]
    assert [each for each in GROUPS if code == each] == ([] if group is None else [group])
    assert [each for each in GROUPS if each == code] == ([] if group is None else [group])
    assert (code != penstock.STRING) == (group is not penstock.STRING)


def test_type_objects_differ_and_are_keys_of_a_dict() -> None:
    assert len(dict.fromkeys(GROUPS)) == 5
    assert penstock.STRING != penstock.NUMBER and penstock.STRING != "STRING"
    assert repr(penstock.ROWID) == "penstock.ROWID"


def test_constructors_make_values_that_are_parameters(conn: Connection) -> None:
    values = (
        penstock.Date(2026, 1, 2),
        penstock.Timestamp(2026, 1, 2, 3, 4, 5),
        penstock.Time(3, 4, 5),
        penstock.Binary(b"\x00\xff"),
    )
    assert conn.execute("SELECT ? AS d, ? AS t, ? AS c, ? AS b", values).fetchall() == [values]
    now = datetime.datetime(2026, 1, 2, 3, 4, 5).timestamp()
    assert penstock.TimestampFromTicks(now) == values[1]
    assert (penstock.DateFromTicks(now), penstock.TimeFromTicks(now)) == (values[0], values[2])


def test_rows_come_as_arrow_and_in_batches(conn: Connection) -> None:
    query = "SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t (n, s)"
    expected = [{"n": 1, "s": "a"}, {"n": 2, "s": None}]
    assert conn.execute(query).arrow().to_pylist() == expected
    reader = conn.execute(query).fetch_record_batch()
    assert isinstance(reader, pa.RecordBatchReader) and reader.schema.names == ["n", "s"]
    assert reader.read_all().to_pylist() == expected
    assert conn.execute(query + " WHERE n > 2").fetch_record_batch().read_all().num_rows == 0


def test_rows_come_as_a_pandas_frame(conn: Connection) -> None:
    pytest.importorskip("pandas")
    assert conn.execute("SELECT 1 AS n").df().to_dict("list") == {"n": [1]}


@pytest.mark.parametrize(("method", "library"), [("df", "pandas"), ("fetch_df", "pandas"), ("pl", "polars")])
def test_a_library_that_is_not_installed_is_named(
    conn: Connection, method: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    cursor = conn.execute("SELECT 1 AS n")
    with pytest.raises(penstock.NotSupportedError) as caught:
        getattr(cursor, method)()
    assert caught.value.code == "CLI-6022" and f"pip install {library}" in str(caught.value)
    assert cursor.fetchall() == [(1,)], "no row was read"
