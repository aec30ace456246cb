"""WITH HISTORY gives what a replay of everything gives: whatever was there before, comes while it is loaded,
or comes after, and whoever dies when.

Each query begins over some files at 2 subtasks, more files come while its history is loaded, it is stopped,
goes on at 3, more files come, and its input ends. What it has written is folded and compared with a replay of
all files, and where no row is late with DuckDB.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.operators.source.history_source import FinishedSplitsOperator, SubChain
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.backfill import (
    QUERIES,
    Past,
    computed,
    declare,
    declare_sink,
    folded,
    has_read,
    is_live,
    random_of,
    replayed,
    session_for,
    tables_of,
    wait_until,
)


def three_acts(past: Past, query: str, out: Path, state: Path, hint: str = "") -> None:
    """Begin with history, stop, go on at another parallelism, end the input; files come in between."""
    random, reads = random_of(past.seed), tables_of(query)
    for _ in range(random.randrange(4)):
        past.come("a"), past.come("b")
    before = dict(past.written) if past.written else {"a": 0, "b": 0}
    statement = (
        f"INSERT INTO out {query} WITH HISTORY"
        if not hint
        else f"INSERT INTO out {query.replace('SELECT', f'SELECT {hint}', 1)}"
    )
    session = session_for(2, state)
    try:
        declare(session, past, watched=True)
        declare_sink(session, query, out)
        job = session.execute(statement).job
        past.come("a")  # while the history is loaded, or just before, or just after
        wait_until(job, lambda: is_live(job))
        past.come("b")
        wait_until(job, lambda: has_read(job, past, reads, before))
        job.stop()
        assert job.wait(PATIENCE_S) and job.error is None, job.error
    finally:
        session.close()
    before = dict(past.written)
    past.come("a"), past.come("b")
    session = session_for(3, state)
    try:
        declare(session, past, watched=True)
        declare_sink(session, query, out)
        job = session.execute(statement).job
        wait_until(job, lambda: has_read(job, past, reads, before))
        assert not any(operator.name.startswith("history") for operator in job.metrics().operators), (
            "history was loaded again"
        )
        job.stop(drain=True)
        assert job.wait(PATIENCE_S) and job.error is None, job.error
    finally:
        session.close()


@pytest.mark.parametrize("name", QUERIES)
def test_three_acts(name: str, tmp_path: Path) -> None:
    seed = sum(name.encode())
    past = Past(
        tmp_path / "data", seed, late=0.05 * (seed % 2), file_format=("parquet", "csv")[seed // 2 % 2]
    )
    three_acts(
        past,
        QUERIES[name],
        tmp_path / "out",
        tmp_path / "state",
        "/*+ BACKFILL('duckdb') */" if seed % 3 == 0 else "",
    )
    got = folded(tmp_path / "out")
    assert got == replayed(past, QUERIES[name], tmp_path / "replay")
    if not past.late:
        assert got == computed(past, QUERIES[name])


def loaded(past: Past, query: str, out: Path, **settings: str) -> None:
    """Load everything there is as history, and end."""
    session = session_for(2, None, **{"table.dml-sync": "true", **settings})
    try:
        declare(session, past, watched=False)
        declare_sink(session, query, out)
        session.execute(f"INSERT INTO out {query} WITH HISTORY")
    finally:
        session.close()


def with_files(root: Path, late: float) -> Past:
    past = Past(root / "data", 7, late)
    for _ in range(4):
        past.come("a")
    return past


def test_late_rows_are_found_and_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    past = with_files(tmp_path, 0.05)
    want = replayed(past, QUERIES["tumble"], tmp_path / "replay")
    loaded(past, QUERIES["tumble"], tmp_path / "out")
    assert folded(tmp_path / "out") == want
    assert computed(past, QUERIES["tumble"]) != want, "no row was late"

    drain = SubChain.drain
    monkeypatch.setattr(
        SubChain,
        "drain",
        lambda chain: [(split, replace(batch, behind=None)) for split, batch in drain(chain)],
    )
    loaded(past, QUERIES["tumble"], tmp_path / "careless")
    assert folded(tmp_path / "careless") != want, "a history that takes late rows for timely ones went unseen"


@pytest.mark.at_length
def test_in_worker_processes(tmp_path: Path) -> None:
    past = with_files(tmp_path, 0.05)
    loaded(past, QUERIES["tumble"], tmp_path / "out", deployment="processes")
    assert folded(tmp_path / "out") == replayed(past, QUERIES["tumble"], tmp_path / "replay")


@pytest.mark.spark
@pytest.mark.parametrize("name", ["groups", "hop", "best", "joined groups"])
def test_on_spark(name: str, tmp_path: Path) -> None:
    past = with_files(tmp_path, 0.0)
    past.come("b")
    loaded(past, QUERIES[name], tmp_path / "out", **{"bounded.backend": "spark"})
    assert folded(tmp_path / "out") == replayed(past, QUERIES[name], tmp_path / "replay")


def test_a_position_that_is_not_handed_over_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    past = with_files(tmp_path, 0.0)
    monkeypatch.setattr(FinishedSplitsOperator, "snapshot_items", lambda operator: [])
    loaded(past, QUERIES["groups"], tmp_path / "out")
    assert folded(tmp_path / "out") != replayed(past, QUERIES["groups"], tmp_path / "replay")


def test_a_file_that_changes_while_it_is_history_fails_the_job(tmp_path: Path) -> None:
    past = with_files(tmp_path, 0.0)
    session = session_for(1, None)
    try:
        declare(session, past, watched=False)
        declare_sink(session, QUERIES["groups"], tmp_path / "out")
        (statement,) = session.parse(f"INSERT INTO out {QUERIES['groups']} WITH HISTORY")
        planned = session.pipeline.plan(session.pipeline.bind(statement.node))
        assert planned.history is not None
        first = planned.history.graph()
        (tmp_path / "data" / "a" / "f000.parquet").write_bytes(b"PAR1")
        object.__setattr__(planned.history, "graph", lambda: first)
        job = session.pipeline.start(planned).job
        assert job is not None and job.wait(PATIENCE_S)
        assert job.error is not None and job.error.code == "DAT-4107"
    finally:
        session.close()


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT k, v FROM a LIMIT 5", "LIMIT without an order has no history"),
        ("SELECT k, SUM(v) OVER (PARTITION BY k ORDER BY ts) FROM a", "OVER has no history"),
        (
            "SELECT x.k, y.k FROM a AS x JOIN b AS y ON x.k = y.k AND y.ts BETWEEN x.ts AND x.ts + INTERVAL '1' MINUTE",
            "an interval or window join",
        ),
        ("SELECT k, k FROM a ORDER BY ts", "ORDER BY time has no history"),
        (
            "SELECT k, COUNT(*) FROM a WHERE ts < CURRENT_TIMESTAMP GROUP BY k",
            "has another value each time it is computed",
        ),
        ("SELECT n, n FROM numbers", "numbers has no positions"),
        ("SELECT k, k FROM changes", "changes holds changes"),
        ("SELECT k, k FROM lenient", "lenient skips bad records"),
        ("SELECT k, k FROM bounded", "the query reads no stream"),
    ],
)
def test_what_has_no_history_is_refused(query: str, why: str, tmp_path: Path) -> None:
    session = session_for(1, None)
    try:
        refused(session, with_files(tmp_path, 0.0), f"INSERT INTO sink {query} WITH HISTORY", "SQL-1715", why)
    finally:
        session.close()


@pytest.mark.parametrize(
    ("statement", "code", "why"),
    [
        ("SELECT k FROM a WITH HISTORY", "SQL-1714", "WITH HISTORY is the last clause of an INSERT"),
        (
            "INSERT INTO sink SELECT k, v FROM (SELECT * FROM a WITH HISTORY) AS t",
            "SQL-1714",
            "WITH HISTORY is the last clause of an INSERT",
        ),
        (
            "CREATE VIEW w AS SELECT /*+ BACKFILL('spark') */ k FROM a",
            "SQL-1714",
            "BACKFILL follows the first SELECT of an INSERT",
        ),
        (
            "INSERT INTO sink SELECT /*+ BACKFILL('sprak') */ k, v FROM a",
            "BND-5000",
            "there is no bounded backend 'sprak'",
        ),
        (
            "INSERT INTO sink SELECT /*+ BACKFILL(spark) */ k, v FROM a",
            "SQL-1009",
            "this value cannot be read",
        ),
        (
            "EXECUTE STATEMENT SET BEGIN INSERT INTO sink SELECT k, v FROM a WITH HISTORY; INSERT INTO sink SELECT k, v FROM b; END",
            "SQL-1714",
            "the INSERTs of a set begin at one point",
        ),
    ],
)
def test_where_it_may_stand(statement: str, code: str, why: str, tmp_path: Path) -> None:
    session = session_for(1, None)
    try:
        refused(session, with_files(tmp_path, 0.0), statement, code, why)
    finally:
        session.close()


def refused(session: Session, past: Past, statement: str, code: str, why: str) -> None:
    declare(session, past, watched=True)
    here = past.root / "a"
    stream, file = (
        "'source.monitor-interval' = '1 s'",
        f"'connector' = 'filesystem', 'path' = '{here}', 'format'",
    )
    session.execute("CREATE TABLE sink (k BIGINT, v BIGINT) WITH ('connector' = 'blackhole')")
    session.execute("CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen')")
    session.execute(f"CREATE TABLE changes (k BIGINT) WITH ({file} = 'debezium-json', {stream})")
    session.execute(f"CREATE TABLE lenient (k BIGINT) WITH ({file} = 'csv', 'on-error' = 'skip', {stream})")
    session.execute(f"CREATE TABLE bounded (k BIGINT) WITH ({file} = 'parquet')")
    session.settings.set("execution.runtime-mode", "automatic")
    with pytest.raises(PenstockError, match=why) as error:
        session.execute(statement)
    assert error.value.code == code
    assert error.value.span is not None


def test_explain_says_what_is_history_and_up_to_where(tmp_path: Path) -> None:
    past = with_files(tmp_path, 0.0)
    session = session_for(2, None)
    try:
        declare(session, past, watched=True)
        declare_sink(session, QUERIES["tumble"], tmp_path / "out")
        text = "\n".join(
            session.execute(f"EXPLAIN INSERT INTO out {QUERIES['tumble']} WITH HISTORY")
            .final_rows()
            .column(0)
            .to_pylist()
        )
        size = (past.root / "a" / "f003.parquet").stat().st_size
        assert (
            f"history of a up to 4 files, the last f003.parquet of {size:,} bytes, computed by duckdb; event times are read first"
            in text
        )
        assert "Local WindowAggregate tumble(ts, 1 min) by k" in text.partition("history of a")[2]
        assert "GROUP BY x.c0, x.e" in text
    finally:
        session.close()
