"""Streams of files with a past, and what a query over them has written when it began with its history:
folded, beside a replay and DuckDB.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from penstock.client.session import Session
from penstock.engine.checkpoint.coordinator import CheckpointKind
from penstock.engine.job.job import Job
from tests.harness.patience import PATIENCE_S

MINUTE_US = 60_000_000
DELAY_S = 5
COLUMNS = "k BIGINT, name STRING, v INT, d DECIMAL(9, 2), x DOUBLE, ts TIMESTAMP(3)"

QUERIES = {
    "rows": "SELECT k, v * 2, ts FROM a WHERE v > 30",
    "groups": "SELECT name, COUNT(*), SUM(v), MIN(d), MAX(ts), AVG(v) FROM a WHERE v > 5 GROUP BY name",
    "one group": "SELECT COUNT(*), SUM(v), MAX(name) FROM a",
    "values": "SELECT k, COUNT(DISTINCT v), COUNT(DISTINCT name) FROM a GROUP BY k HAVING COUNT(*) > 3",
    "distinct": "SELECT DISTINCT k, name FROM a",
    "tumble": "SELECT k, window_end, COUNT(*), SUM(d) FROM TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY k, window_start, window_end",
    "hop": "SELECT name, window_end, COUNT(v), MAX(v) FROM HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '20' SECOND, INTERVAL '60' SECOND) "
    "WHERE v < 90 GROUP BY name, window_start, window_end",
    "cumulate": "SELECT window_start, window_end, SUM(v) FROM CUMULATE(TABLE a, DESCRIPTOR(ts), INTERVAL '30' SECOND, INTERVAL '2' MINUTE) "
    "GROUP BY window_start, window_end",
    "session": "SELECT k, window_start, window_end, COUNT(*) FROM SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), INTERVAL '3' SECOND) "
    "GROUP BY k, window_start, window_end",
    "windows of windows": "SELECT window_end, MAX(n) FROM TUMBLE(TABLE (SELECT k, window_time AS wt, COUNT(*) AS n FROM TUMBLE(TABLE a, "
    "DESCRIPTOR(ts), INTERVAL '10' SECOND) GROUP BY k, window_start, window_end, window_time), DESCRIPTOR(wt), INTERVAL '1' MINUTE) "
    "GROUP BY window_start, window_end",
    "corrected": "SELECT k, window_end, COUNT(*) FROM TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '1' MINUTE) GROUP BY k, window_start, window_end "
    "EMIT CHANGES",
    "last": "SELECT k, name, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS r FROM a) WHERE r = 1",
    "best": "SELECT name, r, v, k FROM (SELECT *, RANK() OVER (PARTITION BY name ORDER BY v DESC, k) AS r FROM a) WHERE r <= 3",
    "first": "SELECT v, k, name FROM a ORDER BY v DESC, k LIMIT 7",
    "join": "SELECT a.k, a.v, b.v, b.name FROM a JOIN b ON a.k = b.k AND a.v = b.v",
    "outer": "SELECT a.k, b.v FROM (SELECT k, MAX(v) AS m FROM a GROUP BY k) AS a FULL JOIN (SELECT k, v FROM b WHERE v > 80) AS b ON a.k = b.k",
    "joined groups": "SELECT b.m, COUNT(*), SUM(a.v) FROM a JOIN (SELECT k, MAX(name) AS m FROM b GROUP BY k) AS b ON a.k = b.k GROUP BY b.m",
    "itself": "SELECT l.k, l.n, r.n FROM (SELECT k, COUNT(*) AS n FROM a GROUP BY k) AS l JOIN "
    "(SELECT k, COUNT(*) AS n FROM a WHERE v > 50 GROUP BY k) AS r ON l.k = r.k",
    "union": "SELECT k, SUM(v) FROM (SELECT k, v FROM a UNION ALL SELECT k, v FROM b WHERE v > 20) AS u GROUP BY k",
    "semi": "SELECT k, v FROM a WHERE k IN (SELECT k FROM b WHERE v > 60)",
}


@dataclass
class Past:
    """Two tables of files below ``root``, each file later in time than the one before. ``seed`` decides
    all; ``late`` of their rows come late.
    """

    root: Path
    seed: int
    late: float = 0.0
    file_format: str = "parquet"
    written: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        for name in "ab":
            (self.root / name).mkdir(parents=True)

    def come(self, name: str, rows: int = 300) -> None:
        """Let a file of a table come, whole at once."""
        number = self.written[name]
        self.written[name] += 1
        random = self.random
        times = (
            number * 4 * MINUTE_US
            + np.sort(random.integers(0, 3 * MINUTE_US, rows))
            + random.integers(0, (DELAY_S - 1) * 1_000_000, rows)
        )
        behind = random.random(rows) < (self.late if number % 2 else 0.0)
        times = (
            np.where(behind, np.maximum(times - 2 * MINUTE_US, number * 4 * MINUTE_US), times) // 1000 * 1000
        )
        cents = random.integers(-9999, 9999, rows)
        table = pa.table(
            {
                "k": pa.array(random.integers(0, 12, rows), mask=random.random(rows) < 0.05),
                "name": pa.array(
                    [f"n{n}" for n in random.integers(0, 6, rows)], mask=random.random(rows) < 0.05
                ),
                "v": pa.array(
                    random.integers(0, 100, rows).astype(np.int32), mask=random.random(rows) < 0.05
                ),
                "d": pa.array([None if c % 17 == 0 else c for c in cents.tolist()], pa.int64())
                .cast(pa.decimal128(19, 0))
                .cast(pa.decimal128(21, 2)),
                "x": pa.array(random.random(rows)),
                "ts": pa.array(times, pa.timestamp("us")).cast(pa.timestamp("ms")),
            }
        )
        table = table.set_column(3, "d", table.column("d").cast(pa.decimal128(9, 2), safe=False))
        hidden = self.root / f".{name}-{number}"
        if self.file_format == "parquet":
            pq.write_table(table, hidden, row_group_size=100)
        else:
            pa_csv.write_csv(table, hidden)
        hidden.rename(self.root / name / f"f{number:03d}.{self.file_format}")

    def rows(self, name: str) -> int:
        """Return how many rows a table has by now."""
        return 300 * self.written[name]


def declare(session: Session, past: Past, *, watched: bool, replay: bool = True) -> None:
    """Declare the two tables: as streams that never end, as recordings, or as bounded tables."""
    how = (
        ", 'source.monitor-interval' = '30 ms'" if watched else ", 'source.replay' = 'true'" if replay else ""
    )
    for name in "ab":
        options = (
            f"'connector' = 'filesystem', 'path' = '{past.root / name}', 'format' = '{past.file_format}'{how}"
        )
        session.execute(
            f"CREATE TABLE {name} ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '{DELAY_S}' SECOND) WITH ({options})"
        )


def declare_sink(session: Session, query: str, out: Path) -> None:
    """Declare the table the query's changes are written to, as they are."""
    schema = session.pipeline.bind(session.parse(query)[0].node).inputs[0].schema
    columns = ", ".join(f"c{i} {field.type}" for i, field in enumerate(schema))
    options = f"'connector' = 'filesystem', 'path' = '{out}', 'format' = 'json', 'changelog.mode' = 'retract'"
    session.execute(f"CREATE TABLE out ({columns}) WITH ({options})")


