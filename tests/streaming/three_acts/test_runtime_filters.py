"""Joins with and without runtime filters: the same rows, times and late rows, in three acts and both
deployments; a wrong filter is found.
"""

from __future__ import annotations

import itertools
import shutil
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock.client.session import Session
from penstock.engine.api.operator import JoinKeys, KeysKnown, Output, SourceStatus
from penstock.engine.api.scan_pruning import SKIPPED
from penstock.engine.job.job import Job
from penstock.engine.operators.join.runtime_filter import PRUNED
from penstock.engine.operators.source.source import SourceOperator
from penstock.engine.state.index.key_index import KeyIndex
from tests.harness.patience import PATIENCE_S, await_that
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end
from tests.streaming.three_acts.test_timed_joins import submit

ROWS = 6000
_NUMBERS = np.arange(ROWS)
_WORDS = np.array(["a", "b", "", "é", "zz", None], object)
EVENTS = pa.table(
    {
        "id": _NUMBERS,
        "k": pa.array([None if i % 97 == 5 else i // 100 for i in range(ROWS)], pa.int32()),
        "s": pa.array(_WORDS[_NUMBERS * 7 % 6]),
        "x": pa.array(np.where(_NUMBERS % 5 == 0, np.nan, _NUMBERS % 7 / 2)),
        "ts": pa.array((_NUMBERS - np.where(_NUMBERS % 31 == 7, 40, 0)) * 100_000, pa.timestamp("us")),
    }
)
DIMS = pa.table(
    {
        "k": pa.array([3, 41, 41, None, 1000], pa.int64()),
        "s": pa.array(["zz", "a", "", "b", None]),
        "x": pa.array([float("nan"), 0.0, 1.5, None, -0.0]),
        "name": ["one", "two", "three", "four", "five"],
    }
)
QUERIES = {
    "widened": "SELECT e.id, d.name FROM e JOIN d ON e.k = d.k",
    "left side loaded": "SELECT e.id, d.name FROM d JOIN e ON e.k = d.k AND e.id % 2 = 0",
    "text": "SELECT e.id, d.name FROM e JOIN d ON e.s = d.s",
    "double": "SELECT e.id, d.name FROM e JOIN d ON e.x = d.x",
    "two keys": "SELECT e.id, d.name FROM e JOIN d ON e.s = d.s AND e.x = d.x",
    "in": "SELECT id FROM e WHERE k IN (SELECT k FROM d)",
    "exists": "SELECT id FROM e WHERE EXISTS (SELECT * FROM d WHERE d.s = e.s AND d.k > e.k)",
    "right": "SELECT e.id, d.name FROM e RIGHT JOIN d ON e.k = d.k",
    "left, loaded": "SELECT e.id, d.name FROM d LEFT JOIN e ON e.k = d.k",
    "not in, loaded": "SELECT name FROM d WHERE NOT EXISTS (SELECT * FROM e WHERE e.k = d.k)",
    "empty": "SELECT e.id, d.name FROM e JOIN d ON e.k = d.k AND d.name = 'none'",
    "two joins": "SELECT e.id, d.name, f.name AS other FROM e JOIN d ON e.k = d.k JOIN d AS f ON e.s = f.s",
    "one source": "SELECT id FROM e WHERE k IN (SELECT k FROM d) UNION ALL SELECT id FROM e WHERE s IN (SELECT s FROM d)",
    "windows": "SELECT w.id, w.window_end, d.name FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND) AS w JOIN d ON w.k = d.k",
    "time below": "SELECT w.n, w.window_end, d.name FROM (SELECT window_end, k, COUNT(*) AS n"
    " FROM TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '5' SECOND) GROUP BY window_start, window_end, k) AS w JOIN d ON w.k = d.k",
    "time above": "SELECT window_end, name, COUNT(*) AS n FROM TUMBLE(TABLE m, DESCRIPTOR(ts), INTERVAL '5' SECOND)"
    " GROUP BY window_start, window_end, name",
}
OFF = {"optimizer.runtime-filters": "false"}


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Path]:
    """Files of few rows a row group, which are read a little at a time."""
    (tmp_path / "e").mkdir()
    for part in range(3):
        pq.write_table(
            EVENTS.slice(part * ROWS // 3, ROWS // 3), tmp_path / "e" / f"{part}.parquet", row_group_size=100
        )
    pq.write_table(DIMS, tmp_path / "d.parquet")
    yield tmp_path


def made(tables: Path, rate: int = 0, **settings: str) -> Session:
    """Declare e and t, the same files without and with time, and d; ``rate``: how many rows of e and t are
    given in a second.
    """
    session = Session(
        {
            "execution.runtime-mode": "streaming",
            "execution.batch.max-rows": "50",
            "bounded.backend": "duckdb",
            **settings,
        }
    )
    options = f"'connector' = 'filesystem', 'format' = 'parquet', 'source.rows-per-second' = '{rate}', 'source.replay' = 'true'"
    session.execute(
        f"CREATE TABLE e (id BIGINT, k INT, s STRING, x DOUBLE, ts TIMESTAMP(6)) WITH ({options}, 'path' = '{tables}/e')"
    )
    timed = "ts TIMESTAMP(6), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND"
    session.execute(
        f"CREATE TABLE t (id BIGINT, k INT, s STRING, {timed}) WITH ({options}, 'path' = '{tables}/e')"
    )
    options = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{tables}/d.parquet'"
    session.execute(f"CREATE TABLE d (k BIGINT, s STRING, x DOUBLE, name STRING) WITH ({options})")
    session.execute("CREATE VIEW m AS SELECT t.*, d.name FROM t JOIN d ON t.k = d.k")
    return session


@contextmanager
def patient_sources(knowing: bool = True) -> Iterator[None]:
    """Have the streams wait until they are told of keys: else it is chance how many rows have been read by
    then.
    """
    poll, told = SourceOperator.poll, weakref.WeakSet[SourceOperator]()

    def waiting(source: SourceOperator, out: Output) -> SourceStatus:
        if source in told or source._spec.node.table.name not in ("e", "t"):
            return poll(source, out)
        return SourceStatus(wake_ms=int(source._context.clock.monotonic_ms()) + 1)

    def learning(source: SourceOperator, known: KeysKnown) -> None:
        learn(source, known)
        told.add(source)

    learn = SourceOperator.on_keys
    with pytest.MonkeyPatch.context() as patch:
        if knowing:
            patch.setattr(SourceOperator, "poll", waiting)
            patch.setattr(SourceOperator, "on_keys", learning)
        yield


def counted(job: Job, name: str) -> int:
    return sum(operator.counters.get(name, 0) for operator in job.metrics().operators)


def dropped_of(job: Job) -> int:
    return counted(job, PRUNED) + counted(job, SKIPPED)


def straight(session: Session, text: str, parallelism: int = 2) -> tuple[Counter[tuple[Any, ...]], Job]:
    session.settings.set("parallelism.default", str(parallelism))
    result = session.execute(text)
    rows = Counter(tuple(row.values()) for row in result.final_rows().to_pylist())
    assert result.job is not None and result.job.wait(PATIENCE_S), "its last numbers are told at its end"
    return rows, result.job


def both(tables: Path, text: str, *, told: bool = True) -> tuple[Job, Job]:
    """Run a query with runtime filters and without; the rows must be the same. ``told``: the source is
    told of keys. Returns the jobs.
    """
    jobs, rows = [], []
    for switches in ({}, OFF):
        session = made(tables, **switches)
        try:
            with patient_sources(told and switches is not OFF):
                found, job = straight(session, text)
        finally:
            session.close()
        rows.append(found)
        jobs.append(job)
    assert rows[0] == rows[1]
    assert bool(rows[0]) == ("'none'" not in text)
    assert not dropped_of(jobs[1])
    return jobs[0], jobs[1]


@pytest.mark.parametrize("name", QUERIES)
def test_rows_are_the_same(tables: Path, name: str) -> None:
    """Rows that have late ones among them are dropped for their time as without a filter, below the join
    or above it.
    """
    told = name not in ("one source", "time below")
    filtered, whole = both(tables, QUERIES[name], told=told)
    late = [job.metrics().late_rows for job in (filtered, whole)]
    assert late[0] == late[1] and bool(late[0]) == name.startswith("time")
    assert dropped_of(filtered) >= ROWS // 3 or not told, "hardly a row was kept from the join"
    read = [
        max(o.rows_out for o in job.metrics().operators if o.name.startswith("source "))
        for job in (filtered, whole)
    ]
    assert read[0] + counted(filtered, SKIPPED) == read[1] == ROWS
    if name in ("windows", "time above", "text", "one source"):
        assert not counted(filtered, SKIPPED), (
            "time is made of all rows; every piece has some of the words; another reader wants all"
        )
    if name in ("widened", "in", "empty"):
        assert counted(filtered, SKIPPED) > ROWS * 9 // 10


@pytest.mark.parametrize("deployment", ["embedded", "processes"])
def test_a_backend_computes_the_keys_of_an_endless_stream(
    tables: Path, tmp_path: Path, deployment: str
) -> None:
    """Bounded parts on DuckDB, files that are watched: of those that come when the keys are known only the
    row groups with keys are read.
    """
    session = made(
        tables,
        **{"execution.runtime-mode": "automatic", "deployment": deployment, "parallelism.default": "2"},
    )
    (tmp_path / "w").mkdir()
    shutil.copy(tables / "e" / "0.parquet", tmp_path / "w")
    try:
        options = f"'connector' = 'filesystem', 'format' = 'parquet', 'path' = '{tmp_path}/w', 'source.monitor-interval' = '100 ms'"
        session.execute(f"CREATE TABLE w (id BIGINT, k INT) WITH ({options})")
        expected, _ = straight(session, "SELECT id FROM e WHERE k IN (3, 41)")
        text = "SELECT id FROM w JOIN (SELECT DISTINCT k FROM d) AS d ON w.k = d.k"
        plan = session.execute(f"EXPLAIN {text}").final_rows().column(0).to_pylist()
        assert any("runtime filter on key1 of w" in line for line in plan) and any(
            "BoundedInput" in line for line in plan
        )
        result, found = session.execute(text), Counter[tuple[Any, ...]]()
        assert result.job is not None
        while found.total() < expected.total():
            batch = result.next(PATIENCE_S)
            assert batch is not None
            found.update(tuple(row.values()) for row in batch.rows.to_pylist())
            if found.total() == 99 and not (tmp_path / "w" / "2.parquet").exists():
                others = pq.read_table(tables / "e" / "0.parquet").filter(pc.field("k") == 7)
                # until the keys are known
                for number in itertools.takewhile(lambda _: not dropped_of(result.job), itertools.count()):
                    pq.write_table(others, tmp_path / "w" / f".{number}")
                    (tmp_path / "w" / f".{number}").rename(tmp_path / "w" / f"without-{number}.parquet")
                    result.job.wait(0.2)
                for part in (1, 2):
                    shutil.copy(tables / "e" / f"{part}.parquet", tmp_path / "w" / f".{part}")
                    (tmp_path / "w" / f".{part}").rename(tmp_path / "w" / f"{part}.parquet")
        assert found == expected
        wait_until(lambda: dropped_of(result.job) >= ROWS // 3, result.job)
        result.cancel()
    finally:
        session.close()


@pytest.mark.parametrize("name", ["widened", "exists", "time above", "two joins"])
def test_three_acts(tables: Path, tmp_path: Path, name: str) -> None:
    """A restored job has its filter again: the join tells the keys it was restored with."""
    # the first act is paced, so that most rows are left for the second however slow the machine is
    plain, paced, quick = made(tables, **OFF), made(tables, 400), made(tables)
    try:
        expected, _ = straight(plain, QUERIES[name], 1)
        folded = Folded()
        with patient_sources():
            assert straight(quick, QUERIES[name], 1)[0] == expected
            run_and_stop(*submit(paced, QUERIES[name], 2, tmp_path / "state"), folded, 80)
            job, channel = submit(quick, QUERIES[name], 3, tmp_path / "state")
            run_to_end(job, channel, folded)
        assert folded.rows == expected
        assert dropped_of(job) > ROWS // 4
    finally:
        for session in (plain, paced, quick):
            session.close()


@pytest.mark.parametrize("before", [True, False])
def test_a_checkpoint_knows_nothing_of_filters(tables: Path, tmp_path: Path, before: bool) -> None:
    """A job goes on with filters that was begun without, and the other way round."""
    paced, quick, folded, text = made(tables, 400), made(tables), Folded(), QUERIES["exists"]
    try:
        expected, _ = straight(quick, text, 1)
        for session, filtered in ((paced, before), (quick, not before)):
            session.settings.set("optimizer.runtime-filters", str(filtered).lower())
            with patient_sources(filtered):
                job, channel = submit(session, text, 2, tmp_path / "state")
                if session is paced:
                    run_and_stop(job, channel, folded, 80)
                else:
                    run_to_end(job, channel, folded)
            assert bool(dropped_of(job)) == filtered
        assert folded.rows == expected
    finally:
        paced.close()
        quick.close()


def test_a_filter_that_lacks_a_key_is_found(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(index: KeyIndex) -> JoinKeys:
        keys = pa.RecordBatch.from_arrays(index.keys(index.live_slots()), names=["0"])
        return JoinKeys(keys.slice(1) if keys.num_rows else keys)

    monkeypatch.setattr("penstock.engine.operators.join.regular_join.summarize_keys", forgetful)
    with pytest.raises(AssertionError):
        both(tables, QUERIES["widened"])


def test_what_was_dropped_is_shown(tables: Path) -> None:
    session = made(tables)
    try:
        with patient_sources():
            rows, job = straight(session, QUERIES["empty"])
        assert not rows
        told = {}
        for words in ("ANALYZE JOB", "WHY NO OUTPUT FOR JOB"):
            lines = session.execute(f"EXPLAIN {words} '{job.job_id}'").final_rows()
            told[words] = " ".join(str(value) for column in lines.columns for value in column.to_pylist())
    finally:
        session.close()
    assert "rows skipped 6,000" in told["ANALYZE JOB"]
    assert (
        "no row has a key of the side of its join that was loaded first: 6,000 were dropped"
        in told["WHY NO OUTPUT FOR JOB"]
    )


def wait_until(holds: Callable[[], bool], job: Job) -> None:
    await_that(
        holds,
        lambda: (
            f"what was waited for of {[(operator.name, operator.counters) for operator in job.metrics().operators]}"
        ),
    )
