"""State comes to nothing: when everything is taken back, and when time has passed everything, for every kind
of operator that keeps any.

Looked at are snapshots, what operators say they hold, and the indexes of keys inside them, which no snapshot
shows.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.api.operator import Operator
from penstock.engine.state.index.key_index import KeyIndex
from tests.generated.queries.generated.trial import Arena
from tests.harness.direct.feeds import Feed, Feeds, Row
from tests.harness.direct.job import DirectJob, planned

START = datetime(2024, 1, 1)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("k", pa.int32()),
        ("v", pa.int64()),
        ("ts", pa.timestamp("us")),
    ]
)
_NEAR = "a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '2' SECONDS AND a.ts + INTERVAL '1' SECOND"
_AGGREGATES = "count(*), sum(v), min(v), max(id), count(DISTINCT v), mode(v), avg(v), max_by(v, id)"
_WINDOWS = {
    "tumble": "TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '5' SECONDS)",
    "hop": "HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '3' SECONDS, INTERVAL '6' SECONDS)",
    "cumulate": "CUMULATE(TABLE a, DESCRIPTOR(ts), INTERVAL '2' SECONDS, INTERVAL '6' SECONDS)",
    "session": "SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECONDS)",
}
_LATENESS = "EMIT CHANGES WITH LATENESS INTERVAL '5' SECONDS"
_GROUPS = {
    name: f"SELECT k, window_end, {_AGGREGATES} FROM {table} GROUP BY k, window_start, window_end"
    for name, table in _WINDOWS.items()
}
_BY_WINDOW = "OVER (PARTITION BY k, window_start, window_end ORDER BY"
# What time frees, and so does taking rows back, but for the entries of TUMBLE, HOP and CUMULATE, which wait
# for their windows to close.
TIMED = {
    **_GROUPS,
    **{f"{name} corrected": f"{query} {_LATENESS}" for name, query in _GROUPS.items()},
    "rows of sessions": f"SELECT * FROM {_WINDOWS['session']}",
    "top of windows": f"SELECT id, window_end FROM (SELECT *, ROW_NUMBER() {_BY_WINDOW} v, id) AS n FROM {_WINDOWS['hop']}) WHERE n <= 2",
    "last of windows": f"SELECT id, window_end FROM (SELECT *, ROW_NUMBER() {_BY_WINDOW} ts DESC) AS n FROM {_WINDOWS['tumble']}) WHERE n = 1",
    "top of groups of windows": "SELECT k FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY c, k) AS n FROM"
    f" (SELECT k, window_start, window_end, count(*) AS c FROM {_WINDOWS['tumble']} GROUP BY k, window_start, window_end)) WHERE n <= 2",
    **{
        f"{kind} join near in time": f"SELECT a.id, b.id FROM a {kind} JOIN b ON {_NEAR}"
        for kind in ("INNER", "LEFT", "FULL")
    },
    "anti join near in time": f"SELECT id FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE {_NEAR})",
    "join of windows": f"SELECT x.id, y.id FROM {_WINDOWS['tumble']} AS x LEFT JOIN {_WINDOWS['tumble'].replace(' a,', ' b,')} AS y"
    " ON x.k = y.k AND x.window_start = y.window_start AND x.window_end = y.window_end",
}
# What time frees of rows that are not taken back.
SETTLED = {
    "over": "SELECT sum(v) OVER (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '3' SECONDS PRECEDING AND CURRENT ROW) FROM a",
    "over in windows": f"SELECT id, sum(v) {_BY_WINDOW} window_time) AS s FROM {_WINDOWS['tumble']}",
    "matches": "SELECT * FROM a MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.id AS x, B.id AS y PATTERN (A B+ C)"
    " WITHIN INTERVAL '5' SECONDS DEFINE B AS B.v > A.v, C AS C.v < A.v)",
}
# What only taking rows back frees.
KEPT = {
    "group aggregate": f"SELECT k, {_AGGREGATES} FROM a GROUP BY k",
    "distinct": "SELECT DISTINCT k, v FROM a",
    **{
        f"{kind} join": f"SELECT a.id, b.id FROM a {kind} JOIN b ON a.k = b.k AND a.v < b.v"
        for kind in ("INNER", "LEFT", "RIGHT", "FULL")
    },
    "semi join": "SELECT id FROM a WHERE EXISTS (SELECT * FROM b WHERE a.k = b.k)",
    "anti join": "SELECT id FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE a.k = b.k)",
    "top": "SELECT id, v FROM a ORDER BY v, id LIMIT 3",
    "top of keys": "SELECT id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id) AS n FROM a) WHERE n <= 2",
    "ranks of keys": "SELECT id, n FROM (SELECT *, RANK() OVER (PARTITION BY k ORDER BY v) AS n FROM a) WHERE n <= 2",
    "over": "SELECT id, sum(v) OVER (PARTITION BY k ORDER BY id), lag(v) OVER (PARTITION BY k ORDER BY id) FROM a",
    **{
        f"{word} of sets": f"SELECT k, v FROM a {word} SELECT k, v FROM b"
        for word in ("UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
    },
}


def _rows(first: int, count: int) -> tuple[tuple[Row, int], ...]:
    """Rows out of order, some of them late."""
    numbers = range(first, first + count)
    seconds = [i % 50 / 2 - i * 7 % 4 - (9 if i % 17 == 5 else 0) for i in range(count)]
    times = [None if i % 23 == 11 else START + timedelta(seconds=at) for i, at in enumerate(seconds)]
    return tuple(
        ((n, None if n % 11 == 3 else n % 4, None if n % 7 == 2 else n * 5 % 9, at), 1)
        for n, at in zip(numbers, times, strict=True)
    )


def _feed(delay: float, back: bool) -> Feed:
    feed = Feed(SCHEMA, (_rows(0, 50), _rows(100, 50)), "ts", delay)
    return feed.taken_back() if back else feed


def _held(operator: Operator) -> dict[str, int]:
    """How many keys the indexes of an operator hold."""
    held, seen, todo = {}, set(), [(type(operator).__name__, operator)]
    while todo:
        name, thing = todo.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, KeyIndex):
            held[name] = len(thing) if thing._types else 0  # no columns: the one key there is
            continue
        parts: dict[Any, Any] = (
            dict(enumerate(thing)) if isinstance(thing, list | tuple) else getattr(thing, "__dict__", {})
        )
        module = type(thing).__module__
        if isinstance(thing, list | tuple) or module.startswith(
            ("penstock.engine.state", "penstock.engine.operators")
        ):
            todo += [(f"{name}.{key}", part) for key, part in parts.items()]
    return held


def _left(job: DirectJob) -> dict[str, int]:
    """What a job holds, snapshots, entries and keys, where there is any."""
    found = dict(job.barrier().rows())
    for task in job._tasks:
        for chained in task.chain.operators:
            kind = type(chained.operator).__name__
            found[kind] = found.get(kind, 0) + chained.metrics.state_entries
            for name, count in _held(chained.operator).items():
                found[name] = found.get(name, 0) + count
    return {name: count for name, count in found.items() if count}


def _job(query: str, feed: Feed, parallelism: int, batch_rows: int) -> DirectJob:
    tables = dict.fromkeys(("a", "b"), feed)
    arena = Arena(tables)
    try:
        return DirectJob(
            planned(arena.session, query, parallelism).graph,
            Feeds(tables, batch_rows=batch_rows),
            batch_rows=batch_rows,
        )
    finally:
        arena.close()


@pytest.mark.parametrize(
    "name",
    [
        *(
            name
            for name in TIMED
            if name.split()[0] not in ("tumble", "hop", "cumulate") and "groups" not in name
        ),
        *KEPT,
    ],
)
def test_nothing_is_left_of_what_is_taken_back(name: str) -> None:
    for parallelism, batch_rows in ((1, 7), (2, 50)):
        job = _job({**TIMED, **KEPT}[name], _feed(3600, True), parallelism, batch_rows)
        job.advance(40)
        assert _left(job), "there is something to forget"
        job.advance(1 << 50)
        assert not _left(job)
        assert not job.changelog.folded
        job.close()


@pytest.mark.parametrize("name", [*TIMED, *SETTLED])
@pytest.mark.parametrize("back", [False, True])
def test_nothing_is_left_of_what_time_has_passed(name: str, back: bool) -> None:
    """But of the rows that have made time pass, as much as of these alone; and at the end nothing."""
    if back and name in SETTLED:
        return
    query, feed = {**TIMED, **SETTLED}[name], _feed(2, back)
    far = [(900 + i, 3, 1, START + timedelta(days=1, microseconds=i)) for i in (0, 1)]
    ahead = tuple(((row, 1), (row, -1), (row, 1)) if back else ((row, 1),) for row in far)
    left = []
    for splits in (ahead, tuple(split + more for split, more in zip(feed.splits, ahead, strict=True))):
        job = _job(query, Feed(SCHEMA, splits, "ts", 2), 1 + back, 9)
        job.advance(1 << 50)
        left.append(_left(job))
    assert left[0] == left[1] and job.late_rows()
    job.finish()
    assert not any(job.state_at_end().rows().values())
