"""What stands above sessions loses none that ends exactly with the watermark: windows, top, joins, OVER,
and order by time.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.generated.queries.generated.trial import Arena
from tests.harness.direct.feeds import Feed, Feeds, Row
from tests.harness.direct.job import DirectJob, planned

START, GAP_S, DELAY_S = datetime(2024, 1, 1), 2, 2
SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), ("k", pa.int32()), ("ts", pa.timestamp("us"))]
)
SESSIONS = f"SESSION(TABLE {{t}} PARTITION BY k, DESCRIPTOR(ts), INTERVAL '{GAP_S}' SECONDS)"
GROUPS = f"(SELECT k, window_start, window_end, window_time, count(*) AS n FROM {SESSIONS} GROUP BY k, window_start, window_end, window_time)"
_SLICES = "TUMBLE(TABLE {s}, DESCRIPTOR(window_time), INTERVAL '5' SECONDS) GROUP BY window_start, window_end"
_SLICE = "time_bucket(INTERVAL '5 seconds', window_end - INTERVAL '1 millisecond') + INTERVAL '5 seconds'"
_TOP = "SELECT k, window_end FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY n DESC, k) AS r FROM {s}) WHERE r = 1"
_JOIN = "SELECT x.k, x.n, y.n, x.window_end FROM {s} AS x LEFT JOIN {z} AS y ON x.window_start = y.window_start AND x.window_end = y.window_end"
_NEAR = "SELECT x.k, y.k FROM {s} AS x JOIN {z} AS y ON y.window_time BETWEEN x.window_time AND x.window_time + INTERVAL '1' SECOND"
_OVER = "SELECT k, window_end, count(*) OVER (PARTITION BY k ORDER BY window_time) AS c FROM {s}"
# Our words over sessions {s} of a and {z} of b, and DuckDB's where they differ.
QUERIES = {
    "windows of sessions": (
        f"SELECT window_end, sum(n) FROM {_SLICES}",
        f"SELECT {_SLICE} AS w, sum(n) FROM {{s}} GROUP BY w",
    ),
    "groups of sessions": (
        "SELECT window_end, count(*), sum(n) FROM {s} GROUP BY window_start, window_end",
        None,
    ),
    "top of sessions": (_TOP, None),
    "join of sessions": (_JOIN, None),
    "join near in time": (_NEAR, None),
    "over sessions": (_OVER, None),
}


def _rows(step: int) -> tuple[tuple[Row, int], ...]:
    """Rows in order, on whole seconds: every session of them ends exactly with a watermark."""
    return tuple(((i, i * step % 3, START + timedelta(seconds=i - i // 7 % 2)), 1) for i in range(60))


def _sessions(feed: Feed) -> list[tuple[Any, ...]]:
    found = []
    for key in (0, 1, 2):
        run: list[datetime] = []
        times = sorted(row[2] for split in feed.splits for row, _ in split[-60:] if row[1] == key)
        for time in [*times, datetime.max]:
            if run and time > run[-1] + timedelta(seconds=GAP_S):
                end = run[-1] + timedelta(seconds=GAP_S)
                found.append((key, run[0], end, end - timedelta(milliseconds=1), len(run)))
                run = []
            run.append(time)
    return found


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize("changes", [False, True])
def test_no_session_is_lost(name: str, changes: bool) -> None:
    query, words = QUERIES[name]
    gone = (((900, 1, START), 1), ((900, 1, START), -1)) if changes else ()
    feeds = {
        table: Feed(SCHEMA, (gone + _rows(step),), "ts", DELAY_S) for table, step in (("a", 5), ("b", 7))
    }
    arena = Arena(feeds)
    with duckdb.connect() as connection:
        for table, sessions in (("s", _sessions(feeds["a"])), ("z", _sessions(feeds["b"]))):
            types = "k INTEGER, window_start TIMESTAMP, window_end TIMESTAMP, window_time TIMESTAMP, n BIGINT"
            connection.execute(f"CREATE TABLE {table} ({types})")
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?)", sessions)
        want = Counter(connection.execute((words or query).format(s="s", z="z")).fetchall())
    try:
        for parallelism, batch_rows in ((1, 1), (2, 3)):
            text = query.replace("{s}", GROUPS.format(t="a")).replace("{z}", GROUPS.format(t="b"))
            job = DirectJob(
                planned(arena.session, text, parallelism).graph,
                Feeds(feeds, batch_rows=batch_rows),
                batch_rows=batch_rows,
            )
            assert job.finish() == want
            assert job.late_rows() == 0
    finally:
        arena.close()
