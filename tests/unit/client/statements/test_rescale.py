"""ALTER JOB .. SET PARALLELISM: a running job goes on at another parallelism from a checkpoint, and
nothing of its answer changes.
"""

from __future__ import annotations

import threading
from collections import Counter

import pytest

import penstock
from penstock.client.connection import Connection
from penstock.engine.job.job import Job
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.source_gate import gated

ROWS = 6_000
SOURCE = f"""
CREATE TABLE s (id BIGINT, k INT) WITH ('connector' = 'datagen', 'number-of-rows' = '{ROWS}', 'rows-per-second' = '1000', 'splits' = '3',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '{ROWS}', 'fields.k.min' = '1', 'fields.k.max' = '50', 'seed' = '3')
"""
QUERY = "SELECT k, COUNT(*) AS n, SUM(id) AS total FROM s GROUP BY k"


def opened(**settings: str) -> Connection:
    made = penstock.connect(settings={"execution.batch.max-rows": "100", **settings})
    made.execute(SOURCE)
    return made


def run_on(job: Job, rows: int) -> None:
    await_that(lambda: job.metrics().rows_in >= rows or job.state.terminal, f"{rows} rows")


def test_a_query_goes_on_at_other_parallelisms() -> None:
    settings = {"execution.checkpointing.interval": "1 h", "table.exec.source.idle-timeout": "0"}
    with gated(ROWS // 4) as gate, opened(**settings) as made:
        cursor = made.execute(QUERY)
        job = cursor.job
        assert job is not None
        given: Counter[tuple[object, ...]] = Counter()

        def read() -> None:
            for batch in cursor.change_batches():
                for change in batch.to_pylist():
                    given[change["k"], change["n"], change["total"]] += (
                        1 if change["op"].startswith("+") else -1
                    )

        reader = threading.Thread(target=read)  # a result nobody reads holds its job up
        reader.start()
        reached: list[int] = []
        for parallelism in (2, 3, 1):
            run_on(job, 300)  # of this deployment
            made.execute(f"ALTER JOB '{job.job_id}' SET PARALLELISM {parallelism}")
            reached.append(job.parallelism)
        gate.open()
        reader.join()
        assert job.metrics().restarts == 0
        assert reached == [2, 3, 1]
    folded = sorted(row for row, count in given.items() for _ in range(count))
    with opened(**{"bounded.backend": "duckdb", "execution.runtime-mode": "batch"}) as made:
        assert folded == sorted(made.execute(QUERY).fetchall())
    assert sum(int(row[1]) for row in folded) == ROWS  # type: ignore[call-overload]


def test_mistakes() -> None:
    with opened() as made:
        job = made.execute(QUERY).job
        assert job is not None
        for statement, code in (
            (f"ALTER JOB '{job.job_id}' SET PARALLELISM 2", "STA-3038"),
            (f"ALTER JOB '{job.job_id}' SET PARALLELISM 129", "SQL-1402"),
            (f"ALTER JOB '{job.job_id}' SET PARALLELISM 0", "SQL-1001"),
            ("ALTER JOB 'nobody' SET PARALLELISM 2", "CLI-6030"),
        ):
            with pytest.raises(penstock.Error) as caught:
                made.execute(statement)
            assert caught.value.code == code
            assert caught.value.hint or code == "SQL-1001"
        job.cancel()
        job.wait(PATIENCE_S)
        with pytest.raises(penstock.Error) as caught:
            made.execute(f"ALTER JOB '{job.job_id}' SET PARALLELISM 2")
        assert caught.value.code == "STA-3040"
