"""EMIT: early results, lateness with corrections, final rows only. Changes come to what a naive reading of
the rows says, late ones included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.connectors.in_process.result_channels import ResultChannel
from penstock.engine.job.job import Job
from penstock.planner.logical.sink import Sink
from penstock.planner.statements.nodes import Query
from tests.harness.direct.lateness import Entry, SessionOf, sessions_in_turn
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end

Row = tuple[int | None, int | None, float, datetime | None]
ROWS, SPLITS, DELAY_S = 700, 3, 3
BEGIN = datetime(2024, 1, 1)


def _split(number: int) -> list[Row]:
    rows: list[Row] = []
    for i in range(ROWS):
        back = (i * 7919 + number) % 37 if i % 5 == 0 else (i * 31) % 4
        time = None if i % 211 == 210 else BEGIN + timedelta(seconds=i / 4 - back, milliseconds=number)
        rows.append(
            (None if i % 19 == 3 else i * i % 5, None if i % 23 == 7 else i * 37 % 101 - 50, i % 13 / 8, time)
        )
    return rows


INPUT = [_split(number) for number in range(SPLITS)]
SCHEMA = pa.schema([("k", pa.int64()), ("v", pa.int64()), ("d", pa.float64()), ("ts", pa.timestamp("us"))])
_SIZES = {"tumble": (10, 10), "hop": (5, 20), "cumulate": (5, 20)}
_TABLES = {
    "tumble": "TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '10' SECONDS)",
    "hop": "HOP(TABLE e, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '20' SECONDS)",
    "cumulate": "CUMULATE(TABLE e, DESCRIPTOR(ts), INTERVAL '5' SECONDS, INTERVAL '20' SECONDS)",
    "session": "SESSION(TABLE e PARTITION BY k, DESCRIPTOR(ts), INTERVAL '2' SECONDS)",
}
CLAUSES = {
    "": 0,
    "EMIT CHANGES": 0,
    "EMIT ON WINDOW CLOSE WITH LATENESS INTERVAL '12' SECONDS": 12,
    "EMIT CHANGES WITH LATENESS INTERVAL '12' SECONDS": 12,
    "EMIT CHANGES EVERY INTERVAL '0.005' SECONDS WITH LATENESS INTERVAL '1' HOUR": 3600,
    "EMIT CHANGES AFTER 40 ROWS OR INTERVAL '1' HOUR WITH LATENESS INTERVAL '1' HOUR": 3600,
    "EMIT FINAL WITH LATENESS INTERVAL '12' SECONDS": 12,
}


def _kept(lateness_s: int) -> tuple[list[tuple[Row, datetime]], int]:
    """The rows with a time, each with what its split's watermark says has ended before it came, lateness
    allowed for.
    """
    found, untimed = [], 0
    for rows in INPUT:
        watermark = datetime.min + timedelta(days=1)
        for row in rows:
            if row[3] is None:
                untimed += 1
                continue
            found.append((row, watermark - timedelta(seconds=min(lateness_s, 3600))))
            watermark = max(watermark, row[3] - timedelta(seconds=DELAY_S))
    return found, untimed


def _windows(kind: str, time: datetime) -> list[tuple[datetime, datetime]]:
    step, size = (timedelta(seconds=s) for s in _SIZES[kind])
    slice_start = BEGIN + (time - BEGIN) // step * step
    if kind == "cumulate":
        start = BEGIN + (time - BEGIN) // size * size
        return [
            (start, end)
            for end in (slice_start + step * (i + 1) for i in range(size // step))
            if end <= start + size
        ]
    return [(end - size, end) for end in (slice_start + step * (i + 1) for i in range(size // step))]


def _sessions(lateness_s: int = 0) -> tuple[list[SessionOf], list[Row]]:
    """The sessions and the late rows."""
    return sessions_in_turn(
        [Entry(row[0], row[3], bound, row) for row, bound in _kept(lateness_s)[0]], timedelta(seconds=2)
    )


def _naive(kind: str, lateness_s: int) -> tuple[Counter[tuple[Any, ...]], int]:
    """(k, start, end, count(*), sum(v), min(d)) of each window, and how many rows are late for all of
    theirs.
    """
    rows, _ = _kept(lateness_s)
    groups: dict[tuple[Any, ...], list[Row]] = {}
    late = 0
    if kind == "session":
        found, late_ones = _sessions(lateness_s)
        late = len(late_ones)
        groups = {(one.key, one.start, one.end): one.rows for one in found}
    else:
        for row, bound in rows:
            open_windows = [window for window in _windows(kind, row[3]) if window[1] > bound]
            late += not open_windows
            for start, end in open_windows:
                groups.setdefault((row[0], start, end), []).append(row)
    answer: Counter[tuple[Any, ...]] = Counter()
    for key, members in groups.items():
        values = [row[1] for row in members if row[1] is not None]
        answer[(*key, len(members), sum(values) if values else None, min(row[2] for row in members))] += 1
    return answer, late


def _query(kind: str, clause: str) -> str:
    return f"SELECT k, window_start, window_end, count(*), sum(v), min(d) FROM {_TABLES[kind]} GROUP BY k, window_start, window_end {clause}"


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    place = tmp_path_factory.mktemp("events")
    for number, rows in enumerate(INPUT):
        columns = [
            pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), SCHEMA.types, strict=True)
        ]
        pq.write_table(pa.table(columns, schema=SCHEMA), place / f"{number}.parquet", row_group_size=ROWS)
    session = Session(
        {"execution.runtime-mode": "streaming", "execution.batch.max-rows": "37", "bounded.backend": "duckdb"}
    )
    session.execute(
        f"CREATE TABLE e (k BIGINT, v BIGINT, d DOUBLE, ts TIMESTAMP(6), WATERMARK FOR ts AS ts - INTERVAL '{DELAY_S}' SECONDS)"
        f" WITH ('connector' = 'filesystem', 'path' = '{place}', 'format' = 'parquet', 'source.replay' = 'true')"
    )
    yield session
    session.close()


def submit(
    session: Session, text: str, parallelism: int, state_dir: Path | None
) -> tuple[Job, ResultChannel]:
    session.settings.set("parallelism.default", str(parallelism))
    session.state.state_dir = state_dir
    query = session.parse(text)[0].node
    assert isinstance(query, Query)
    graph = session.pipeline.plan(session.pipeline.bind(query)).graph
    session.state.state_dir = None
    assert graph is not None
    sink = next(
        spec.operator_id for chain in graph.chains for spec in chain.operators if isinstance(spec.node, Sink)
    )
    session.state.channels.release(sink)
    options = replace(
        JobOptions.from_settings(session.settings, name="act", state_dir=state_dir),
        checkpoint_interval_ms=20 if state_dir else 0,
    )
    return session.state.jobs.manager.submit(
        graph, options, "act" if state_dir else None
    ), session.state.channels.channel(sink)


def rows_of_e(job: Job) -> int:
    return max(
        (operator.rows_out for operator in job.metrics().operators if operator.name == "source e"), default=0
    )


def _late_rows(job: Job) -> int:
    return sum(operator.late_rows for operator in job.metrics().operators)


@pytest.mark.parametrize("kind", _TABLES)
@pytest.mark.parametrize("clause", CLAUSES)
def test_changes_come_to_the_rows_that_were_not_late(session: Session, kind: str, clause: str) -> None:
    answer, late = _naive(kind, CLAUSES[clause])
    assert late or CLAUSES[clause] == 3600
    for parallelism in (1, 2):
        folded = Folded()
        job, channel = submit(session, _query(kind, clause), parallelism, None)
        run_to_end(job, channel, folded)
        assert folded.rows == answer, parallelism
        assert _late_rows(job) == late, "each row is in its windows or counted as late"


@pytest.mark.parametrize("kind", _TABLES)
@pytest.mark.parametrize("clause", [clause for clause in CLAUSES if "12" in clause])
def test_three_acts(
    session: Session, kind: str, clause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.streaming.three_acts.acts.rows_read", rows_of_e)
    folded = Folded()
    job, channel = submit(session, _query(kind, clause), 2, tmp_path)
    run_and_stop(job, channel, folded, ROWS * SPLITS // 3)
    job, channel = submit(session, _query(kind, clause), 3, tmp_path)
    run_to_end(job, channel, folded)
    assert folded.rows == _naive(kind, CLAUSES[clause])[0]


def test_what_is_given_says_how(session: Session) -> None:
    session.settings.set("parallelism.default", "1")
    shapes = {clause: session.execute(_query("tumble", clause)) for clause in CLAUSES}
    inserts = {clause: result.shape.insert_only for clause, result in shapes.items()}
    changes = {
        clause: sum(batch.num_rows for batch in result.changes(60)) for clause, result in shapes.items()
    }
    assert inserts == {
        clause: "CHANGES" not in clause and ("LATENESS" not in clause or "FINAL" in clause)
        for clause in CLAUSES
    }
    assert changes[""] < changes["EMIT CHANGES"]
    assert session.execute(_query("hop", "EMIT ON WINDOW CLOSE")).shape.insert_only
    assert changes["EMIT FINAL WITH LATENESS INTERVAL '12' SECONDS"] == sum(_naive("tumble", 12)[0].values())


_JOIN = (
    "SELECT a.k, b.v FROM e AS a LEFT JOIN (SELECT k, v FROM e WHERE v > 47) AS b ON a.k = b.k AND a.v = b.v"
)
_GROUPS = "SELECT k, count(*), sum(v) FROM e GROUP BY k"


@pytest.mark.parametrize(
    ("text", "clause"),
    [(_JOIN, "EMIT FINAL"), (_GROUPS, "EMIT FINAL"), (_GROUPS, "EMIT CHANGES EVERY INTERVAL '0.01' SECONDS")],
)
def test_any_query_in_three_acts(
    session: Session, text: str, clause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.streaming.three_acts.acts.rows_read", rows_of_e)
    rows = [row for split in INPUT for row in split]
    with duckdb.connect() as connection:
        columns = [
            pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), SCHEMA.types, strict=True)
        ]
        connection.register("e", pa.table(columns, schema=SCHEMA))
        answer = Counter(connection.execute(text).fetchall())
    straight, stopped = Folded(), Folded()
    run_to_end(*submit(session, f"{text} {clause}", 1, None), straight)
    assert straight.rows == answer
    job, channel = submit(session, f"{text} {clause}", 2, tmp_path)
    run_and_stop(job, channel, stopped, ROWS)
    if clause == "EMIT FINAL":
        assert not stopped.rows, "nothing is final before the end"
    run_to_end(*submit(session, f"{text} {clause}", 3, tmp_path), stopped)
    assert stopped.rows == answer


def test_early_rows_above_early_rows(session: Session) -> None:
    """A window over windows takes what the inner one takes back."""
    inner = f"SELECT window_time, k, count(*) AS n FROM {_TABLES['tumble']} GROUP BY k, window_start, window_end, window_time"
    outer = f"TUMBLE(TABLE ({inner}), DESCRIPTOR(window_time), INTERVAL '1' MINUTE)"
    text = f"SELECT window_end, sum(n), count(*) FROM {outer} GROUP BY window_start, window_end"
    for clause in (
        "EMIT CHANGES WITH LATENESS INTERVAL '12' SECONDS",
        "EMIT ON WINDOW CLOSE WITH LATENESS INTERVAL '12' SECONDS",
    ):
        expected: dict[datetime, list[int]] = {}
        for (_, _, end, n, _, _), _ in _naive("tumble", 12)[0].items():
            minute = BEGIN + (
                (end - timedelta(milliseconds=1) - BEGIN) // timedelta(minutes=1) + 1
            ) * timedelta(minutes=1)
            total = expected.setdefault(minute, [0, 0])
            total[0] += n
            total[1] += 1
        for parallelism in (1, 2):
            folded = Folded()
            run_to_end(*submit(session, f"{text} {clause}", parallelism, None), folded)
            assert folded.rows == Counter((end, n, c) for end, (n, c) in expected.items())


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("SELECT k, count(*) FROM e GROUP BY k EMIT ON WINDOW CLOSE", "SQL-1711"),
        ("SELECT k FROM e EMIT ON WINDOW CLOSE", "SQL-1711"),
        ("SELECT k FROM e EMIT FINAL WITH LATENESS INTERVAL '1' SECOND", "SQL-1710"),
        ("SELECT k FROM e EMIT CHANGES EVERY INTERVAL '-1' SECOND", "SQL-1705"),
        ("SELECT k FROM e EMIT FINAL EVERY INTERVAL '1' SECOND", "SQL-1001"),
    ],
)
def test_what_cannot_be_is_refused(session: Session, query: str, code: str) -> None:
    with pytest.raises(PenstockError) as refused:
        session.execute(query)
    assert refused.value.code == code
