"""A source goes on from where it is after a column was added to the end of its table: files of before have
it not, files of after have it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from tests.harness.patience import PATIENCE_S, await_that
from tests.harness.source_gate import gated
from tests.streaming.migration.jobs import FLAG, changes_of

COLUMNS = "id BIGINT, ts TIMESTAMP(3)"
LONGER = COLUMNS + ", note STRING"
TABLE = (
    "CREATE TABLE t ({columns}, WATERMARK FOR ts AS ts) WITH ('connector' = 'filesystem', 'path' = '{path}', 'format' = '{format}', "
    "{how}, 'source.rows-per-second' = '{rate}'{more})"
)
OUT = "CREATE TABLE o (id BIGINT, note STRING) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '{path}')"
REPLAYED, WATCHED = "'source.replay' = 'true'", "'source.monitor-interval' = '20 ms'"
MISSING = ", 'source.missing-columns' = 'null'"
FORMATS = {"csv": "csv", "headless": "csv", "json": "json", "parquet": "parquet"}


def write(path: Path, kind: str, ids: Iterable[int], noted: bool) -> None:
    rows = [
        {"id": i, "ts": f"2024-01-01 00:00:{i // 10:02d}.{i % 10}00"}
        | ({"note": f"note {i}"} if noted else {})
        for i in ids
    ]
    if kind == "parquet":
        table = pa.Table.from_pylist(rows)
        pq.write_table(
            table.set_column(1, "ts", table["ts"].cast(pa.timestamp("us"))), path, row_group_size=20
        )
    elif kind == "json":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        names = [",".join(rows[0])] if kind == "csv" else []
        path.write_text(
            "\n".join([*names, *(",".join(map(str, row.values())) for row in rows), ""]), encoding="utf-8"
        )


def opened(
    root: Path, kind: str, columns: str, rate: int, more: str = "", how: str = REPLAYED
) -> penstock.Connection:
    made = penstock.connect(
        settings={
            "execution.checkpointing.dir": str(root / "state"),
            "execution.checkpointing.interval": "10 ms",
            "execution.batch.max-rows": "10",
            "pipeline.name": "job",
            "table.dml-sync": "false",
        }
    )
    more += ", 'csv.header' = 'false'" if kind == "headless" else ""
    made.execute(
        TABLE.format(columns=columns, path=root / "in", format=FORMATS[kind], rate=rate, more=more, how=how)
    )
    made.execute(OUT.format(path=root / "out"))
    made.execute(f"SET '{FLAG}' = 'true'")
    return made


def given(root: Path) -> list[tuple[int, str | None]]:
    lines = [
        line
        for path in sorted((root / "out").glob("*.json*"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return sorted((row["id"], row["note"]) for row in map(json.loads, lines))


@pytest.mark.parametrize("kind", FORMATS)
def test_a_source_goes_on_in_the_middle_of_a_file_without_the_column(kind: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    suffix = "csv" if kind == "headless" else kind
    write(tmp_path / "in" / f"1.{suffix}", kind, range(100), noted=False)
    with gated(50), opened(tmp_path, kind, COLUMNS, 60, how=WATCHED) as made:
        job = made.execute("INSERT INTO o SELECT id, CAST(NULL AS STRING) FROM t").job
        assert job is not None
        await_that(lambda: job.metrics().rows_in >= 10 or job.state.terminal, "ten rows")
        made.execute(f"STOP JOB '{job.job_id}'")
        assert job.wait(PATIENCE_S) and job.error is None and job.metrics().rows_in < 100
    write(tmp_path / "in" / f"2.{suffix}", kind, range(100, 150), noted=True)
    expected = [*((i, None) for i in range(100)), *((i, f"note {i}") for i in range(100, 150))]
    with opened(tmp_path, kind, LONGER, 0, MISSING, WATCHED) as made:
        job = made.execute("INSERT INTO o SELECT id, note FROM t").job
        assert job is not None
        await_that(lambda: len(given(tmp_path)) >= len(expected) or job.state.terminal, "all rows")
        made.execute(f"STOP JOB '{job.job_id}'")
        assert job.wait(PATIENCE_S) and job.error is None, job.error
        changes = changes_of(job)
    assert {change.split(":")[0] for change in changes} == {"kept"} and any(
        "source t" in c and "resumes from its position" in c for c in changes
    )
    assert given(tmp_path) == expected


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_without_the_option_such_a_file_is_refused(kind: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / f"1.{kind}", kind, range(10), noted=False)
    with opened(tmp_path, kind, LONGER, 0) as made, pytest.raises(penstock.Error, match="DAT-4203"):
        made.execute("SELECT note FROM t").fetchall()


@pytest.mark.parametrize("kind", FORMATS)
def test_nothing_but_columns_that_are_missing(kind: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / ("1.csv" if kind == "headless" else f"1.{kind}"), kind, range(10), noted=False)
    with opened(tmp_path, kind, LONGER, 0, MISSING) as made:
        assert made.execute("SELECT note FROM t WHERE note IS NULL").fetchall() == [(None,)] * 10
        assert made.execute("SELECT COUNT(*), COUNT(note), MAX(id) FROM t").fetchall()[-1] == (10, 0, 9)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_that_may_not_be_null_may_not_be_missing(kind: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / f"1.{kind}", kind, range(10), noted=False)
    with (
        opened(tmp_path, kind, LONGER + " NOT NULL", 0, MISSING) as made,
        pytest.raises(penstock.Error, match="DAT-4203"),
    ):
        made.execute("SELECT note FROM t").fetchall()


@pytest.mark.parametrize("kind", FORMATS)
def test_a_bounded_table_has_them_too(kind: str, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path / "in" / f"1.{FORMATS[kind]}", kind, range(3), noted=False)
    write(tmp_path / "in" / f"2.{FORMATS[kind]}", kind, range(3, 5), noted=True)
    with opened(tmp_path, kind, LONGER, 0, MISSING, "'source.replay' = 'false'") as made:
        rows = made.execute("SELECT id, note FROM t ORDER BY id").fetchall()
        assert rows == [(0, None), (1, None), (2, None), (3, "note 3"), (4, "note 4")]
        assert made.execute("SELECT COUNT(*), COUNT(note) FROM t").fetchall() == [(5, 2)]
