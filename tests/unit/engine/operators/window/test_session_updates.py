"""SESSION over rows that are updated: a row that comes merges sessions, one that goes splits its own."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock.client.session import Session
from penstock.engine.api import row_pieces
from penstock.planner.logical.window_table import WindowTable
from tests.unit.engine.operators.test_state_ttl import TTL_MS, Driven

TABLES = """
CREATE TABLE e (id BIGINT, k BIGINT, ts TIMESTAMP(6)) WITH ('connector' = 'datagen');
CREATE VIEW last AS SELECT id, k, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts DESC) AS n FROM e) WHERE n = 1;
"""
QUERY = (
    "SELECT id, k, ts, window_start, window_end FROM SESSION(TABLE last PARTITION BY k, DESCRIPTOR(ts), INTERVAL"
    " '10' SECOND)"
)
START = datetime(2024, 1, 1)


def at(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session({"bounded.backend": "duckdb"})
    for statement in session.parse(TABLES):
        session.run(statement)
    yield session
    session.close()


def driven(session: Session) -> Driven:
    return Driven(session, WindowTable, QUERY)


def feed(driven: Driven, *rows: tuple[int, int | None, int | None], weights: list[int] | None = None) -> Any:
    made = [(n, k, None if seconds is None else at(seconds)) for n, k, seconds in rows]
    found = driven.feed(made, weights)
    return [(row[0], (row[3] - START).seconds, (row[4] - START).seconds, weight) for row, weight in found]


def test_sessions_merge_and_split(session: Session) -> None:
    sessions = driven(session)
    assert feed(sessions, (1, 1, 0), (2, 1, 18), (3, 2, 9), (4, 1, None)) == [
        (1, 0, 10, 1),
        (2, 18, 28, 1),
        (3, 9, 19, 1),
    ]
    assert sessions.context.metrics.counters == {"null_time_rows": 1}
    # exactly a gap from one and less from the other
    assert feed(sessions, (5, 1, 10)) == [
        (1, 0, 10, -1),
        (2, 18, 28, -1),
        (1, 0, 28, 1),
        (2, 0, 28, 1),
        (5, 0, 28, 1),
    ]
    # a row in the middle changes no other
    assert feed(sessions, (6, 1, 9)) == [(6, 0, 28, 1)]
    assert feed(sessions, (6, 1, 9), weights=[-1]) == [(6, 0, 28, -1)]
    again = sessions.operator
    sessions.start()
    sessions.go_on_from(again)
    found = feed(sessions, (5, 1, 10), (5, 1, 30), weights=[-1, 1])
    assert sorted(found[:3]) == [(1, 0, 28, -1), (2, 0, 28, -1), (5, 0, 28, -1)]
    assert sorted(found[3:5]) == [(1, 0, 10, 1), (2, 18, 28, 1)]
    assert found[5:] == [(5, 30, 40, 1)]
    assert sessions.entries == 4


def test_a_row_that_comes_is_behind_the_one_it_replaces(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_pieces.LIMITS, "piece_rows", 2)
    sessions = driven(session)
    feed(sessions, *((n, 1, n) for n in range(9)))
    found = feed(
        sessions,
        *((n, 1, n) for n in range(9)),
        *((n, 1, n + 1) for n in range(9)),
        weights=[-1] * 9 + [1] * 9,
    )
    there = dict.fromkeys(range(9), 1)
    for number, _, _, weight in found:
        there[number] += weight
        assert there[number] in (0, 1), "an upsert sink would lose the row"


def test_a_key_without_rows_expires(session: Session) -> None:
    sessions = driven(session)
    feed(sessions, (1, 1, 0), (2, 2, 0))
    sessions.pass_time(TTL_MS // 2)
    feed(sessions, (3, 1, 5))
    sessions.pass_time(TTL_MS // 2 + 200)
    assert (sessions.expired, sessions.entries) == (1, 2)
    assert feed(sessions, (2, 2, 0), weights=[-1]) == []
    assert sessions.absent == 1
    sessions.pass_time(2 * TTL_MS)
    assert (sessions.expired, sessions.entries) == (3, 0)
