"""Windows named in GROUP BY give what the windowing functions in FROM give, and grouping sets within
windows what DuckDB gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.generated.queries.answers import rows_of
from tests.harness.patience import PATIENCE_S

START = datetime(2024, 1, 1)
ROWS = [
    (START + timedelta(seconds=i * 37 % 1800 // 3 * 3), None if i % 9 == 4 else "abc"[i % 3], i % 7)
    for i in range(120)
]
EVENTS = pa.table(
    [pa.array(column) for column in zip(*sorted(ROWS, key=lambda row: row[0]), strict=True)],
    schema=pa.schema([("ts", pa.timestamp("us")), ("k", pa.string()), ("v", pa.int64())]),
)

PAIRS = [
    (
        "SELECT TUMBLE_START(ts, INTERVAL '10' MINUTE), TUMBLE_END(ts, INTERVAL '10' MINUTE), k, sum(v)"
        " FROM e GROUP BY TUMBLE(ts, INTERVAL '10' MINUTE), k",
        "SELECT window_start, window_end, k, sum(v) FROM TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '10' MINUTE) GROUP BY window_start, window_end, k",
    ),
    (
        "SELECT HOP_ROWTIME(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE), count(*) FROM e WHERE v > 1"
        " GROUP BY HOP(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)",
        "SELECT window_time, count(*) FROM HOP(TABLE (SELECT * FROM e WHERE v > 1), DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)"
        " GROUP BY window_start, window_end, window_time",
    ),
    (
        "SELECT SESSION_START(ts, INTERVAL '20' SECOND), k, count(*) FROM e GROUP BY k, SESSION(ts, INTERVAL '20' SECOND)",
        "SELECT window_start, k, count(*) FROM SESSION(TABLE e PARTITION BY k, DESCRIPTOR(ts), INTERVAL '20' SECOND)"
        " GROUP BY window_start, window_end, k",
    ),
    (
        "SELECT window.start, window.end, max(v) FROM e GROUP BY window(ts, '10 minutes', '5 minutes')",
        "SELECT window_start, window_end, max(v) FROM HOP(TABLE e, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)"
        " GROUP BY window_start, window_end",
    ),
    (
        "SELECT session_window.end, k, count(*) FROM e GROUP BY session_window(ts, '20 seconds'), k",
        "SELECT window_end, k, count(*) FROM SESSION(TABLE e PARTITION BY k, DESCRIPTOR(ts), INTERVAL '20' SECOND)"
        " GROUP BY window_start, window_end, k",
    ),
]


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "11"})
    session.register("e", EVENTS, time_column="ts", stream=True)
    yield session
    session.close()


def answer(session: Session, query: str, parallelism: int) -> Counter[tuple[Any, ...]]:
    session.settings.set("parallelism.default", str(parallelism))
    return rows_of(session.execute(query).final_rows(PATIENCE_S))


@pytest.mark.parametrize("pair", PAIRS, ids=["tumble", "hop", "session", "spark-window", "spark-session"])
def test_in_group_by_as_in_from(session: Session, pair: tuple[str, str]) -> None:
    named, table = pair
    expected = answer(session, table, 1)
    assert sum(expected.values()) > 3
    for parallelism in (1, 2):
        assert answer(session, named, parallelism) == expected


def test_grouping_sets_in_windows(session: Session) -> None:
    query = "SELECT window.start, k, v % 2 AS half, count(*), sum(v), grouping(k, v % 2) FROM e GROUP BY window(ts, '10 minutes'), CUBE (k, half)"
    oracle = (
        "SELECT time_bucket(INTERVAL 10 MINUTE, ts) AS w, k, v % 2 AS half, count(*), sum(v), grouping(k, half) FROM e"
        " GROUP BY GROUPING SETS ((w, k, half), (w, k), (w, half), (w))"
    )
    with duckdb.connect() as connection:
        connection.register("e", EVENTS)
        expected = Counter(connection.execute(oracle).fetchall())
    for parallelism in (1, 2):
        assert answer(session, query, parallelism) == expected


@pytest.mark.parametrize(
    "window", ["HOP(ts, INTERVAL '5' MINUTE, INTERVAL '10' MINUTE)", "window(ts, '10 minutes', '5 minutes')"]
)
def test_the_window_of_a_subquery_is_not_that_of_the_query_around_it(session: Session, window: str) -> None:
    """Were it, each row would be counted in two windows."""
    most = f"(SELECT max(n) FROM (SELECT count(*) AS n FROM e GROUP BY {window}) AS w)"
    query = f"SELECT count(*), sum(v) FROM e GROUP BY {most} HAVING {most} > 0"
    with duckdb.connect() as connection:
        connection.register("e", EVENTS)
        expected = Counter(connection.execute("SELECT count(*), sum(v) FROM e").fetchall())
    for parallelism in (1, 2):
        assert answer(session, query, parallelism) == expected
