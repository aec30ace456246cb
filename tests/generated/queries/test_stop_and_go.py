"""A query of each kind in three acts: alone straight through; two slots with checkpoints, stopped;
finished by three. The answer is DuckDB's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.connectors.in_process.result_channels import ResultChannel
from penstock.engine.job.job import Job
from penstock.planner.logical.sink import Sink
from penstock.planner.statements.nodes import Query
from tests.harness.source_gate import gated
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end

ROWS = 4_000
QUERIES = {
    "in": "SELECT k, count(*) AS n FROM t WHERE v IN (SELECT v FROM u WHERE u.k = t.k) GROUP BY k",
    "not-in": "SELECT k, s, v FROM t WHERE v NOT IN (SELECT n FROM (SELECT k, count(*) + 600 AS n FROM u GROUP BY k) AS g)",
    "scalar": "SELECT k, v - (SELECT min(v) FROM u WHERE u.k = t.k) AS x FROM t WHERE v < (SELECT max(v) FROM u) - 900",
    "correlated-groups": "SELECT k, s, v FROM t WHERE EXISTS (SELECT u.s FROM u WHERE u.k = t.k AND u.v > t.v AND u.v > 990 GROUP BY u.s HAVING count(*) > 1)",
    "correlated-set": "SELECT k, v FROM t WHERE v IN (SELECT u.v FROM u WHERE u.k = t.k AND u.v < 20 EXCEPT SELECT u.v FROM u WHERE u.s = t.s AND u.v < 9)",
    "correlated-rows": "SELECT t.k, l.v FROM t LEFT JOIN LATERAL (SELECT u.v FROM u WHERE u.k = t.k ORDER BY u.v NULLS FIRST LIMIT 2 OFFSET 1) AS l ON TRUE",
    "correlated-levels": "SELECT k, v FROM t WHERE EXISTS (SELECT 1 FROM (SELECT k, max(v) AS m FROM u GROUP BY k) AS g WHERE g.k = t.k"
    " AND EXISTS (SELECT 1 FROM u WHERE u.v = t.v AND u.v < g.m - 900))",
    "except-all": "SELECT k, s FROM t EXCEPT ALL SELECT k, s FROM u",
    "intersect": "SELECT k, v FROM t INTERSECT SELECT k, v FROM u WHERE s = 'b'",
    "cube": "SELECT k, s, sum(v), count(*), grouping(k) FROM t GROUP BY CUBE (k, s)",
}


def _table(step: int, rows: int) -> pa.Table:
    keys = [None if i % 97 == 0 else i * step % 13 for i in range(rows)]
    names = ["abc"[i % 3] for i in range(rows)]
    values = [None if i % 501 == 500 else i * 7 % 1000 for i in range(rows)]
    return pa.table(
        [keys, names, values], schema=pa.schema([("k", pa.int32()), ("s", pa.string()), ("v", pa.int64())])
    )


TABLES = {"t": _table(5, ROWS), "u": _table(3, ROWS // 3).slice(0, ROWS // 3 - 1)}


@pytest.fixture
def session() -> Iterator[Session]:
    session = Session({"execution.runtime-mode": "streaming", "execution.batch.max-rows": "50"})
    for name, table in TABLES.items():
        session.register(name, table, stream=True)
    yield session
    session.close()


def submit(
    session: Session, text: str, parallelism: int, state_dir: Path | None
) -> tuple[Job, ResultChannel]:
    session.settings.set("parallelism.default", str(parallelism))
    query = session.parse(text)[0].node
    assert isinstance(query, Query)
    graph = session.pipeline.plan(session.pipeline.bind(query)).graph
    assert graph is not None
    sink = next(
        spec.operator_id for chain in graph.chains for spec in chain.operators if isinstance(spec.node, Sink)
    )
    session.state.channels.release(sink)
    channel = session.state.channels.channel(sink)
    options = replace(
        JobOptions.from_settings(session.settings, name="act", state_dir=state_dir),
        checkpoint_interval_ms=20 if state_dir else 0,
    )
    return session.state.jobs.manager.submit(graph, options, "act" if state_dir else None), channel


def expected(text: str) -> Counter[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        return Counter(connection.execute(text).fetchall())


@pytest.mark.parametrize("kind", QUERIES)
def test_three_acts(session: Session, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.streaming.three_acts.acts.rows_read", lambda job: rows_of_t(job))
    answer = expected(QUERIES[kind])
    straight = Folded()
    run_to_end(*submit(session, QUERIES[kind], 1, None), straight)
    assert straight.rows == answer

    folded = Folded()
    with gated(ROWS // 2):
        job, channel = submit(session, QUERIES[kind], 2, tmp_path)
        run_and_stop(job, channel, folded, ROWS // 4)
    assert rows_of_t(job) < ROWS, "act two was to stop in the middle"
    job, channel = submit(session, QUERIES[kind], 3, tmp_path)
    run_to_end(job, channel, folded)
    assert rows_of_t(job) < ROWS, "act three was to go on, not to begin again"
    assert folded.rows == answer


def rows_of_t(job: Job) -> int:
    """How many rows of t were given so far."""
    return max(
        (operator.rows_out for operator in job.metrics().operators if operator.name == "source t"), default=0
    )
