"""What Spark cannot be asked for: the time now, and the wall clocks of zones."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest

from penstock.catalog.types import BIGINT, STRING, TIMESTAMP, DataType, to_arrow
from penstock.engine.api.clock import ManualClock
from penstock.engine.expressions import EvaluationContext, compile_expression
from tests.unit.engine.expressions.nested_cases import bound

COLUMNS: dict[str, tuple[DataType, list]] = {
    "n": (BIGINT, [0, -1, None, 1720000000]),
    "s": (STRING, ["2024-07-01 12:00:00", "1969-12-31 23:59:59.5", None, "2024-01-01"]),
    "t": (TIMESTAMP, [datetime(2024, 7, 1, 12), datetime(2024, 1, 1), None, datetime(1969, 12, 31, 23)]),
}
NOW = datetime(2024, 12, 31, 23, 30, tzinfo=UTC)


def given(text: str, zone: str) -> list[object]:
    batch = pa.record_batch(
        [pa.array(column, to_arrow(kind)) for kind, column in COLUMNS.values()], names=list(COLUMNS)
    )
    clock = ManualClock(int(NOW.timestamp() * 1000))
    return compile_expression(bound(text, COLUMNS), EvaluationContext(zone, clock))(batch).to_pylist()


@pytest.mark.parametrize(
    ("text", "zone", "value"),
    [
        ("current_timestamp()", "Europe/Berlin", NOW),
        ("now()", "UTC", NOW),
        ("proctime()", "UTC", NOW),
        ("localtimestamp()", "UTC", datetime(2024, 12, 31, 23, 30)),
        ("localtimestamp()", "Europe/Berlin", datetime(2025, 1, 1, 0, 30)),
        ("current_date()", "UTC", date(2024, 12, 31)),
        ("current_date()", "Europe/Berlin", date(2025, 1, 1)),
    ],
)
def test_the_time_now_is_the_clock_s(text: str, zone: str, value: object) -> None:
    assert given(text, zone) == [value] * 4


@pytest.mark.parametrize(
    ("text", "zone", "values"),
    [
        (
            "t AT TIME ZONE 'Europe/Berlin'",
            "UTC",
            [datetime(2024, 7, 1, 10), datetime(2023, 12, 31, 23), None, datetime(1969, 12, 31, 22)],
        ),
        (
            "to_timestamp_ltz(n, 0)",
            "UTC",
            [datetime(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59), None, datetime(2024, 7, 3, 9, 46, 40)],
        ),
        (
            "to_timestamp_ltz(n, 3)",
            "UTC",
            [
                datetime(1970, 1, 1),
                datetime(1969, 12, 31, 23, 59, 59, 999000),
                None,
                datetime(1970, 1, 20, 21, 46, 40),
            ],
        ),
        (
            "to_timestamp_ltz(s)",
            "Europe/Berlin",
            [
                datetime(2024, 7, 1, 10),
                datetime(1969, 12, 31, 22, 59, 59, 500000),
                None,
                datetime(2023, 12, 31, 23),
            ],
        ),
    ],
)
def test_instants(text: str, zone: str, values: list[datetime | None]) -> None:
    assert given(text, zone) == [value and value.replace(tzinfo=UTC) for value in values]


def test_wall_clocks() -> None:
    there = [datetime(2024, 7, 1, 10), datetime(2023, 12, 31, 23), None, datetime(1969, 12, 31, 22)]
    assert given("to_utc_timestamp(t, 'Europe/Berlin')", "UTC") == there
    assert (
        given("from_utc_timestamp(to_utc_timestamp(t, 'Europe/Berlin'), 'Europe/Berlin')", "UTC")
        == COLUMNS["t"][1]
    )
