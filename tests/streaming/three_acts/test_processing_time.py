"""Time by the clock: each row is in a window once, whatever is stopped and split; the clock is whole for
what stands above it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.catalog.errors import PenstockError
from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.connectors.in_process.result_channels import ResultChannel
from penstock.engine.job.job import Job
from penstock.planner.logical.sink import Sink
from penstock.planner.statements.nodes import Query
from tests.harness.patience import PATIENCE_S
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end

ROWS = 9_000
CLICKS = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "k": pa.array([None if i % 91 == 0 else i * 5 % 7 for i in range(ROWS)], pa.int64()),
    }
)
TIMED = "(SELECT *, PROCTIME() AS p FROM clicks)"
_WINDOWS = {
    "tumble": f"TUMBLE(TABLE {TIMED}, DESCRIPTOR(p), INTERVAL '0.02' SECONDS)",
    "cumulate": f"CUMULATE(TABLE {TIMED}, DESCRIPTOR(p), INTERVAL '1' DAY, INTERVAL '1' DAY)",
    "session": f"SESSION(TABLE {TIMED} PARTITION BY k, DESCRIPTOR(p), INTERVAL '0.005' SECONDS)",
}


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "50"})
    session.register("clicks", CLICKS, stream=True)
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


def rows_of_clicks(job: Job) -> int:
    return max((o.rows_out for o in job.metrics().operators if o.name == "source clicks"), default=0)


def late(job: Job) -> int:
    return sum(o.late_rows for o in job.metrics().operators)


@pytest.mark.parametrize("kind", _WINDOWS)
def test_three_acts_count_every_row_once(
    session: Session, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.streaming.three_acts.acts.rows_read", rows_of_clicks)
    text = f"SELECT k, window_start, window_end, count(*), sum(id) FROM {_WINDOWS[kind]} GROUP BY k, window_start, window_end"
    counts, sums = Counter(CLICKS["k"].to_pylist()), Counter[int | None]()
    for row in CLICKS.to_pylist():
        sums[row["k"]] += row["id"]
    straight, stopped = Folded(), Folded()
    job, channel = submit(session, text, 1, None)
    run_to_end(job, channel, straight)
    assert late(job) == 0
    job, channel = submit(session, text, 2, tmp_path)
    run_and_stop(job, channel, stopped, ROWS // 4)
    job, channel = submit(session, text, 3, tmp_path)
    run_to_end(job, channel, stopped)
    assert late(job) == 0
    for folded in (straight, stopped):
        found: Counter[int | None] = Counter()
        totals: Counter[int | None] = Counter()
        for (k, start, end, n, total), times in folded.rows.items():
            assert times == 1 and start < end
            found[k] += n
            totals[k] += total
        assert found == counts and totals == sums
        assert len({row[:3] for row in folded.rows}) == len(folded.rows), "a window came twice"


@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_rows_are_numbered_as_they_come(session: Session, parallelism: str) -> None:
    session.settings.set("parallelism.default", parallelism)
    text = f"SELECT k, ROW_NUMBER() OVER (PARTITION BY k ORDER BY p) AS n FROM {TIMED}"
    result = session.execute(text)
    rows = result.final_rows(PATIENCE_S)
    assert result.shape.insert_only
    counts = Counter(CLICKS["k"].to_pylist())
    assert Counter(zip(*(c.to_pylist() for c in rows.columns), strict=True)) == Counter(
        (k, n + 1) for k, c in counts.items() for n in range(c)
    )


def test_a_window_over_windows_by_the_clock(session: Session) -> None:
    inner = f"SELECT k, window_time, count(*) AS n FROM {_WINDOWS['tumble']} GROUP BY k, window_start, window_end, window_time"
    text = f"SELECT sum(n) FROM TUMBLE(TABLE ({inner}), DESCRIPTOR(window_time), INTERVAL '1' DAY) GROUP BY window_start, window_end"
    rows = session.execute(text).final_rows(PATIENCE_S)
    assert sum(rows.column(0).to_pylist()) == ROWS


def test_legacy_windows_by_the_clock(session: Session) -> None:
    text = f"SELECT TUMBLE_PROCTIME(p, INTERVAL '1' DAY) IS NOT NULL, count(*) FROM {TIMED} GROUP BY TUMBLE(p, INTERVAL '1' DAY)"
    rows = session.execute(text).final_rows(PATIENCE_S)
    assert set(rows.column(0).to_pylist()) == {True} and sum(rows.column(1).to_pylist()) == ROWS


def test_bounded_tables_stream_where_windows_go_by_the_clock() -> None:
    with_session = Session({"bounded.backend": "duckdb"})
    with_session.register("clicks", CLICKS)
    try:
        query = f"SELECT count(*) AS n FROM {_WINDOWS['tumble']} GROUP BY window_start, window_end"
        assert sum(with_session.execute(query).final_rows(PATIENCE_S).column(0).to_pylist()) == ROWS
        with_session.settings.set("execution.runtime-mode", "batch")
        assert sum(with_session.execute(query).final_rows(PATIENCE_S).column(0).to_pylist()) == ROWS
    finally:
        with_session.close()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, n, PROCTIME() FROM (SELECT k, count(*) AS n FROM clicks GROUP BY k)",
        "SELECT n, now() FROM (SELECT k, count(*) AS n FROM clicks GROUP BY k)",
    ],
)
def test_the_clock_beside_rows_taken_back_is_refused(session: Session, query: str) -> None:
    with pytest.raises(PenstockError) as refused:
        session.execute(query)
    assert refused.value.code == "SQL-1315"


@pytest.mark.parametrize("batch_rows", ["1", "3", "100"])
@pytest.mark.parametrize("parallelism", ["1", "2"])
def test_an_order_by_the_clock_is_the_order_rows_arrive_in(
    session: Session, parallelism: str, batch_rows: str
) -> None:
    """Through exchanges too, and however many rows one stamp of the clock is for."""
    session.settings.set("parallelism.default", parallelism)
    session.settings.set("execution.batch.max-rows", batch_rows)
    session.register("arrivals", pa.table({"k": [0, 1, 0, 1, 0], "v": [10, 9, 8, 7, 9]}), stream=True)
    timed = "(SELECT *, PROCTIME() AS p FROM arrivals)"
    numbered = f"SELECT k, v FROM (SELECT k, v, ROW_NUMBER() OVER (PARTITION BY k ORDER BY p{{}}) AS n FROM {timed}) WHERE n = 1"
    assert folded(session, numbered.format("")) == Counter([(0, 10), (1, 9)])
    assert folded(session, numbered.format(" DESC")) == Counter([(0, 9), (1, 7)])
    lagged = f"SELECT k, v, LAG(v) OVER (PARTITION BY k ORDER BY p), MIN(v) OVER (PARTITION BY k ORDER BY p ROWS 1 PRECEDING) FROM {timed}"
    assert folded(session, lagged) == Counter(
        [(0, 10, None, 10), (0, 8, 10, 8), (0, 9, 8, 8), (1, 9, None, 9), (1, 7, 9, 7)]
    )


def folded(session: Session, text: str) -> Counter[tuple[object, ...]]:
    found = session.execute(text).final_rows(PATIENCE_S)
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))
