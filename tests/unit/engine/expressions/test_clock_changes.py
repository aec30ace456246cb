"""Times around a change of a zone's clock: the stream, DuckDB and Spark give one answer, also for an hour that
is skipped and for one that comes twice.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

ZONE = "Europe/Berlin"
# minutes from midnight of UTC: an hour before, in and behind the change, and a day from it
MINUTES = (-1500, -1440, -90, -30, 0, 30, 59, 60, 61, 90, 119, 120, 150, 1440, 1500)
INSTANTS = [
    datetime(2024, month, day, tzinfo=UTC) + timedelta(minutes=minutes, seconds=17)
    for month, day in ((3, 31), (10, 27))
    for minutes in MINUTES
]
TABLE = pa.table(
    {
        "id": pa.array(range(len(INSTANTS)), pa.int64()),
        "z": pa.array(INSTANTS, pa.timestamp("us", "UTC")),
        "ts": pa.array([instant.replace(tzinfo=None) for instant in INSTANTS], pa.timestamp("us")),
        "n": pa.array([(-1) ** i * (i % 5) for i in range(len(INSTANTS))], pa.int32()),
    }
)
EXPRESSIONS = (
    "z + INTERVAL '1' HOUR",
    "z - INTERVAL '5' SECOND",
    "z + INTERVAL '-1' HOUR",
    "z + INTERVAL '1' DAY",
    "z - INTERVAL '25' HOUR",
    "z + INTERVAL '-25' HOUR",
    "z + n * INTERVAL '13' HOUR",
    "z + INTERVAL '0' MONTH",
    "z - INTERVAL '1' MONTH",
    "z + INTERVAL '1' DAY - z",
    "date_trunc('minute', z)",
    "date_trunc('hour', z)",
    "date_trunc('day', z)",
    "floor(z TO HOUR)",
    "timestampdiff(HOUR, z, z + INTERVAL '1' DAY)",
    "timestampdiff(DAY, z, z + INTERVAL '24' HOUR)",
    "timestampadd(HOUR, 25, z)",
    "timestampadd(DAY, -1, z)",
    "timestampadd(MINUTE, -30, z)",
    "CAST(CAST(z AS TIMESTAMP) AS TIMESTAMP_LTZ(6))",
    "CAST(ts AS TIMESTAMP_LTZ(6))",
    "CAST(CAST(ts AS STRING) AS TIMESTAMP_LTZ(6))",
    "CAST(CAST(ts AS STRING) || '+02:00' AS TIMESTAMP_LTZ(6))",
    "TRY_CAST('no time' AS TIMESTAMP_LTZ(6))",
    "to_timestamp_ltz(date_format(ts, 'yyyy-MM-dd HH:mm:ss'))",
    "to_timestamp_ltz(date_format(ts, 'yyyy-MM-dd HH:mm'), 'yyyy-MM-dd HH:mm')",
    "to_utc_timestamp(ts, 'Europe/Berlin')",
    "to_utc_timestamp(z, 'Europe/Berlin')",
    "from_utc_timestamp(ts, 'Europe/Berlin')",
    "from_utc_timestamp(z, 'America/New_York')",
    "convert_timezone('Europe/Berlin', 'UTC', ts)",
    "unix_timestamp(ts)",
    "make_timestamp_ltz(2024, 3, 31, 2, 30, n + 5)",
    "time_bucket(INTERVAL '1' HOUR, z)",
    "time_bucket(INTERVAL '1' DAY, z)",
    "ts AT TIME ZONE 'Europe/Berlin'",
    "z AT TIME ZONE 'America/New_York'",
)


def answers(mode: str, backend: str) -> dict[str, list[object]]:
    session = Session(
        {"execution.runtime-mode": mode, "bounded.backend": backend, "table.local-time-zone": ZONE}
    )
    session.register("t", TABLE, stream=mode == "streaming")
    items = ", ".join(f"{text} AS c{i}" for i, text in enumerate(EXPRESSIONS))
    try:
        rows = session.execute(f"SELECT id, {items} FROM t").final_rows(PATIENCE_S).to_pylist()
    finally:
        session.close()
    rows.sort(key=lambda row: row["id"])
    return {text: [row[f"c{i}"] for row in rows] for i, text in enumerate(EXPRESSIONS)}


@pytest.fixture(scope="module")
def streamed() -> dict[str, list[object]]:
    return answers("streaming", "duckdb")


@pytest.mark.parametrize("backend", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_backend_gives_the_values_of_the_stream(backend: str, streamed: dict[str, list[object]]) -> None:
    found = answers("batch", backend)
    assert {text: values for text, values in found.items() if values != streamed[text]} == {}


def test_an_hour_that_is_skipped(streamed: dict[str, list[object]]) -> None:
    """02:30 of 31 March is 03:30; an hour before 03:30 is 01:30."""
    at = INSTANTS.index(datetime(2024, 3, 31, 1, 30, 17, tzinfo=UTC))
    skipped = INSTANTS.index(datetime(2024, 3, 31, 2, 30, 17, tzinfo=UTC))
    assert streamed["CAST(ts AS TIMESTAMP_LTZ(6))"][skipped] == INSTANTS[at]
    assert streamed["z + INTERVAL '-1' HOUR"][at] == INSTANTS[at] - timedelta(hours=1)
    # a day back it is 03:30 too, 25 hours back it is 02:30
    assert streamed["z - INTERVAL '25' HOUR"][at] == INSTANTS[at] - timedelta(hours=24)


def test_an_hour_that_comes_twice(streamed: dict[str, list[object]]) -> None:
    """An hour after the second 02:30 is 03:30, and the second 02:30 is in the second hour."""
    second = INSTANTS.index(datetime(2024, 10, 27, 1, 30, 17, tzinfo=UTC))
    assert streamed["z + INTERVAL '1' HOUR"][second] == INSTANTS[second] + timedelta(hours=1)
    assert streamed["z - INTERVAL '5' SECOND"][second] == INSTANTS[second] - timedelta(seconds=5)
    assert streamed["date_trunc('hour', z)"][second] == datetime(2024, 10, 27, 1, tzinfo=UTC)
    # nobody knows which hour a wall clock was in: the first
    local = streamed["CAST(CAST(z AS TIMESTAMP) AS TIMESTAMP_LTZ(6))"][second]
    assert local == INSTANTS[second] - timedelta(hours=1)
