"""OVER, Top-N per partition and deduplication as SQL: the streaming answer is DuckDB's to the same words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S

_TIMES = [datetime(2024, 1, 1) + timedelta(seconds=i + (i * 7) % 4 * 3, milliseconds=i) for i in range(240)]
MOVES = pa.table(
    {
        "id": pa.array(range(240), pa.int64()),
        "k": [None if i % 13 == 4 else "abcd"[i * i % 7 % 4] for i in range(240)],
        "v": pa.array([None if i % 11 == 6 else i * 37 % 19 - 6 for i in range(240)], pa.int64()),
        "d": [i * 5 % 9 / 2 for i in range(240)],
        "ts": pa.array(_TIMES, pa.timestamp("us")),
    }
)
# Each with whether its rows are given once and never taken back.
INSERTS = {
    "SELECT id, k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM moves) WHERE n = 1",
    "SELECT id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM moves) WHERE n <= 3",
    "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' SECONDS PRECEDING AND CURRENT ROW) AS s,"
    " LAG(v, 2, -1) OVER (PARTITION BY k ORDER BY ts) AS l FROM moves",
    "SELECT id, COUNT(*) OVER (PARTITION BY k ORDER BY ts) AS n, AVG(d) OVER (PARTITION BY k ORDER BY ts ROWS 4 PRECEDING) AS a,"
    " MIN(k) OVER (ORDER BY ts ROWS BETWEEN 5 PRECEDING AND 1 PRECEDING) AS m FROM moves WHERE v > -3",
    "SELECT id, FIRST_VALUE(v) OVER (PARTITION BY k ORDER BY ts) AS f, LAST_VALUE(v) OVER (PARTITION BY k ORDER BY ts) AS z,"
    " DENSE_RANK() OVER (PARTITION BY k ORDER BY ts) AS r FROM moves",
    "SELECT id, LAST_VALUE(v IGNORE NULLS) OVER w AS l, NTH_VALUE(v, 3 IGNORE NULLS) OVER w AS n, FIRST_VALUE(v IGNORE NULLS) OVER w AS f,"
    " LAG(v, 2, -9 IGNORE NULLS) OVER w AS g FROM moves WINDOW w AS (PARTITION BY k ORDER BY ts)",
    "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS s,"
    " LAST_VALUE(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS l,"
    " FIRST_VALUE(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '5' SECONDS PRECEDING AND INTERVAL '1' SECOND PRECEDING) AS f FROM moves",
}
CHANGES = {
    "SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, id) AS n FROM moves) WHERE n <= 3",
    "SELECT id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC NULLS LAST, id) AS n FROM moves) WHERE n <= 3",
    "SELECT id, k, r FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY d) AS r FROM moves) WHERE r <= 2",
    "SELECT id FROM (SELECT *, DENSE_RANK() OVER (ORDER BY v NULLS FIRST) AS r FROM moves) WHERE r BETWEEN 2 AND 4 AND k <> 'a'",
    "SELECT id, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM moves) WHERE n = 1",
    "SELECT k, s FROM (SELECT k, SUM(v) AS s, RANK() OVER (ORDER BY SUM(v) DESC) AS r FROM moves GROUP BY k) WHERE r <= 2",
    "SELECT k, s, s - LEAD(s) OVER (ORDER BY s, k NULLS FIRST) AS ahead, SUM(s) OVER () AS total FROM (SELECT k, SUM(v) AS s FROM moves GROUP BY k)",
    "SELECT a.id, b.id FROM moves AS a JOIN (SELECT k, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY d, id) AS n FROM moves)"
    " WHERE n = 1) AS b ON a.k = b.k",
    "SELECT k, SUM(gap) FROM (SELECT k, d - LAG(d) OVER (PARTITION BY k ORDER BY ts) AS gap FROM moves) GROUP BY k",
    "SELECT v, COUNT(*) FROM (SELECT v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM moves) WHERE n <= 5 GROUP BY v",
    "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY id RANGE BETWEEN 20 PRECEDING AND 10 FOLLOWING) AS s FROM moves",
    # frames from the first row that end before the row: not in time
    "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 2 PRECEDING) AS s,"
    " COUNT(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN UNBOUNDED PRECEDING AND INTERVAL '5' SECONDS PRECEDING) AS c FROM moves",
    "SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY d GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE TIES) AS s,"
    " COUNT(*) OVER (PARTITION BY k ORDER BY d GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING EXCLUDE GROUP) AS g,"
    " SUM(DISTINCT v) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW) AS x FROM moves",
}
_START = "time_bucket(INTERVAL '10 seconds', ts)"
_WINDOWS = f"SELECT *, {_START} AS window_start, {_START} + INTERVAL '10 seconds' AS window_end FROM moves"
_FROM_WINDOWS = "TUMBLE(TABLE moves, DESCRIPTOR(ts), INTERVAL '10' SECONDS)"
IN_WINDOWS = {
    "SELECT window_end, id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC NULLS LAST, id) AS n FROM w)"
    " WHERE n <= 2",
    "SELECT window_end, k, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY ts) AS n FROM w) WHERE n = 1",
    "SELECT window_end, k, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY ts DESC) AS n FROM w) WHERE n = 1",
    "SELECT window_end, k, c FROM (SELECT *, RANK() OVER (PARTITION BY window_start, window_end ORDER BY c DESC) AS r"
    " FROM (SELECT window_start, window_end, k, COUNT(*) AS c FROM w GROUP BY window_start, window_end, k)) WHERE r = 1",
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "17"})
    session.register("moves", MOVES, time_column="ts", delay=20)
    yield session
    session.close()


def answer(query: str) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        connection.register("moves", MOVES)
        return Counter(connection.execute(query).fetchall())


def check(session: Session, query: str, words: str, inserts: bool) -> None:
    expected = answer(words)
    for parallelism in ("1", "2"):
        session.settings.set("parallelism.default", parallelism)
        result = session.execute(query)
        rows = result.final_rows(PATIENCE_S)
        assert Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True)) == expected, (
            parallelism
        )
        assert result.shape.insert_only is inserts


@pytest.mark.parametrize("query", sorted(INSERTS))
def test_settled_by_time(session: Session, query: str) -> None:
    check(session, query, query, True)


@pytest.mark.parametrize("query", sorted(CHANGES))
def test_kept_up_to_date(session: Session, query: str) -> None:
    check(session, query, query, False)


@pytest.mark.parametrize("query", sorted(IN_WINDOWS))
def test_settled_by_windows(session: Session, query: str) -> None:
    check(
        session,
        query.replace("FROM w", f"FROM {_FROM_WINDOWS}"),
        query.replace("FROM w", f"FROM ({_WINDOWS})"),
        True,
    )


def test_settled_rows_are_on_time_for_windows_above(session: Session) -> None:
    words = "SELECT {start} + INTERVAL '10' SECONDS, COUNT(*) FROM ({first}) GROUP BY {start}"
    first = "SELECT k, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY v ORDER BY ts) AS n FROM moves) WHERE n <= 2"
    query = f"SELECT window_end, COUNT(*) FROM TUMBLE(TABLE ({first}), DESCRIPTOR(ts), INTERVAL '10' SECONDS) GROUP BY window_start, window_end"
    check(session, query, words.format(start=_START, first=first), True)


def test_time_goes_through_a_join_with_a_bounded_table(session: Session) -> None:
    query = (
        "SELECT m.id, n.name, LAG(m.id) OVER (PARTITION BY n.name ORDER BY m.ts) AS l FROM moves AS m"
        " JOIN (VALUES ('a', 'x'), ('b', 'y'), ('c', 'x')) AS n(k, name) ON m.k = n.k"
    )
    check(session, query, query, True)


def test_what_partitions_keep_is_said(session: Session) -> None:
    text = "\n".join(
        session.execute(
            "EXPLAIN OPTIMIZED SELECT id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM moves) WHERE n = 1"
        )
        .final_rows()
        .column(0)
        .to_pylist()
    )
    assert "state bounded (rows until the watermark passes them, and per partition a row of totals)" in text
