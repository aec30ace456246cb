"""Operators that a hint gives subtasks of their own: the rows of one subtask, from the first to the last
act, although the numbers of the operators and that of the job change from act to act.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pytest

from penstock.client.session import Session
from penstock.engine.job.job import Job
from penstock.planner.physical.operator_specs import JobGraph
from tests.harness.patience import PATIENCE_S, await_that
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end

ROWS = 12_000
TABLES = f"""
    CREATE TABLE numbers (n BIGINT, k AS n % 7, ts AS TIMESTAMPADD(SECOND, n, TIMESTAMP '2026-01-01 00:00:00'),
                          WATERMARK FOR ts AS ts - INTERVAL '4' HOUR)
    WITH ('connector' = 'datagen', 'number-of-rows' = '{ROWS}', 'splits' = '4', 'fields.n.kind' = 'sequence');
    CREATE TABLE names (m BIGINT, k AS m % 7)
    WITH ('connector' = 'datagen', 'number-of-rows' = '21', 'splits' = '2', 'fields.m.kind' = 'sequence');
"""
NUMBERS = (
    f"(SELECT n, n % 7 AS k, TIMESTAMP '2026-01-01' + n * INTERVAL 1 SECOND AS ts FROM range({ROWS}) AS t(n))"
)
NAMES = "(SELECT m, m % 7 AS k FROM range(21) AS t(m))"
# each query with two hints, the operators they are for, and the same in DuckDB's words
QUERIES = {
    "join, groups": (
        "SELECT /*+ PARALLELISM('JOIN' = '{0}'), PARALLELISM('GROUP BY' = '{1}') */ n % 5 AS g, COUNT(*) AS c, "
        "MAX(n + m) AS x FROM numbers AS a JOIN names AS b ON a.k = b.k GROUP BY n % 5;",
        ("inner join", "aggregate by"),
        f"SELECT n % 5, COUNT(*), MAX(n + m) FROM {NUMBERS} AS a JOIN {NAMES} AS b USING (k) GROUP BY 1",
    ),
    "window, top": (
        "SELECT /*+ PARALLELISM(2) */ k, c FROM (SELECT /*+ PARALLELISM({1}) */ k, c, ROW_NUMBER() OVER "
        "(PARTITION BY k ORDER BY c DESC, w) AS r FROM (SELECT /*+ PARALLELISM({0}) */ k, window_start AS w, "
        "COUNT(*) AS c FROM TUMBLE(TABLE numbers, DESCRIPTOR(ts), INTERVAL '10' MINUTE) GROUP BY k, window_start, "
        "window_end) AS t) AS t WHERE r <= 2;",
        ("global tumble aggregate", "top 2"),
        f"SELECT k, c FROM (SELECT k, c, ROW_NUMBER() OVER (PARTITION BY k ORDER BY c DESC, w) AS r FROM (SELECT k, "
        f"time_bucket(INTERVAL 10 MINUTE, ts) AS w, COUNT(*) AS c FROM {NUMBERS} GROUP BY 1, 2)) WHERE r <= 2",
    ),
    "outer join, distinct": (
        "SELECT /*+ PARALLELISM('JOIN b' = '{0}', 'DISTINCT' = '{1}') */ DISTINCT a.k, b.m FROM numbers AS a LEFT "
        "JOIN names AS b ON a.k = b.k AND b.m > a.n % 9;",
        ("left join", "distinct"),
        f"SELECT DISTINCT a.k, b.m FROM {NUMBERS} AS a LEFT JOIN {NAMES} AS b ON a.k = b.k AND b.m > a.n % 9",
    ),
}
# the subtasks of the job, those of both operators
ACTS = ((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 4, 1))


def expected(query: str) -> Counter[tuple[Any, ...]]:
    return Counter(duckdb.connect().sql(QUERIES[query][2]).fetchall())


def subtasks_of(graph: JobGraph, name: str) -> set[int]:
    return {
        chain.parallelism
        for chain in graph.chains
        for spec in chain.operators
        if name in spec.name and "local" not in spec.name
    }


@pytest.mark.parametrize(
    ("query", "deployment"),
    [*((query, "embedded") for query in QUERIES), ("join, groups", "processes")],
)
def test_each_operator_at_its_own_number(query: str, deployment: str, tmp_path: Path) -> None:
    folded = Folded()
    text, names, _ = QUERIES[query]
    # worker processes take seconds to start
    acts = ACTS if deployment == "embedded" else ACTS[:2]
    for number, (parallelism, *own) in enumerate(acts, 1):
        settings = {"execution.batch.max-rows": "500", "deployment": deployment}
        script = Script("", settings, TABLES + text.format(*own))
        try:
            graph, _ = script.graph(parallelism)
            assert [subtasks_of(graph, name) for name in names] == [{own[0]}, {own[1]}]
            job, channel = script.submit(parallelism, tmp_path, 50)
            if number < len(acts):
                run_and_stop(job, channel, folded, ROWS // 6)
            else:
                run_to_end(job, channel, folded)
                assert rows_read(job) < ROWS, "the last act was to go on, not to begin again"
        finally:
            script.close()
    assert folded.rows == expected(query)


def test_rows_in_flight_go_to_the_subtasks_of_a_new_number(tmp_path: Path) -> None:
    """A job is cancelled behind unaligned checkpoints; its operators go on at other numbers."""
    text, _, _ = QUERIES["join, groups"]
    settings = {
        "execution.batch.max-rows": "200",
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.interval": "20 ms",
        "table.dml-sync": "false",
    }
    target = (
        "CREATE TABLE kept (g BIGINT, c BIGINT, x BIGINT) WITH ('connector' = 'filesystem', "
        f"'path' = '{tmp_path / 'out'}', 'format' = 'debezium-json');"
    )
    insert = "INSERT INTO kept " + text
    paced = TABLES.replace(
        f"'{ROWS}', 'splits' = '4'", f"'{ROWS}', 'splits' = '4', 'rows-per-second' = '6000'"
    )
    for act, numbers in enumerate(((2, 3), (3, 1), (1, 2)), 1):
        session = Session(settings)
        session.state.state_dir = tmp_path / "state"
        try:
            for statement in (paced + target + insert.format(*numbers)).split(";")[:-1]:
                result = session.execute(statement)
            job = result.job
            assert job is not None
            if act < 3:
                await_that(lambda job=job: enough(job), "two checkpoints and rows")
                job.cancel()
            assert job.wait(PATIENCE_S)
            read = job.metrics().rows_in
        finally:
            session.close()
    assert read < ROWS, "the last act was to go on, not to begin again"
    rows = Counter[tuple[Any, ...]]()
    for before, after in changes(tmp_path / "out"):
        rows.update([] if after is None else [tuple(after.values())])
        rows.subtract([] if before is None else [tuple(before.values())])
    assert +rows == expected("join, groups") and not -rows


def enough(job: Job) -> bool:
    assert not job.state.terminal, job.error
    metrics = job.metrics()
    return metrics.checkpoints_completed >= 2 and metrics.rows_in > ROWS // 5


def changes(directory: Path) -> list[tuple[Any, Any]]:
    lines = [
        line
        for path in sorted(directory.iterdir())
        if not path.name.startswith((".", "_"))
        for line in path.read_text().split("\n")
        if line
    ]
    return [(change.get("before"), change.get("after")) for change in map(json.loads, lines)]


def test_a_running_job_keeps_the_numbers_of_its_hints(tmp_path: Path) -> None:
    session = Session({"execution.checkpointing.interval": "50 ms", "table.dml-sync": "false"})
    try:
        for statement in (
            "CREATE TABLE ticks (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '500', "
            "'fields.n.kind' = 'sequence')",
            "CREATE TABLE hole (g BIGINT, c BIGINT, PRIMARY KEY (g) NOT ENFORCED) WITH ('connector' = 'blackhole')",
            "INSERT INTO hole SELECT /*+ PARALLELISM(4) */ n % 5 AS g, COUNT(*) FROM ticks GROUP BY n % 5",
        ):
            job = session.execute(statement).job
        assert job is not None
        await_that(lambda: job.metrics().rows_in > 0, "rows")
        for parallelism in (2, 1):
            session.execute(f"ALTER JOB '{job.job_id}' SET PARALLELISM {parallelism}")
            assert job.graph is not None
            assert subtasks_of(job.graph, "aggregate") == {4}
            assert subtasks_of(job.graph, "source") == {parallelism}
        session.execute(f"CANCEL JOB '{job.job_id}'")
    finally:
        session.close()
