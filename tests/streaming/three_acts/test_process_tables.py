"""Process table functions: counts, sums, sessions and joins written in Python are DuckDB's answers, one row at
a time or in batches, in any number of subtasks, stopped and resumed at every checkpoint.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import penstock
from penstock.client.session import Session
from penstock.engine.storage.spill_files import SpillFiles
from tests.harness.direct.feeds import Feed, Feeds, Row
from tests.harness.direct.job import DirectJob, planned
from tests.streaming.three_acts import process_functions as program

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("ts", pa.timestamp("us"))])
ROWS, SPLITS = 24, 3
_SESSIONS = """SELECT k, epoch_us(min(ts)) AS started, count(*) AS events FROM (
  SELECT *, sum(fresh) OVER (PARTITION BY k ORDER BY ts ROWS UNBOUNDED PRECEDING) AS n FROM (
    SELECT *, CASE WHEN ts - lag(ts) OVER (PARTITION BY k ORDER BY ts) < INTERVAL '5 seconds' THEN 0 ELSE 1 END AS fresh
    FROM a)) GROUP BY k, n"""
_TIMED = "on_time => DESCRIPTOR(ts), gap => INTERVAL '5' SECOND"
# What we are asked, and what DuckDB is.
QUERIES = {
    "counts": (
        "SELECT k, n, total FROM Totals(TABLE a PARTITION BY k)",
        "SELECT k, count(*), coalesce(sum(v), 0)::BIGINT FROM a GROUP BY k",
    ),
    "counts of changes": (
        "SELECT v, n, total FROM Totals(TABLE (SELECT k, COUNT(*) AS v FROM a GROUP BY k) PARTITION BY v)",
        "SELECT v, count(*), sum(v)::BIGINT FROM (SELECT k, count(*) AS v FROM a GROUP BY k) GROUP BY v",
    ),
    "sessions": (f"SELECT k, started, events FROM Sessions(TABLE a PARTITION BY k, {_TIMED})", _SESSIONS),
    "windows above sessions": (
        f"SELECT window_start, COUNT(*), SUM(events) FROM TUMBLE(TABLE (SELECT * FROM Sessions(TABLE a"
        f" PARTITION BY k, {_TIMED})), DESCRIPTOR(rowtime), INTERVAL '10' SECOND) GROUP BY window_start, window_end",
        "SELECT time_bucket(INTERVAL '10 seconds', ended), count(*), sum(events)::BIGINT FROM (SELECT k, max(ts)"
        f" + INTERVAL '5 seconds' AS ended, count(*) AS events {_SESSIONS[_SESSIONS.index('FROM (') :]}) GROUP BY ALL",
    ),
    "all rows, two times": (
        "SELECT n FROM Running(TABLE a, TABLE (SELECT window_time AS at, k, COUNT(*) AS c FROM TUMBLE(TABLE b,"
        " DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY window_start, window_end, window_time, k),"
        " on_time => DESCRIPTOR(ts, at))",
        "SELECT (SELECT count(*) FROM a) + (SELECT count(*) FROM (SELECT DISTINCT time_bucket(INTERVAL '10 seconds', ts),"
        " k FROM b))",
    ),
    "a join": (
        "SELECT k, other, mine, k0 FROM Pairs(sent => TABLE a PARTITION BY k, paid => TABLE b PARTITION BY k)",
        "SELECT a.k, b.id, a.id, b.k FROM a JOIN b ON a.k IS NOT DISTINCT FROM b.k",
    ),
    "distinct values": (
        "SELECT k, different FROM Variety(input => TABLE a PARTITION BY k, uid => 'distinct')",
        "SELECT k, count(DISTINCT v) FROM a GROUP BY k HAVING count(v) > 0",
    ),
    "rows in order": (
        "SELECT id, before FROM Previous(TABLE a PARTITION BY k ORDER BY ts, id)",
        "SELECT id, coalesce(lag(id) OVER (PARTITION BY k ORDER BY ts, id), -1) FROM a",
    ),
    "rows in order, a constant": (
        "SELECT id, before FROM Previous(TABLE a PARTITION BY v ORDER BY ts, none => 7)",
        "SELECT id, coalesce(lag(id) OVER (PARTITION BY v ORDER BY ts), 7) FROM a",
    ),
    "rows in order, some columns descending": (
        "SELECT id, before FROM Previous(TABLE (SELECT k, v, id, window_time AS at FROM TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' SECOND))"
        " PARTITION BY k ORDER BY (at ASC, v DESC NULLS FIRST, id DESC))",
        "SELECT id, coalesce(lag(id) OVER (PARTITION BY k ORDER BY time_bucket(INTERVAL '10 seconds', ts), v DESC NULLS FIRST, id DESC), -1) FROM a",
    ),
    "rows with a column more": (
        "SELECT id, high FROM Marked(TABLE a, threshold => 2 + 1)",
        "SELECT id, v > 3 FROM a",
    ),
}


def feed(seed: int) -> Feed:
    """Rows of a few keys in disorder, none of them late."""
    dice = random.Random(seed)
    splits = []
    for split in range(SPLITS):
        rows: list[tuple[Row, int]] = []
        for number in range(ROWS):
            time = datetime(2024, 1, 1) + timedelta(
                seconds=number * 3 + dice.randrange(5), microseconds=seed * 100_000 + split * 1000 + number
            )
            key = None if dice.random() < 0.1 else dice.choice("abcd")
            value = None if dice.random() < 0.1 else dice.randrange(6)
            rows.append(((split * 1000 + number, key, value, time), 1))
        splits.append(tuple(rows))
    return Feed(SCHEMA, tuple(splits), "ts", 5)


FEEDS = {"a": feed(1), "b": feed(2)}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    made = Session({"execution.checkpointing.dir": "/nonexistent"})
    Feeds(FEEDS).register(made)
    for name in ("Totals", "Sessions", "Pairs", "Variety", "Marked", "Running", "Previous"):
        made.create_function(getattr(program, name))
    yield made
    made.close()


def answer(words: str) -> Counter[Any]:
    with duckdb.connect() as connection:
        for name, given in FEEDS.items():
            connection.register(name, given.table())
        return Counter(connection.execute(words).fetchall())


@pytest.mark.parametrize("name", QUERIES)
def test_whole_in_any_batches_and_subtasks(session: Session, name: str) -> None:
    query, words = QUERIES[name]
    expected = answer(words)
    for parallelism, batch_rows in ((1, 1), (1, 100), (2, 7), (4, 1)):
        graph = planned(session, query, parallelism).graph
        found = DirectJob(graph, Feeds(FEEDS, batch_rows=batch_rows), batch_rows=batch_rows).finish()
        assert found == expected, (parallelism, batch_rows)


@pytest.mark.parametrize("settings", [{"bounded.backend": "duckdb"}, {"execution.runtime-mode": "streaming"}])
def test_a_bounded_table_has_the_same_answer(settings: dict[str, str]) -> None:
    with penstock.connect(settings=settings) as connection:
        # the splits one after the other: a row is up to 72 s behind those before it
        connection.register("a", FEEDS["a"].table(), time_column="ts", delay=90)
        for name in ("Totals", "Sessions", "Previous"):
            connection.create_function(getattr(program, name))
        for name in ("counts", "sessions", "rows in order"):
            query, words = QUERIES[name]
            assert Counter(connection.execute(query).fetchall()) == answer(words)


class CountedFiles(SpillFiles):
    """Files that know how often rows were written."""

    writes = 0

    def write(self, *rows: Any) -> Any:
        self.writes += 1
        return super().write(*rows)


@pytest.mark.parametrize("name", ["counts", "sessions", "a join", "distinct values"])
def test_state_on_disk(session: Session, name: str, tmp_path: Path) -> None:
    query, words = QUERIES[name]
    graph, files = planned(session, query, 2).graph, CountedFiles(tmp_path)
    feeds = Feeds(FEEDS, batch_rows=5)
    job = DirectJob(graph, feeds, batch_rows=5, files=files)
    for cut in (8, 16):
        job.advance(cut)
        snapshot = job.barrier()
    job.close()
    assert files.writes > 10
    assert DirectJob(graph, feeds, snapshot=snapshot, changelog=job.changelog).finish() == answer(words)


def test_a_function_that_keeps_its_state_in_attributes_is_found_out(session: Session) -> None:
    """The control: what is not in checkpoints is lost when the job is resumed."""

    @penstock.ptf({"n": "BIGINT"}, mode="row")
    class Forgetful:
        def __init__(self) -> None:
            self.counts: Counter[Any] = Counter()

        def process(self, ctx: Any, row: dict[str, Any]) -> None:
            self.counts[row["k"]] += 1
            ctx.emit(self.counts[row["k"]])

    session.create_function(Forgetful)
    graph = planned(session, "SELECT k, n FROM Forgetful(TABLE a PARTITION BY k)").graph
    feeds, wanted = Feeds(FEEDS), DirectJob(graph, Feeds(FEEDS)).finish()
    job = DirectJob(graph, feeds)
    job.advance(5)
    snapshot = job.barrier()
    job.close()
    assert DirectJob(graph, feeds, snapshot=snapshot, changelog=job.changelog).finish() != wanted


@pytest.mark.parametrize("name", QUERIES)
def test_resumed_at_every_checkpoint_in_another_number_of_subtasks(session: Session, name: str) -> None:
    query, words = QUERIES[name]
    graphs = [planned(session, query, parallelism).graph for parallelism in (1, 2, 4)]
    feeds = Feeds(FEEDS, batch_rows=2)
    job = DirectJob(graphs[0], feeds, batch_rows=2)
    for cut in range(1, ROWS + 1):
        job.advance(cut)
        snapshot = job.barrier()
        job.close()
        job = DirectJob(graphs[cut % 3], feeds, batch_rows=2, snapshot=snapshot, changelog=job.changelog)
    assert job.finish() == answer(words)
