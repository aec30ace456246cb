"""PostgreSQL: its COPY read by Arrow gives the values its driver gives, what does not fit is refused, and each
error of the server says whether to try again. What reads and writes COPY's text needs no server.
"""

from __future__ import annotations

import csv
import io
from decimal import Decimal as Number
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    DataType,
    Decimal,
    Timestamp,
    TimestampLtz,
)
from penstock.engine.connectors.database.database import BATCH_ROWS, Condition, Select
from penstock.engine.connectors.database.postgres import PostgresConnection, copied, copy_text, csv_text
from penstock.engine.connectors.database.row_conversion import rows_of
from tests.streaming.databases.places import Place

VALUES: dict[str, tuple[str, DataType, list[str]]] = {
    "texts": (
        "text",
        STRING,
        [
            r"''",
            r"'\N'",
            "NULL",
            r"'\.'",
            "'\"quoted\", '",
            "E'two\\nlines\\r\\n'",
            "'ä🙂'",
            "' '",
            "repeat('long ', 3000000)",
        ],
    ),
    "bytes": ("bytea", BINARY, [r"''", "NULL", r"'\x00ff0a22'", r"decode(repeat('00ab', 100000), 'hex')"]),
    "doubles": (
        "float8",
        DOUBLE,
        ["0.1", "'NaN'", "'-Infinity'", "'-0'", "5e-324", "1.7976931348623157e308", "NULL", "1/3.0::float8"],
    ),
    "floats": ("float4", FLOAT, ["0.1", "'Infinity'", "1.17549435e-38", "NULL", "16777217"]),
    "decimals": ("numeric", Decimal(12, 3), ["1.5", "-0.001", "123456789.000", "0.10000000", "NULL", "7"]),
    "times": (
        "timestamp",
        Timestamp(6),
        ["'0001-01-01'", "'9999-12-31 23:59:59.999999'", "'2024-02-29 12:00:00.1'", "NULL"],
    ),
    "moments": (
        "timestamptz",
        TimestampLtz(6),
        ["'1969-12-31 23:59:59.000005+00'", "'2024-03-10 02:30:00 America/New_York'", "NULL"],
    ),
    "days": ("date", DATE, ["'0001-01-01'", "'9999-12-31'", "NULL"]),
    "whole": ("int8", BIGINT, ["-9223372036854775808", "9223372036854775807", "NULL"]),
    "truths": ("boolean", BOOLEAN, ["true", "false", "NULL"]),
}


@pytest.fixture
def server(tmp_path: Path) -> Place:
    return Place("postgres", tmp_path)


def by_driver(connection: PostgresConnection, field: Field) -> pa.RecordBatch:
    """The values as Python's driver makes them."""
    cast = "::text" if field.type is STRING else ""
    return rows_of(connection.ask(f'SELECT "{field.name}"{cast} FROM t ORDER BY n', []), (field,), "t")


@pytest.mark.parametrize("what", VALUES)
def test_each_value_is_what_the_driver_says(server: Place, what: str) -> None:
    theirs, ours, values = VALUES[what]
    server.run(
        f'CREATE TABLE t (n SERIAL, "V,""x""" {theirs})',
        f"ALTER DATABASE {server.url.partition('?')[0].rpartition('/')[2]} SET datestyle = 'German'",
    )
    for value in values:
        server.run(f"INSERT INTO t VALUES (DEFAULT, ({value})::{theirs})")
    field = Field('V,"x"', ours)
    connection = PostgresConnection(server.url, None, None)
    (found,) = connection.rows(Select("t", (field,)))
    # NaN is NaN, -0.0 is not 0.0
    assert repr(found.column(0).to_pylist()) == repr(
        by_driver(connection, _plain(field)).column(0).to_pylist()
    )
    found.validate(full=True)
    connection.close()


def _plain(field: Field) -> Field:
    return field.renamed(field.name.replace('"', '""'))


def test_batches_conditions_and_rows_without_columns(server: Place) -> None:
    server.run(
        "CREATE TABLE t AS SELECT k::int4 AS k, 'it''s 100%' AS s FROM generate_series(1, 100000) AS k"
    )
    connection, k, s = PostgresConnection(server.url, None, None), Field("k", INT), Field("s", STRING)
    batches = list(
        connection.rows(Select("t", (s, k), (Condition(k, ">", (10,)), Condition(s, "=", ("it's 100%",)))))
    )
    assert [batch.num_rows for batch in batches[:2]] == [BATCH_ROWS, BATCH_ROWS] and sum(
        batch.num_rows for batch in batches
    ) == 99_990
    assert sum(batch.num_rows for batch in connection.rows(Select("t", ()))) == 100_000
    assert list(connection.rows(Select("t", (k,), (Condition(k, "<", (0,)),)))) == []
    first = next(iter(connection.rows(Select("t", (k,)))))  # the rest is never asked for
    assert first.num_rows == BATCH_ROWS
    connection.close()