def folded(out: Path) -> Counter[tuple[Any, ...]]:
    """Return what the published changes add up to; nothing may be taken back more often than it was given."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for file in sorted(out.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            op, *values = json.loads(line).values()
            rows[tuple(values)] += 1 if op in ("+I", "+U") else -1
    assert all(count >= 0 for count in rows.values()), "a row was taken back that was not given"
    return +rows


def session_for(parallelism: int, state: Path | None, **settings: str) -> Session:
    """Return a session over a state directory."""
    more = {"execution.checkpointing.interval": "100 ms"} if state else {}
    fixed = {
        "bounded.backend": "duckdb",
        "parallelism.default": str(parallelism),
        "execution.batch.max-rows": "100",
        "pipeline.name": "backfilled",
    }
    return Session({**fixed, **more, **settings}, state_dir=state)


def replayed(past: Past, query: str, out: Path) -> Counter[tuple[Any, ...]]:
    """Return what the query has written when everything there is now was read as a stream."""
    session = session_for(1, None, **{"table.dml-sync": "true"})
    try:
        declare(session, past, watched=False)
        declare_sink(session, query, out)
        session.execute(f"INSERT INTO out {query}")
        return folded(out)
    finally:
        session.close()


def computed(past: Past, query: str) -> Counter[tuple[Any, ...]]:
    """Return DuckDB's answer over all there is now, in the words JSON has for values."""
    session = session_for(1, None)
    try:
        declare(session, past, watched=False, replay=False)
        declare_sink(session, query, past.root / "batch")
        session.settings.set("table.dml-sync", "true")
        session.execute(f"INSERT INTO out {query.removesuffix(' EMIT CHANGES')}")
        return folded(past.root / "batch")
    finally:
        session.close()


def wait_until(job: Job, what: Callable[[], bool]) -> None:
    """Wait for something to become true of a running job."""
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert not job.wait(0.01), job.error
        assert time.monotonic() < deadline, (
            f"the job does not get on: {job.state}, last failure {job.last_failure}"
        )


def is_live(job: Job) -> bool:
    """Whether the history is loaded."""
    return any(info.kind is CheckpointKind.HISTORY for info in job.checkpoints) and any(
        o.name.startswith("source ") for o in job.metrics().operators
    )


def has_read(job: Job, past: Past, tables: str, before: dict[str, int]) -> bool:
    """Whether the job has read all rows of the tables it reads that were not there before."""
    read = {
        o.name.removeprefix("source "): o.counters.get("splits_finished", 0)
        for o in job.metrics().operators
        if o.name.startswith("source ")
    }
    return all(read.get(name, 0) >= past.written[name] - before[name] for name in tables)


def tables_of(query: str) -> str:
    """Return the names of the tables a query reads."""
    return "".join(name for name in "ab" if f" {name} " in f"{query.replace(',', ' ').replace(')', ' ')} ")


def random_of(seed: int) -> Random:
    """Return a source of moments."""
    return Random(seed)
