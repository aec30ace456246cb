"""Arrays, maps and rows on streams, in three acts: UNNEST over inserts and changes, nested keys, rows that
carry them. The answer is DuckDB's.
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
import pytest

from penstock.client.session import Session
from penstock.engine.api.job_options import JobOptions
from penstock.engine.connectors.in_process.result_channels import ResultChannel
from penstock.engine.job.job import Job
from penstock.planner.logical.sink import Sink
from penstock.planner.statements.nodes import Query
from tests.streaming.three_acts.acts import Folded, run_and_stop, run_to_end

ROWS = 1500
_PAIR = pa.struct([("x", pa.int32()), ("y", pa.string())])
_LISTS = [None, [], [1], [2, None, 2], [3, 1], [7, 8, 9, 10]]
_PAIRS = [None, [], [{"x": 1, "y": "a"}], [{"x": 2, "y": None}, {"x": 3, "y": "b"}]]
_ELEMENT = "element"  # as parquet calls the values of a list: no part of its type
_MAPS = [None, [], [("k", 1)], [("k", 2), ("j", None)]]
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int64()),
        "k": ["abc"[i * i % 7 % 3] if i % 11 else None for i in range(ROWS)],
        "v": pa.array([i * 37 % 19 for i in range(ROWS)], pa.int64()),
        "arr": pa.array([_LISTS[i * 5 % 6] for i in range(ROWS)], pa.list_(pa.field(_ELEMENT, pa.int32()))),
        "rs": pa.array([_PAIRS[i * 7 % 4] for i in range(ROWS)], pa.list_(pa.field(_ELEMENT, _PAIR))),
        "m": pa.array([_MAPS[i * 3 % 4] for i in range(ROWS)], pa.map_(pa.string(), pa.int32())),
        "r": pa.array([None if i % 13 == 5 else {"x": i % 5, "y": "uvw"[i % 3]} for i in range(ROWS)], _PAIR),
        "ts": pa.array(
            [
                datetime(2024, 1, 1) + timedelta(seconds=i // 3, milliseconds=i * 7 % 2000)
                for i in range(ROWS)
            ],
            pa.timestamp("us"),
        ),
    }
)
# By name: the query, and DuckDB's words where they are others.
QUERIES: dict[str, tuple[str, str | None]] = {
    "fields": ("SELECT id, r.x, t.r.y, arr[2], m['k'] FROM t WHERE r.x > 1", None),
    "cross": ("SELECT id, e FROM t CROSS JOIN UNNEST(t.arr) AS u(e)", None),
    "comma": (
        "SELECT k, sum(e), count(*) FROM t, UNNEST(arr) AS u(e) WHERE e > 1 AND v < 15 GROUP BY k",
        None,
    ),
    "left": (
        "SELECT id, e FROM t LEFT JOIN UNNEST(arr) AS u(e) ON TRUE",
        "SELECT id, unnest(CASE WHEN len(arr) > 0 THEN arr ELSE [NULL] END) FROM t",
    ),
    "ordinality": (
        "SELECT id, e, n FROM t CROSS JOIN UNNEST(arr) WITH ORDINALITY AS u(e, n)",
        "SELECT id, unnest(arr), unnest(generate_series(1, len(arr))) FROM t",
    ),
    "rows": (
        "SELECT id, x, y FROM t, UNNEST(rs) AS u",
        "SELECT id, p.x, p.y FROM (SELECT id, unnest(rs) AS p FROM t)",
    ),
    "map": (
        "SELECT a, sum(b) FROM t, UNNEST(m) AS u(a, b) GROUP BY a",
        "SELECT p.key, sum(p.value) FROM (SELECT unnest(map_entries(m)) AS p FROM t) GROUP BY p.key",
    ),
    "view": (
        "SELECT id, p, e FROM t LATERAL VIEW OUTER posexplode(arr) w AS p, e WHERE id % 3 = 0",
        "SELECT id, unnest(CASE WHEN len(arr) > 0 THEN generate_series(0, len(arr) - 1) ELSE [NULL] END),"
        " unnest(CASE WHEN len(arr) > 0 THEN arr ELSE [NULL] END) FROM t WHERE id % 3 = 0",
    ),
    "json": (
        "SELECT k, sum(from_json(to_json(struct(v, r)), 'v INT, r STRUCT<x: INT>').r.x), count(*) FROM t GROUP BY k",
        "SELECT k, sum(r.x), count(*) FROM t GROUP BY k",
    ),
    "json-tuple": (
        "SELECT id, x, y FROM t LATERAL VIEW json_tuple(json_object('x' VALUE v, 'y' : k), 'x', 'y') u AS x, y",
        "SELECT id, CAST(v AS VARCHAR), k FROM t",
    ),
    "variant-keys": (
        "SELECT w, count(*), sum(w:n::INT), max(w['k']::STRING) FROM (SELECT parse_json(json_object('n' VALUE v % 5, 'k' : k)) AS w FROM t) GROUP BY w",
        """SELECT '{"k":' || coalesce('"' || k || '"', 'null') || ',"n":' || v % 5 || '}', count(*), sum(v % 5), any_value(k) FROM t GROUP BY k, v % 5""",
    ),
    "variant-carried": (
        "SELECT g.k, g.n, u.w, u.w:x::INT FROM (SELECT k, max(id) AS top, count(*) AS n FROM t GROUP BY k) AS g"
        " JOIN (SELECT id, CAST(named_struct('x', v, 'k', k) AS VARIANT) AS w FROM t) AS u ON g.top = u.id",
        """SELECT g.k, g.n, '{"k":' || coalesce('"' || t.k || '"', 'null') || ',"x":' || v || '}', v
        FROM (SELECT k, max(id) AS top, count(*) AS n FROM t GROUP BY k) AS g JOIN t ON g.top = t.id""",
    ),
    "list": ("SELECT id, explode(arr) AS e FROM t WHERE v > 3", "SELECT id, unnest(arr) FROM t WHERE v > 3"),
    "two": (
        "SELECT id, e, x FROM t, UNNEST(arr) AS u(e), UNNEST(rs) AS w(x, y)",
        "SELECT id, e, w.x FROM t, UNNEST(arr) u(e), UNNEST(rs) z(w)",
    ),
    "changes": (
        "SELECT k, n, e FROM (SELECT k, count(*) AS n, max(v) AS top FROM t GROUP BY k) AS g, UNNEST(ARRAY[n, top, n]) AS u(e)",
        "SELECT k, n, unnest([n, top, n]) FROM (SELECT k, count(*) AS n, max(v) AS top FROM t GROUP BY k)",
    ),
    "top": (
        "SELECT id, e FROM (SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM t) WHERE n <= 3),"
        " UNNEST(arr) AS u(e)",
        None,
    ),
    "keys": ("SELECT r, count(*), sum(v) FROM t GROUP BY r", None),
    "array-keys": ("SELECT arr, k, count(*) FROM t GROUP BY arr, k", None),
    "order": (
        # DISTINCT: the job would send the keys of the last ORDER BY, too
        "SELECT DISTINCT id FROM (SELECT id FROM t ORDER BY array(v, id % 5) DESC, r DESC, id LIMIT 20)",
        "SELECT id FROM t ORDER BY [v, id % 5] DESC, r DESC NULLS LAST, id LIMIT 20",
    ),
    "over": (
        "SELECT id, rank() OVER (PARTITION BY r ORDER BY array(v, id % 2)) AS n FROM t",
        "SELECT id, rank() OVER (PARTITION BY r ORDER BY [v, id % 2]) FROM t",
    ),
    "distinct": ("SELECT DISTINCT r, m FROM t", None),
    "join": (
        "SELECT a.id, b.n FROM t AS a JOIN (SELECT r, count(*) AS n FROM t GROUP BY r) AS b ON a.r = b.r WHERE a.id < 300",
        None,
    ),
    "carried": (
        "SELECT g.k, g.n, t.id, t.rs, t.m FROM (SELECT k, max(id) AS top, count(*) AS n FROM t GROUP BY k) AS g JOIN t ON g.top = t.id",
        None,
    ),
    "built": (
        "SELECT k, named_struct('n', count(*), 'm', max(v)) AS s, array(min(v), max(v)) AS a FROM t GROUP BY k",
        "SELECT k, {'n': count(*), 'm': max(v)}, [min(v), max(v)] FROM t GROUP BY k",
    ),
    "window": (
        "SELECT window_end, e, count(*) FROM TUMBLE(TABLE (SELECT e, ts FROM t, UNNEST(arr) AS u(e)), DESCRIPTOR(ts), INTERVAL '10' SECONDS)"
        " GROUP BY window_start, window_end, e",
        "SELECT time_bucket(INTERVAL '10 seconds', ts) + INTERVAL '10 seconds' AS w, e, count(*) FROM t, UNNEST(arr) AS u(e) GROUP BY w, e",
    ),
    "lateral": (
        "SELECT a.id, b.id FROM t AS a, LATERAL (SELECT id FROM t WHERE v = a.v AND k = a.k ORDER BY id DESC LIMIT 2) AS b WHERE a.id < 200",
        None,
    ),
    "lateral-aggregates": (
        "SELECT a.id, n, top FROM t AS a LEFT JOIN LATERAL (SELECT count(*) AS n, max(id) AS top FROM t WHERE v = a.v + 10) AS b ON TRUE"
        " WHERE a.id % 7 = 0",
        None,
    ),
    "functions": (
        "SELECT id, transform(arr, x -> x + v), filter(arr, x -> x > v % 3) FROM t WHERE exists(arr, x -> x = 2)",
        "SELECT id, list_transform(arr, lambda x: x + v), list_filter(arr, lambda x: x > v % 3) FROM t WHERE list_contains(arr, 2)",
    ),
    "functions-changes": (
        "SELECT k, aggregate(collect_list(v % 5), 0L, (s, x) -> s * 3 % 1000 + x) FROM t GROUP BY k",
        "SELECT k, list_reduce(list_prepend(0, list(v % 5 ORDER BY v % 5)), lambda s, x: s * 3 % 1000 + x) FROM t GROUP BY k",
    ),
    "left-on": (
        "SELECT id, e, n FROM t LEFT JOIN UNNEST(arr) WITH ORDINALITY AS u(e, n) ON e > v % 3 AND n < 4",
        "SELECT id, e, n FROM t LEFT JOIN (SELECT id AS i, unnest(arr) AS e, unnest(generate_series(1, len(arr))) AS n FROM t)"
        " ON i = id AND e > v % 3 AND n < 4",
    ),
    "left-on-changes": (
        "SELECT k, top, e FROM (SELECT k, count(*) AS n, max(v) AS top FROM t GROUP BY k) AS g LEFT JOIN UNNEST(ARRAY[n, top, n]) AS u(e) ON e > 18",
        "SELECT k, top, e FROM (SELECT k, count(*) AS n, max(v) AS top FROM t GROUP BY k) LEFT JOIN (SELECT k AS j, unnest([n, top, n]) AS e"
        " FROM (SELECT k, count(*) AS n, max(v) AS top FROM t GROUP BY k)) ON j IS NOT DISTINCT FROM k AND e > 18",
    ),
    "lateral-left-on": (
        "SELECT a.id, s FROM t AS a LEFT JOIN LATERAL (SELECT id + 1 AS s, v FROM t WHERE id = a.v) AS b ON b.v > a.id % 7",
        "SELECT a.id, b.id + 1 FROM t a LEFT JOIN t b ON b.id = a.v AND b.v > a.id % 7",
    ),
    "lateral-aggregates-on": (
        "SELECT a.id, n, top FROM t AS a LEFT JOIN LATERAL (SELECT count(*) AS n, max(id) AS top FROM t WHERE v = a.v + 10) AS b ON top % 2 = 0"
        " WHERE a.id % 7 = 0",
        "SELECT a.id, n, top FROM t AS a LEFT JOIN (SELECT v, count(*) AS n, max(id) AS top FROM t GROUP BY v) b ON top % 2 = 0 AND b.v = a.v + 10"
        " WHERE a.id % 7 = 0",
    ),
    "lateral-left": (
        "SELECT a.id, s FROM t AS a LEFT JOIN LATERAL (SELECT id + 1 AS s FROM t WHERE id = a.v AND v > 3) AS b ON TRUE",
        None,
    ),
}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    session = Session(
        {"execution.runtime-mode": "streaming", "execution.batch.max-rows": "60", "bounded.backend": "duckdb"}
    )
    session.register("t", TABLE, time_column="ts", delay=5, stream=True)
    yield session
    session.close()


def hashable(value: Any) -> Any:
    """A value with its arrays, maps and rows as tuples, in a way both sides share."""
    if isinstance(value, dict):
        return tuple((key, hashable(part)) for key, part in value.items())
    if isinstance(value, list | tuple):
        return tuple(hashable(part) for part in value)
    return value


class Nested(Folded):
    """A fold of rows with nested values."""

    def take(self, channel: ResultChannel, timeout_s: float) -> bool:
        batch = channel.next(timeout_s)
        if batch is None:
            return False
        weights = [1] * batch.num_rows if batch.weights is None else batch.weights.tolist()
        rows = [
            hashable(row) for row in zip(*(column.to_pylist() for column in batch.rows.columns), strict=True)
        ]
        for row, weight in zip(rows, weights, strict=True):
            self.rows[row] += weight
        for row in rows:
            assert self.rows[row] >= 0, f"{row} was taken back before it was given"
            if self.rows[row] == 0:
                del self.rows[row]
        return True


def submit(
    session: Session, text: str, parallelism: int, state_dir: Path | None
) -> tuple[Job, ResultChannel]:
    session.settings.set("parallelism.default", str(parallelism))
    query = session.parse(text)[0].node
    assert isinstance(query, Query)
    session.state.state_dir = state_dir
    graph = session.pipeline.plan(session.pipeline.bind(query)).graph
    assert graph is not None
    sink = next(
        spec.operator_id for chain in graph.chains for spec in chain.operators if isinstance(spec.node, Sink)
    )
    session.state.channels.release(sink)
    # few batches wait for the test: the job cannot end before it is stopped
    channel = session.state.channels.channel(sink, capacity_batches=8)
    options = replace(
        JobOptions.from_settings(session.settings, name="act", state_dir=state_dir),
        checkpoint_interval_ms=20 if state_dir else 0,
    )
    return session.state.jobs.manager.submit(graph, options, "act" if state_dir else None), channel


def expected(words: str) -> Counter[Any]:
    with duckdb.connect() as connection:
        connection.register("t", TABLE)
        table = connection.sql(words).to_arrow_table()
    return Counter(
        hashable(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    )


@pytest.mark.parametrize("name", QUERIES)
def test_three_acts(session: Session, name: str, tmp_path: Path) -> None:
    query, words = QUERIES[name]
    answer = expected(words or query)
    straight = Nested()
    run_to_end(*submit(session, query, 1, None), straight)
    assert straight.rows == answer

    folded, state = Nested(), tmp_path / "state"
    run_and_stop(*submit(session, query, 2, state), folded, ROWS // 8)
    run_to_end(*submit(session, query, 3, state), folded)
    assert folded.rows == answer