UNFIT: dict[str, tuple[str, DataType, str]] = {
    "a decimal with more digits": ("numeric", Decimal(12, 2), "1.239"),
    "a decimal that is none": ("numeric", Decimal(12, 2), "'NaN'"),
    "a time without end": ("timestamp", Timestamp(6), "'infinity'"),
    "a day before Christ": ("date", DATE, "'0044-03-15 BC'"),
}


@pytest.mark.parametrize("what", UNFIT)
def test_what_does_not_fit_is_told_with_its_column(server: Place, what: str) -> None:
    theirs, ours, value = UNFIT[what]
    server.run(f"CREATE TABLE t (k int4, wrong {theirs})", f"INSERT INTO t VALUES (1, {value})")
    connection = PostgresConnection(server.url, None, None)
    fields: Any = (Field("k", INT), Field("wrong", ours))
    with pytest.raises(PenstockError, match="column wrong of t holds"):
        list(connection.rows(Select("t", fields)))
    connection.close()


STATES = {
    "08006": True,
    "40001": True,
    "40P01": True,
    "53300": True,
    "55P03": True,
    "57P01": True,
    "57014": True,
    "22P02": False,
    "23505": False,
    "40002": False,
    "42501": False,
    "42P01": False,
}


@pytest.mark.parametrize("state", STATES)
def test_each_state_is_worth_another_try_or_not(server: Place, state: str) -> None:
    """The server raises it; the error says which it was."""
    connection = PostgresConnection(server.url, None, None, writes=True)
    with pytest.raises(PenstockError, match=state) as caught:
        connection.run(f"DO $body$ BEGIN RAISE EXCEPTION 'so it is' USING ERRCODE = '{state}'; END $body$")
    assert (caught.value.sqlstate, caught.value.retriable) == (state, STATES[state])
    assert str(caught.value.detail).startswith(f"SQLSTATE {state}: so it is")
    connection.close()


def test_a_full_server_is_tried_again_a_wrong_database_is_not(server: Place) -> None:
    with pytest.raises(PenstockError, match="DAT-4701") as caught:
        PostgresConnection(server.url.replace("/d", "/nowhere_d", 1), None, None)
    assert not caught.value.retriable
    server.run(f"ALTER DATABASE {server.ask('SELECT current_database()')[0][0]} CONNECTION LIMIT 0")
    server.run("CREATE ROLE guest LOGIN")
    try:
        with pytest.raises(PenstockError, match="too many connections") as caught:
            PostgresConnection(server.url, "guest", None)
        assert caught.value.retriable
    finally:
        server.run("DROP ROLE guest")


COPIED = (
    Field("k", BIGINT),
    Field("s", STRING),
    Field("b", BOOLEAN),
    Field("y", BINARY),
    Field("d", Decimal(6, 2)),
)


def test_the_text_of_a_copy_is_parsed_to_exact_types() -> None:
    """NULL is never quoted and a text always is, also one that is written like NULL."""
    assert copy_text("SELECT 1", COPIED) == (
        "COPY (SELECT 1) TO STDOUT (FORMAT csv, NULL '\\N', ENCODING 'UTF8', FORCE_QUOTE (\"s\"))"
    )
    lines = [b'1,"\\N",t,\\x00ff,1.500\n', b"\\N,\\N,\\N,\\N,\\N\n", b'-2,"a\n""b"",",f,\\x,-3\n']
    (batch,) = copied(lines, COPIED, "t")
    batch.validate(full=True)
    assert [list(row.values()) for row in batch.to_pylist()] == [
        [1, "\\N", True, b"\x00\xff", Number("1.50")],
        [None] * 5,
        [-2, 'a\n"b",', False, b"", Number("-3.00")],
    ]
    assert list(copied([], COPIED, "t")) == []
    assert [batch.num_rows for batch in copied([b"\n"] * (BATCH_ROWS + 1), (), "t")] == [BATCH_ROWS, 1]
    with pytest.raises(PenstockError, match=r"DAT-4704.*column k of t") as caught:
        list(copied([b"x\n"], COPIED[:1], "t"))
    assert "STRING" in str(caught.value.hint)


def test_what_is_written_to_a_copy_is_read_from_one() -> None:
    rows = pa.record_batch(
        {
            "k": pa.array([1, None, -(2**63)]),
            "s": ["", None, 'a"b\n,'],
            "y": pa.array([b"\x00\xff", None, b""], pa.binary()),
            "d": pa.array([Number("1.50"), None, Number("-0.01")], pa.decimal128(6, 2)),
        }
    )
    for part in (rows, rows.slice(1), rows.slice(0, 0)):
        found = list(csv.reader(io.StringIO(bytes(csv_text(part)).decode())))
        expected = [
            [
                "" if value is None else "\\x" + value.hex() if isinstance(value, bytes) else str(value)
                for value in row
            ]
            for row in zip(*(column.to_pylist() for column in part.columns), strict=True)
        ]
        assert found == expected
    assert b"1" in bytes(csv_text(rows)) and bytes(csv_text(rows.slice(1, 1))) == b",,,\n"
