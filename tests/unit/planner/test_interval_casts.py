"""CAST of numbers and texts to INTERVAL and back, places and addresses: on the stream as on DuckDB."""

from __future__ import annotations

from datetime import timedelta

import pytest

import penstock
from penstock.catalog.errors import PenstockError

ROWS = (
    "(VALUES (1, 1.5, '1 02:00:00', '10.0.0.1'), (2, -2.25, '3 hours', '256.1.1.1'), "
    "(NULL, NULL, NULL, NULL)) AS v(k, d, s, ip)"
)
NOTHING = [None] * 3
CALLS = {
    "CAST(k AS INTERVAL DAY)": [timedelta(1), timedelta(2), None],
    "CAST(d AS INTERVAL SECOND)": [timedelta(seconds=1.5), timedelta(seconds=-2.25), None],
    "CAST(d AS INTERVAL DAY)": [timedelta(1), timedelta(-2), None],
    "CAST(k AS INTERVAL YEAR)": [12, 24, None],
    "TRY_CAST(99999999999999 AS INTERVAL DAY)": NOTHING,
    "CAST(s AS INTERVAL DAY TO SECOND)": [timedelta(1, hours=2), timedelta(hours=3), None],
    "CAST('5' AS INTERVAL DAY)": [timedelta(5)] * 3,
    "CAST('1 day' AS INTERVAL DAY)": [timedelta(1)] * 3,
    "CAST('1 Day 2 hours -3 minutes' AS INTERVAL DAY TO SECOND)": [timedelta(1, hours=2, minutes=-3)] * 3,
    "CAST('-1 02:03:04.5' AS INTERVAL DAY TO SECOND)": [-timedelta(1, 4.5, hours=2, minutes=3)] * 3,
    "CAST('05:30' AS INTERVAL HOUR TO MINUTE)": [timedelta(hours=5, minutes=30)] * 3,
    "CAST('05:30' AS INTERVAL MINUTE TO SECOND)": [timedelta(minutes=5, seconds=30)] * 3,
    "CAST('-1-2' AS INTERVAL YEAR TO MONTH)": [-14] * 3,
    "CAST('2 years 3 months' AS INTERVAL YEAR TO MONTH)": [27] * 3,
    # what CAST to STRING has written
    "CAST(CAST(INTERVAL '1' DAY * k AS STRING) AS INTERVAL DAY TO SECOND)": [
        timedelta(1),
        timedelta(2),
        None,
    ],
    "TRY_CAST('abc' AS INTERVAL DAY)": NOTHING,
    "TRY_CAST('' AS INTERVAL DAY)": NOTHING,
    "CAST(INTERVAL '5' DAY AS BIGINT)": [5] * 3,
    "CAST(CAST(k AS INTERVAL HOUR) AS INT)": [1, 2, None],
    "CAST((INTERVAL '3' YEAR) AS INT)": [3] * 3,
    "EXTRACT(EPOCH FROM INTERVAL '1 00:00:01' DAY TO SECOND)": [86_401] * 3,
    "inet_aton(ip)": [167_772_161, None, None],
    "inet_ntoa(167772161)": ["10.0.0.1"] * 3,
    "inet_ntoa(-1)": NOTHING,
    "is_ipv4(ip)": [True, False, None],
    "isIPAddressInRange(ip, '10.0.0.0/8')": [True, None, None],
    "isIPAddressInRange(ip, '10.0.0.2/31')": [False, None, None],
    # the example of Snowflake
    "round(haversine(40.7127, -74.0059, 34.0500, -118.2500), 9)": [3936.385096389] * 3,
    "haversine(0, 0, 0, d * 0)": [0.0, 0.0, None],
}


@pytest.mark.parametrize("mode", ["streaming", "batch"])
def test_values(mode):
    with penstock.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SET 'execution.runtime-mode' = '{mode}'")
        cursor.execute("SET 'bounded.backend' = 'duckdb'")
        items = ", ".join(f"{call} AS c{i}" for i, call in enumerate(CALLS))
        rows = cursor.execute(f"SELECT k, {items} FROM {ROWS}").fetchall()
    rows.sort(key=lambda row: (row[0] is None, row[0]))
    columns = dict(zip(CALLS, list(zip(*rows, strict=True))[1:], strict=True))
    assert {call: list(values) for call, values in columns.items()} == CALLS


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("CAST('abc' AS INTERVAL DAY)", "RUN-2003"),
        ("CAST('1 02:03:04' AS INTERVAL DAY)", "RUN-2003"),
        ("CAST(k AS INTERVAL DAY TO SECOND)", "SQL-1106"),
        ("CAST(CAST(k AS DOUBLE) AS INTERVAL SECOND)", "SQL-1106"),
        ("CAST(INTERVAL '1 02' DAY TO HOUR AS BIGINT)", "SQL-1106"),
        ("isIPAddressInRange(ip, 'x')", "SQL-1103"),
        ("isIPAddressInRange(ip, ip)", "SQL-1103"),
    ],
)
def test_what_is_refused_has_a_hint(call, code):
    with penstock.connect() as connection, pytest.raises(PenstockError, match=code) as caught:
        connection.cursor().execute(f"SELECT {call} FROM {ROWS}").fetchall()
    assert caught.value.hint and caught.value.span is not None
