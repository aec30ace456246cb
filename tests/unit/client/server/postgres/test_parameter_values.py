"""Values of parameters in both formats, as clients send them: read back from what psycopg dumps."""

import datetime as dt
from decimal import Decimal as D

import psycopg.adapt
import psycopg.pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    Array,
    Decimal,
)
from penstock.client.server.postgres.parameter_values import interval, parameter_value
from penstock.client.server.postgres.wire_types import wire_type

NOON = dt.datetime(2024, 7, 1, 12, 0, 0, 5)
VALUES = [
    (BOOLEAN, True),
    (INT, -5),
    (BIGINT, 1 << 40),
    (DOUBLE, -1.5),
    (Decimal(38, 10), D("-12345.0067")),
    (Decimal(38, 10), D("0.00010")),
    (Decimal(38, 10), D(0)),
    (Decimal(38, 10), D("1e20")),
    (STRING, 'é"\\'),
    (BINARY, b"\x00\xff"),
    (DATE, dt.date(2024, 2, 29)),
    (TIME, dt.time(1, 2, 3, 4)),
    (TIMESTAMP, NOON),
    (TIMESTAMP_LTZ, NOON.replace(tzinfo=dt.UTC)),
    (DAY_TIME_INTERVAL, dt.timedelta(days=-3, seconds=5, microseconds=7)),
    (Array(INT), [1, None, 3]),
    (Array(STRING), ["a", 'b"\\,{}', None, ""]),
]


# not bytes as text: without a connection libpq escapes them by what the last one of the process had set
SENT = [
    (form, kind, value)
    for form in (psycopg.pq.Format.TEXT, psycopg.pq.Format.BINARY)
    for kind, value in VALUES
    if (form, kind) != (psycopg.pq.Format.TEXT, BINARY)
]


@pytest.mark.parametrize(("form", "kind", "value"), SENT)
def test_what_psycopg_sends_is_read(form, kind, value):
    dumper = psycopg.adapt.Transformer().get_dumper(value, psycopg.adapt.PyFormat.from_pq(form))
    raw = bytes(dumper.dump(value))
    oid = dumper.oid or wire_type(kind).oid
    read = parameter_value(raw, kind, oid, binary=form == psycopg.pq.Format.BINARY, zone="UTC")
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize("raw", [rb"\x00FF5c41", rb"\000\377\\A"])
def test_both_texts_of_bytes_are_read(raw):
    assert parameter_value(raw, BINARY, 17, binary=False, zone="UTC") == b"\x00\xff\\A"


def test_null_is_none():
    assert parameter_value(None, INT, 23, binary=False, zone="UTC") is None


def test_a_wall_clock_is_one_of_the_sessions_zone():
    read = parameter_value(b"2024-07-01 12:00:00", TIMESTAMP_LTZ, 0, binary=False, zone="Europe/Berlin")
    assert read == dt.datetime(2024, 7, 1, 10, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "text", ["1 day 02:03:04.5", "-1 days", "5 seconds", "1 hour 2 mins", "2 weeks", "-00:00:01"]
)
def test_intervals(text):
    expected = {
        "1 day 02:03:04.5": dt.timedelta(days=1, hours=2, minutes=3, seconds=4.5),
        "-1 days": dt.timedelta(days=-1),
        "5 seconds": dt.timedelta(seconds=5),
        "1 hour 2 mins": dt.timedelta(hours=1, minutes=2),
        "2 weeks": dt.timedelta(weeks=2),
        "-00:00:01": dt.timedelta(seconds=-1),
    }
    assert interval(text) == expected[text]


@pytest.mark.parametrize(
    ("raw", "kind", "oid", "binary"),
    [
        (b"abc", INT, 0, False),
        (b"\xff", STRING, 0, False),
        (b"maybe", BOOLEAN, 0, False),
        (b"3 months", DAY_TIME_INTERVAL, 0, False),
        (b"{1", Array(INT), 0, False),
        (b"{{1},{2}}", Array(INT), 0, False),
        (b"{a b,}", Array(INT), 0, False),
        (b"123", INT, 23, True),
        (b"1", DOUBLE, 701, True),
        (b"\0\0", Decimal(10, 2), 1700, True),
        (b"\0\0\0\0\xc0\0\0\0", Decimal(10, 2), 1700, True),
        (b"\0\0\0\2" + bytes(8), Array(INT), 1007, True),
        (b"\0\0\0\1\0\0\0\0\0\0\0\x17\x7f\xff\xff\xff\0\0\0\1", Array(INT), 1007, True),
    ],
)
def test_what_is_no_value_is_refused(raw, kind, oid, binary):
    with pytest.raises(PenstockError) as error:
        parameter_value(raw, kind, oid, binary=binary, zone="UTC")
    assert error.value.code == "CLI-6223"
