"""PostgreSQL's COPY read by Arrow gives the values its driver gives, also where text is hard to tell from
text, and refuses what does not fit.
"""

from __future__ import annotations

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
from penstock.engine.connectors.database.postgres import PostgresConnection
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
