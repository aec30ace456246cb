"""Values of every type by both ways, the copy of the table and its changes: both are what the server has."""

from __future__ import annotations

import datetime
from decimal import Decimal

import numpy as np
import psycopg
import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    Binary,
    DataType,
    Timestamp,
    TimestampLtz,
)
from penstock.catalog.types import (
    Decimal as DecimalType,
)
from penstock.engine.connectors.postgres_cdc.columns import converted, gathered, key_text
from tests.harness.cdc_reading import CdcReading, cdc_table, rows_there
from tests.harness.postgres_server import logical_server

pytestmark = pytest.mark.xdist_group("postgres-cdc")
# by column: type there, type here, what the server is asked for, two values
TYPES: dict[str, tuple[str, DataType, str, tuple[str, str]]] = {
    "id": ("bigint", BIGINT, "{}", ("1", "2")),
    "small": ("smallint", SMALLINT, "{}", ("-32768", "32767")),
    "i": ("integer", INT, "{}", ("-2147483648", "2147483647")),
    "big": ("bigint", BIGINT, "{}", ("-9223372036854775808", "9223372036854775807")),
    "num": ("numeric(30,10)", DecimalType(30, 10), "{}", ("-0.0000000001", "12345678901234567890.5")),
    "r": ("real", FLOAT, "{}", ("1.5", "'-Infinity'")),
    "d": ("double precision", DOUBLE, "{}", ("0.1", "'Infinity'")),
    "b": ("boolean", BOOLEAN, "{}", ("true", "false")),
    "t": ("text", STRING, "{}", ("''", "E'a,\"b\"\\n\\\\N ü 😀'")),
    "v": ("varchar(9)", STRING, "{}", ("'NULL'", "'\\N'")),
    "c": ("char(5)", STRING, "{}::text || repeat(' ', 5 - length({}::text))", ("'ab'", "'abcde'")),
    "by": ("bytea", Binary(), "{}", ("'\\x00ff5c'", "''")),
    "day": ("date", DATE, "{}", ("'0001-01-01'", "'9999-12-31'")),
    "ts": ("timestamp", Timestamp(6), "{}", ("'2024-02-29 23:59:59.999999'", "'1969-12-31 23:00:00'")),
    "tz": ("timestamptz", TimestampLtz(6), "{}", ("'2024-02-29 23:59:59.5+05:30'", "'1900-01-01 00:00+00'")),
    "js": ("json", STRING, "{}::text", ("'{\"a\": [1, null]}'", "'null'")),
    "jb": ("jsonb", STRING, "{}::text", ('\'{"b":1,"a":2}\'', "'[]'")),
    "u": ("uuid", STRING, "{}::text", ("gen_random_uuid()", "'00000000-0000-0000-0000-000000000000'")),
    "arr": ("int[]", STRING, "{}::text", ("'{1,NULL,3}'", "'{}'")),
    "texts": ("text[]", STRING, "{}::text", ("array['a,b', 'c\"d', '']", "array[]::text[]")),
    "mood": ("mood", STRING, "{}::text", ("'sad'", "'happy'")),
    "iv": ("interval", STRING, "{}::text", ("'1 mon 2 days 03:04:05.6'", "'-1 day'")),
    "rg": ("int4range", STRING, "{}::text", ("'[1,5)'", "'empty'")),
    "ip": ("inet", STRING, "host({}) || '/' || masklen({})", ("'10.0.0.1/8'", "'::1/64'")),
    "tm": ("time", STRING, "{}::text", ("'23:59:59.999999'", "'00:00'")),
}


def test_every_type_by_both_ways() -> None:
    server = logical_server()
    with psycopg.connect(server.url, autocommit=True) as there:
        there.execute("CREATE TYPE mood AS ENUM ('sad', 'happy')")
        listed = ", ".join(f'"{name}" {kind[0]}' for name, kind in TYPES.items())
        there.execute(f"CREATE TABLE kinds ({listed}, PRIMARY KEY (id))")
        there.execute("ALTER TABLE kinds REPLICA IDENTITY FULL")
        first, second = (", ".join(kind[3][place] for kind in TYPES.values()) for place in (0, 1))
        there.execute(f"INSERT INTO kinds VALUES ({first}), ({second}), (3{', NULL' * (len(TYPES) - 1)})")
        asked = ", ".join(kind[2].replace("{}", f'"{name}"') for name, kind in TYPES.items())
        columns = {name: kind[1] for name, kind in TYPES.items()}
        reading = CdcReading(cdc_table(server, "kinds", columns))
        text = f"SELECT {asked} FROM kinds"
        expected = rows_there(server, text)
        reading.reads(lambda: len(reading.fold) == 3)
        assert reading.fold == expected
        # by the stream: as new rows, and as old ones that take back what the copy gave
        there.execute("UPDATE kinds SET id = id + 10")
        expected = rows_there(server, text)
        reading.reads(lambda: reading.fold == expected)
        there.execute("DELETE FROM kinds")
        reading.reads(lambda: not reading.fold)
        reading.close()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("infinity", TimestampLtz(6)),
        ("-infinity", Timestamp(6)),
        ("0044-03-15 BC", DATE),
        ("NaN", DecimalType(10, 2)),
        ("1.234", DecimalType(10, 2)),
        ("99999", SMALLINT),
    ],
)
def test_a_value_that_has_no_such_type_is_an_error(text: str, kind: DataType) -> None:
    with pytest.raises(PenstockError) as raised:
        converted(pa.array(["", text][1:]), Field("x", kind), "public.t")
    assert raised.value.code == "DAT-4704" and "column x" in raised.value.message


def test_values_are_gathered_from_their_places() -> None:
    data = np.frombuffer(b"..abc..de", np.uint8)
    found = gathered(data, np.array([2, 0, 7, 0]), np.array([3, -1, 2, 0]))
    assert found.to_pylist() == ["abc", None, "de", ""]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (5, BIGINT),
        ("ü", STRING),
        (Decimal("1.50"), DecimalType(10, 2)),
        (datetime.date(2024, 1, 2), DATE),
        (datetime.datetime(2024, 1, 2, 3, 4, 5, 6), Timestamp(6)),
        (datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC), TimestampLtz(6)),
        (True, BOOLEAN),
        (b"\0\xff", Binary()),
    ],
)
def test_a_key_as_text_is_the_key_again(value: object, kind: DataType) -> None:
    field = Field("k", kind)
    made = pa.scalar(value)
    again = converted(pa.array([key_text(made)], pa.string()), field, "t")[0]
    assert again.as_py() == value
