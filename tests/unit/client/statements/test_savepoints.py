"""Savepoints: a stopped job goes on from one elsewhere, at another parallelism, exactly; a drained job
gives what it held and is done.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import penstock
from penstock.client.connection import Connection
from penstock.repl.cli import main
from tests.harness.patience import await_that
from tests.harness.source_gate import gated

ROWS = 60_000
SOURCE = f"""
CREATE TABLE s (id BIGINT, k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'datagen',
  'number-of-rows' = '{ROWS}', 'rows-per-second' = '%d', 'splits' = '3', 'seed' = '5', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1',
  'fields.id.end' = '{ROWS}', 'fields.k.min' = '1', 'fields.k.max' = '9', 'fields.ts.kind' = 'sequence', 'fields.ts.start' = '2020-01-01 00:00:00',
  'fields.ts.step' = '100 ms');
"""
SINK = """
CREATE TABLE t (k INT, n BIGINT, ids BIGINT, window_end TIMESTAMP(3)) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '%s');
"""
INSERT = """
INSERT INTO t SELECT k, COUNT(*), SUM(id), window_end
FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL '10' MINUTE)) GROUP BY k, window_start, window_end
"""


def opened(state: Path | str, out: Path, rate: int, **settings: str) -> Connection:
    made = penstock.connect(
        settings={
            "execution.checkpointing.dir": str(state),
            "execution.checkpointing.interval": "20 ms",
            "execution.batch.max-rows": "500",
            "table.dml-sync": "false",
            **settings,
        }
    )
    made.executescript(SOURCE % rate + SINK % out)
    return made


def stopped_in_mid_run(made: Connection, statement: str) -> list[tuple[object, ...]]:
    """Start the INSERT, stop it by a statement once rows have gone through, and return what the statement
    gives.
    """
    with gated(ROWS * 3 // 4):
        job = made.execute(INSERT).job
        assert job is not None
        await_that(lambda: job.metrics().rows_in >= ROWS // 6 or job.state.terminal, "a sixth of the rows")
        return made.execute(statement.replace("JOB", f"JOB '{job.job_id}'")).fetchall()


def totals(out: Path) -> tuple[int, int, int]:
    """Return windows, rows and the sum of ids published."""
    rows = ds.dataset(out, format="parquet").to_table()
    return rows.num_rows, pc.sum(rows["n"]).as_py() or 0, pc.sum(rows["ids"]).as_py() or 0


def test_a_stopped_job_goes_on_elsewhere(tmp_path: Path) -> None:
    state, out, kept = tmp_path / "state", tmp_path / "out", tmp_path / "kept"
    with opened(state, out, 12_000) as made:
        [(path,)] = stopped_in_mid_run(made, f"STOP JOB WITH SAVEPOINT '{kept}'")
    moved = tmp_path / "moved"
    shutil.move(str(path), moved)
    shutil.rmtree(state)
    before = {file.name: file.read_bytes() for file in moved.iterdir()}
    settings = {
        "execution.state-recovery.path": str(moved),
        "parallelism.default": "2",
        "table.dml-sync": "true",
    }
    with opened(tmp_path / "new state", out, 0, **settings) as made:
        job = made.execute(INSERT).job
        assert job is not None
        assert job.metrics().rows_in < ROWS, "it was to go on, not to begin again"
    windows = ROWS // 6000 * 9
    assert totals(out) == (windows, ROWS, ROWS * (ROWS + 1) // 2)
    assert {file.name: file.read_bytes() for file in moved.iterdir()} == before, "a savepoint is its owner's"


def test_its_own_checkpoints_win(tmp_path: Path) -> None:
    state, out = tmp_path / "state", tmp_path / "out"
    with opened(state, out, 12_000, **{"execution.checkpointing.savepoint-dir": str(tmp_path)}) as made:
        [(path,)] = stopped_in_mid_run(made, "STOP JOB WITH SAVEPOINT")
    for _ in range(2):  # the second run only says that it has finished
        with opened(
            state, out, 0, **{"execution.state-recovery.path": str(path), "table.dml-sync": "true"}
        ) as made:
            made.execute(INSERT)
    assert totals(out)[1:] == (ROWS, ROWS * (ROWS + 1) // 2)


def test_a_drained_job_gives_what_it_holds(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with opened(tmp_path / "state", out, 12_000) as made:
        [(path,)] = stopped_in_mid_run(made, f"STOP JOB WITH SAVEPOINT '{tmp_path}' WITH DRAIN")
    _, rows, ids = totals(out)
    assert ROWS // 6 <= rows < ROWS
    assert ids > 0
    assert main(["checkpoint", "verify", str(path)]) == 0


def told(made: Connection, statement: str) -> str:
    with pytest.raises(penstock.Error) as caught:
        made.execute(statement)
    return caught.value.code


def test_mistakes(tmp_path: Path) -> None:
    with penstock.connect(settings={"table.dml-sync": "false"}) as made:
        made.executescript(
            SOURCE % 1000
            + "CREATE TABLE t (k INT, n BIGINT, ids BIGINT, window_end TIMESTAMP(3)) WITH ('connector' = 'blackhole')"
        )
        job = made.execute(INSERT).job
        assert job is not None
        assert told(made, f"STOP JOB '{job.job_id}' WITH SAVEPOINT") == "STA-3037"
        assert told(made, f"STOP JOB '{job.job_id}' WITH SAVEPOINT '{tmp_path}'") == "STA-3036"
        assert told(made, f"STOP JOB '{job.job_id}' WITH SAVEPONT") == "SQL-1001"
        made.execute(f"CANCEL JOB '{job.job_id}'")
        made.execute("SET 'execution.state-recovery.path' = '/nowhere'")
        assert told(made, INSERT) == "STA-3035"


def test_another_query_is_refused(tmp_path: Path) -> None:
    with opened(tmp_path / "state", tmp_path / "out", 12_000) as made:
        [(path,)] = stopped_in_mid_run(made, f"STOP JOB WITH SAVEPOINT '{tmp_path}'")
    with opened(
        tmp_path / "other", tmp_path / "out", 0, **{"execution.state-recovery.path": str(path)}
    ) as made:
        assert told(made, INSERT.replace("GROUP BY k,", "WHERE k > 3 GROUP BY k,")) == "STA-3007"
