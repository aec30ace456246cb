"""ASOF joins by texts and wide decimals, without keys and with expressions: the rows of DuckDB, from the
first to the last act at other parallelisms; state of versions that stored the pairs goes on.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from penstock.client.session import Session
from penstock.engine.job.job import Job
from penstock.planner.logical.joins.nearest_join import NearestJoin
from tests.harness.patience import PATIENCE_S, await_that
from tests.streaming.three_acts.acts import Folded, Script, rows_read, run_and_stop, run_to_end

ROWS = 1_200
QUOTES = ROWS // 4
# Three quotes have one key and value, of which the last one counts. Texts sort by their bytes.
TEXT = "CONCAT(CASE {v} % 3 WHEN 0 THEN 'at ' WHEN 1 THEN 'é ' ELSE '😀 ' END, LPAD(CAST({v} AS VARCHAR), 6, '0'))"
WIDE = "CAST({v} AS DECIMAL(30, 2)) * 1000000000000000000"
COLUMNS = {
    "trades": ("n", ROWS, "n * 7 % 5", f"(n * 613 % {ROWS})"),
    "quotes": ("m", QUOTES, "m % 5", "(m % 200 * 9)"),
}
TABLES = "".join(
    f"CREATE TABLE {name} ({n} BIGINT, k AS {key}, t AS {TEXT.format(v=value)}, w AS {WIDE.format(v=value)}) WITH ("
    f"'connector' = 'datagen', 'number-of-rows' = '{rows}', 'splits' = '2', 'fields.{n}.kind' = 'sequence');\n"
    for name, (n, rows, key, value) in COLUMNS.items()
)
LAST = "(SELECT k, t, w, MAX(m) AS m FROM quotes GROUP BY k, t, w)"
QUERIES = {
    "texts": f"SELECT a.n, b.m FROM trades AS a ASOF LEFT JOIN {LAST} AS b ON a.k = b.k AND a.t >= b.t",
    "wide decimals": f"SELECT a.n, b.m FROM trades AS a ASOF JOIN {LAST} AS b ON a.k = b.k AND a.w < b.w",
    "no keys": "SELECT a.n, b.m FROM trades AS a ASOF JOIN (SELECT t, MAX(m) AS m FROM quotes GROUP BY t) AS b ON a.t > b.t",
    "an expression": "SELECT a.n, b.m FROM trades AS a ASOF JOIN quotes AS b ON CAST(a.k AS INT) = b.k AND a.n - 5 >= b.m * 3",
}
ACTS = (1, 3, 2)


def expected(query: str) -> Counter[tuple[Any, ...]]:
    """The same words in DuckDB, over the same rows."""
    connection = duckdb.connect()
    for name, (n, rows, key, value) in COLUMNS.items():
        connection.execute(
            f"CREATE TABLE {name} AS SELECT {n}, {key} AS k, {TEXT.format(v=value)} AS t, "
            f"{WIDE.format(v=value)} AS w FROM range({rows}) AS r({n})"
        )
    return Counter(connection.sql(QUERIES[query]).fetchall())


@pytest.mark.parametrize("query", QUERIES)
def test_three_acts(query: str, tmp_path: Path) -> None:
    folded = Folded()
    script = Script("", {"execution.batch.max-rows": "60"}, TABLES + QUERIES[query] + ";")
    try:
        graph, _ = script.graph(1)
        assert any(isinstance(spec.node, NearestJoin) for chain in graph.chains for spec in chain.operators)
        for parallelism in ACTS[:-1]:
            job, channel = script.submit(parallelism, tmp_path, 50)
            run_and_stop(job, channel, folded, ROWS // 5)
        job, channel = script.submit(ACTS[-1], tmp_path, 50)
        run_to_end(job, channel, folded)
        assert rows_read(job) < ROWS, "the last act was to go on, not to begin again"
    finally:
        script.close()
    assert folded.rows == expected(query)


@contextmanager
def opened(root: Path, **settings: str) -> Iterator[Session]:
    always = {
        "execution.batch.max-rows": "50",
        "execution.checkpointing.interval": "20 ms",
        "table.dml-sync": "false",
        "pipeline.name": "joined",
    }
    session = Session({**always, **settings})
    session.state.state_dir = root / "state"
    kept = (
        f"CREATE TABLE kept (n BIGINT, m BIGINT) WITH ('connector' = 'filesystem', 'path' = '{root / 'out'}', "
        "'format' = 'debezium-json');"
    )
    paced = TABLES.replace("'splits' = '2'", "'splits' = '2', 'rows-per-second' = '1000'")
    try:
        for statement in session.parse(paced + kept):
            session.run(statement)
        yield session
    finally:
        session.close()


def started(session: Session) -> Job:
    job = session.execute(f"INSERT INTO kept {QUERIES['texts']}").job
    assert job is not None
    return job


def test_state_that_has_the_pairs_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path, **{"optimizer.disabled-rules": "nearest_values"}) as session:
        job = started(session)
        await_that(lambda: job.metrics().rows_in > ROWS // 4 or job.state.terminal, "rows")
        session.execute(f"STOP JOB '{job.job_id}'")
        assert job.former_plan is None
    with opened(tmp_path) as session:
        job = started(session)
        assert job.wait(PATIENCE_S) and job.error is None
        assert job.former_plan == 0, "as the version before planned it"
        assert job.metrics().rows_in < ROWS + ROWS // 4
    found: Counter[tuple[Any, ...]] = Counter()
    for path in sorted((tmp_path / "out").iterdir()):
        for line in [] if path.name.startswith((".", "_")) else path.read_text().splitlines():
            change = json.loads(line)
            found.update([tuple(change["after"].values())] if change.get("after") else [])
            found.subtract([tuple(change["before"].values())] if change.get("before") else [])
    assert +found == expected("texts") and not -found
