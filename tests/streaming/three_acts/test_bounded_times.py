"""Windows and patterns over a TIMESTAMP of bounded tables that have no watermark: time passes all rows where
they end. No row is late, and the answer is that of the rows as a whole.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end
from tests.streaming.three_acts.test_emit import INPUT, ROWS, SPLITS, _windows, submit
from tests.streaming.three_acts.test_emit import session as session_of_e

__all__ = ["session_of_e"]
GROUPED = "SELECT k, window_start, window_end, count(*), sum(v) FROM {} GROUP BY k, window_start, window_end"
QUERIES = {
    "tumble": GROUPED.format("TUMBLE(TABLE u, DESCRIPTOR(ts), INTERVAL '10' SECONDS)"),
    "hop": GROUPED.format("HOP(TABLE u, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '20' SECONDS)"),
    "cumulate": GROUPED.format("CUMULATE(TABLE u, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '20' SECONDS)"),
    "session": GROUPED.format("SESSION(TABLE u PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.2' SECONDS)"),
    "groups": "SELECT k, TUMBLE_START(t, INTERVAL '10' SECOND), TUMBLE_END(t, INTERVAL '10' SECOND), count(*), sum(v) FROM (SELECT k, v, ts AS t FROM u WHERE v > -100 OR v IS NULL) GROUP BY k, TUMBLE(t, INTERVAL '10' SECOND)",
    # a column of a join, and one beside the watermark's own
    "join": GROUPED.format("TUMBLE(TABLE (SELECT u.* FROM u JOIN (SELECT DISTINCT d FROM u) AS x ON u.d = x.d), DESCRIPTOR(ts), INTERVAL '10' SECONDS)"),
    "other": GROUPED.format("TUMBLE(TABLE (SELECT k, v, s AS ts FROM w), DESCRIPTOR(ts), INTERVAL '10' SECONDS)"),
    "union": GROUPED.format("TUMBLE(TABLE (SELECT * FROM u WHERE d < 1 UNION ALL SELECT * FROM u WHERE d >= 1), DESCRIPTOR(ts), INTERVAL '10' SECONDS)"),
}  # fmt: skip
MATCHES = "SELECT k, v, w FROM u MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts, v, d MEASURES A.v AS v, B.v AS w PATTERN (A B) DEFINE B AS B.v > A.v + 60)"


@penstock.udf(["BIGINT"], "BIGINT")
def paused(values: pa.Array) -> pa.Array:
    """Return the values after a while, so that a job can be stopped before its rows end."""
    time.sleep(0.005)
    return values


@pytest.fixture(scope="module")
def session(session_of_e: Session) -> Iterator[Session]:
    options = str(session_of_e.execute("SHOW CREATE TABLE e").final_rows(PATIENCE_S).to_pydict())
    path = options.partition("'path' = '")[2].partition("'")[0]
    session_of_e.create_function(paused)
    session_of_e.execute(
        f"CREATE TABLE u (k BIGINT, v BIGINT, d DOUBLE, ts TIMESTAMP(6)) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')"
    )
    session_of_e.execute(
        f"CREATE TABLE w (k BIGINT, v BIGINT, d DOUBLE, ts TIMESTAMP(6), s AS ts + INTERVAL '0' SECOND, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = 'parquet')"
    )
    yield session_of_e


def _sessions() -> list[tuple[Any, Any, Any, list[Any]]]:
    rows = sorted((row for split in INPUT for row in split if row[3] is not None), key=_by_key_and_time)
    gap = timedelta(seconds=0.2)
    found: list[list[Any]] = []
    for key, members in groupby(rows, lambda row: row[0]):
        for number, row in enumerate(members):
            if number == 0 or row[3] > found[-1][2]:
                found.append([key, row[3], None, []])
            found[-1][2] = row[3] + gap
            found[-1][3].append(row[1])
    return [(key, start, end, values) for key, start, end, values in found]


def _by_key_and_time(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return (row[0] is not None, row[0] or 0, row[3])


def _answer(kind: str) -> Counter[tuple[Any, ...]]:
    groups: dict[tuple[Any, ...], list[Any]] = {}
    if kind == "session":
        groups = {(key, start, end): values for key, start, end, values in _sessions()}
    else:
        for k, v, _, ts in (row for split in INPUT for row in split):
            for window in (
                [] if ts is None else _windows(kind if kind in {"hop", "cumulate"} else "tumble", ts)
            ):
                groups.setdefault((k, *window), []).append(v)
    return Counter(
        (*group, len(values), sum(v for v in values if v is not None) if set(values) != {None} else None)
        for group, values in groups.items()
    )


@pytest.mark.parametrize("kind", QUERIES)
def test_no_row_is_late_in_three_acts(session: Session, kind: str, tmp_path: Path) -> None:
    expected, straight, stopped = _answer(kind), Folded(), Folded()
    slow = QUERIES[kind].replace("sum(v)", "sum(v) FILTER (WHERE paused(v) = v)")
    run_to_end(*submit(session, QUERIES[kind], 1, None), straight)
    assert straight.rows == expected
    job, channel = submit(session, slow, 2, tmp_path)
    run_and_stop(job, channel, stopped, ROWS * SPLITS // 3)
    assert not stopped.rows, "a window closed before the rows ended"
    run_to_end(*submit(session, slow, 3, tmp_path), stopped)
    assert stopped.rows == expected


@pytest.mark.parametrize("kind", QUERIES)
def test_a_backend_gives_the_same(session: Session, kind: str) -> None:
    session.settings.set("execution.runtime-mode", "automatic")
    try:
        rows = session.execute(QUERIES[kind]).final_rows(PATIENCE_S)
    finally:
        session.settings.set("execution.runtime-mode", "streaming")
    assert Counter(zip(*rows.to_pydict().values(), strict=True)) == _answer(kind)


def test_patterns_follow_the_time(session: Session) -> None:
    rows = session.execute(MATCHES).final_rows(PATIENCE_S)
    expected: Counter[tuple[Any, ...]] = Counter()
    timed = [row for split in INPUT for row in split if row[3] is not None]
    # NULL comes last in ascending order
    order = sorted(timed, key=lambda row: (*_by_key_and_time(row), row[1] is None, row[1] or 0, row[2]))
    for key, members in groupby(order, lambda row: row[0]):
        values, i = [row[1] for row in members], 0
        while i + 1 < len(values):
            one, two = values[i : i + 2]
            matches = one is not None and two is not None and two > one + 60
            expected[(key, one, two)] += matches
            i += 2 if matches else 1
    assert Counter(zip(*rows.to_pydict().values(), strict=True)) == +expected


def test_the_windows_are_insert_only_and_the_plan_says_when_they_close(session: Session) -> None:
    result = session.execute(QUERIES["tumble"])
    assert result.shape.insert_only
    result.final_rows(PATIENCE_S)
    plan = session.execute(f"EXPLAIN {QUERIES['tumble']}").final_rows(PATIENCE_S)
    assert "WatermarkAssign ts, at the end of the rows" in str(plan.to_pydict())


@pytest.mark.parametrize(
    ("rows", "hint"),
    [
        # a recording that is read as a stream has no end
        ("TABLE (SELECT CAST(ts AS TIMESTAMP(6)) AS ts FROM e)", "window them before that"),
        # no TIMESTAMP
        ("TABLE (SELECT k AS ts FROM u)", "a time attribute is a TIMESTAMP column"),
    ],
)
def test_what_is_still_refused(session: Session, rows: str, hint: str) -> None:
    with pytest.raises(PenstockError) as refused:
        session.execute(f"SELECT * FROM TUMBLE({rows}, DESCRIPTOR(ts), INTERVAL '10' SECONDS)")
    assert refused.value.code == "SQL-1701"
    assert hint in (refused.value.hint or "")
