"""Penstock as Spark's data source: commits in batch and as a stream, filters, views, and what is told when
something is gone.
"""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import datasource as spark_filters

import penstock
from penstock.catalog.errors import PenstockError
from penstock.client.connection import Connection
from penstock.client.spark_source.pushed_filters import expression, split
from penstock.client.spark_source.registration import _PACKAGES
from penstock.client.spark_source.source_options import SourceOptions
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.engine.connectors.filesystem.commit_log import COMMITS, CommitLog
from penstock.engine.deploy.spark.code_archive import write_archive
from tests.harness.patience import await_that

FAST = {"bounded.backend": "duckdb", "execution.checkpointing.interval": "100 ms"}
COLUMNS = "id BIGINT, x DOUBLE, name STRING, price DECIMAL(10, 2), day DATE, at TIMESTAMP(3), ok BOOLEAN"


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    try:
        find_java()
    except PenstockError as error:
        pytest.skip(error.message)
    session = SESSIONS.new("UTC")
    penstock.register_spark(session)
    yield session


@pytest.fixture
def conn(tmp_path: Path) -> Iterator[Connection]:
    with penstock.connect(settings={**FAST, "execution.checkpointing.dir": str(tmp_path / "state")}) as made:
        yield made


def table(
    conn: Connection, place: Path, columns: str = "id BIGINT, k BIGINT", more: str = "", **options: str
) -> None:
    given = {"connector": "filesystem", "path": str(place), "format": "parquet", **options}
    said = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    conn.execute(f"CREATE TABLE out ({columns}) {more} WITH ({said})")


def insert(conn: Connection, query: str, name: str = "insert") -> None:
    """Run a job to its end: a commit of its own."""
    conn.execute(f"SET 'pipeline.name' = '{name}'")
    job = conn.execute(f"INSERT INTO out {query}").job
    assert job is not None
    job.wait()
    assert job.error is None


def load(spark: Any, place: Path, **options: str) -> Any:
    return spark.read.format("penstock").options(**options).load(str(place))


def ids(frame: Any) -> list[int]:
    return sorted(frame.toArrow().column("id").to_pylist())


def streamed(spark: Any, place: Path, sink: Path, **options: str) -> list[int]:
    """Stream what is there into files, from where the last time ended; return the rows of each batch."""
    frame = spark.readStream.format("penstock").options(**options).load(str(place))
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(sink) + ".offsets")
        .trigger(availableNow=True)
        .start(str(sink))
    )
    query.awaitTermination(120)
    return [progress["numInputRows"] for progress in query.recentProgress if progress["numInputRows"]]


# -- without Spark


def test_workers_import_little() -> None:
    code = "import sys, penstock.client.spark_source.source; print(*sorted({name.removeprefix('penstock.').split('.')[0] for name in sys.modules}))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"pyarrow", "pyspark", "client"} <= set(loaded)
    assert not {"numba", "duckdb", "sqlglot", "lark", "repl", "optimizer"} & set(loaded)


def test_what_is_shipped_is_enough(tmp_path: Path) -> None:
    archive = write_archive(tmp_path, _PACKAGES)
    code = "import penstock.client.spark_source.source as s; print(s.__file__)"
    environment = {**os.environ, "PYTHONPATH": str(archive)}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert done.returncode == 0 and done.stdout.startswith(str(archive)), done.stderr
    assert archive.stat().st_size < 3_000_000


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, "DAT-4620"),
        ({"path": "s3://bucket/t"}, "DAT-4621"),
        ({"path": "t", "colums": "a"}, "DAT-4621"),
        ({"path": "t", "startingCommit": "x"}, "DAT-4621"),
        ({"path": "t", "maxRowsPerTrigger": "0"}, "DAT-4621"),
        ({"path": "t", "maxRowsPerTrigger": "5"}, "DAT-4621"),
        ({"path": "t", "checkpoint": "5"}, "DAT-4621"),
        ({"path": "t", "view": "v", "startingCommit": "5"}, "DAT-4621"),
    ],
)
def test_options_are_checked(options: dict[str, str], code: str) -> None:
    with pytest.raises(PenstockError) as caught:
        SourceOptions.parse(options, streaming=False)
    assert caught.value.code == code and caught.value.hint


# -- batch


@pytest.mark.spark
def test_batch(spark: Any, conn: Connection, tmp_path: Path) -> None:
    table(conn, tmp_path / "out")
    insert(conn, "VALUES (1, 1), (2, 2)", "one")
    insert(conn, "VALUES (3, 1)", "two")
    (tmp_path / "out" / "stray.parquet").write_bytes(b"nothing of ours")
    assert ids(load(spark, tmp_path / "out")) == [1, 2, 3]
    assert ids(load(spark, tmp_path / "out", endingCommit="1")) == [1, 2]
    assert ids(load(spark, tmp_path / "out", startingCommit="2").where("k = 1")) == [3]
    assert load(spark, tmp_path / "out", columns="k").columns == ["k"]
    assert spark.read.format("penstock").schema("k bigint").load(str(tmp_path / "out")).count() == 3
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW committed USING penstock OPTIONS (path '{tmp_path}/out')")
    assert spark.sql("SELECT SUM(id) FROM committed WHERE k = 1").toArrow().column(0).to_pylist() == [4]


MOMENT = dt.datetime(2026, 1, 1, 0, 0, 3, 3000)
NAN = float("nan")
CLAUSES: dict[str, tuple[Any, ...]] = {
    "id = 3": (spark_filters.EqualTo(("id",), 3),),
    "id > 3 AND id <= 7": (spark_filters.GreaterThan(("id",), 3), spark_filters.LessThanOrEqual(("id",), 7)),
    "id <> 3": (spark_filters.Not(spark_filters.EqualTo(("id",), 3)),),
    "id IN (1, 2, 99)": (spark_filters.In(("id",), (1, 2, 99)),),
    "NOT id IN (1, 2)": (spark_filters.Not(spark_filters.In(("id",), (1, 2))),),
    "id IS NULL": (spark_filters.IsNull(("id",)),),
    "NOT (id <=> 4)": (spark_filters.Not(spark_filters.EqualNullSafe(("id",), 4)),),
    "id <=> 4 AND id IS NOT NULL": (
        spark_filters.EqualNullSafe(("id",), 4),
        spark_filters.IsNotNull(("id",)),
    ),
    "x > 1": (spark_filters.GreaterThan(("x",), 1.0),),
    "x >= double('NaN')": (spark_filters.GreaterThanOrEqual(("x",), NAN),),
    "x > double('NaN')": (spark_filters.GreaterThan(("x",), NAN),),
    "x < double('NaN')": (spark_filters.LessThan(("x",), NAN),),
    "x <= double('NaN')": (spark_filters.LessThanOrEqual(("x",), NAN),),
    "x < 1": (spark_filters.LessThan(("x",), 1.0),),
    "x = double('NaN')": (spark_filters.EqualTo(("x",), NAN),),
    "x <> double('NaN')": (spark_filters.Not(spark_filters.EqualTo(("x",), NAN)),),
    "x = 0.0": (spark_filters.EqualTo(("x",), 0.0),),
    "x >= 1.5": (spark_filters.GreaterThanOrEqual(("x",), 1.5),),
    "NOT (x > 1.0)": (spark_filters.Not(spark_filters.GreaterThan(("x",), 1.0)),),
    "name > 'a'": (spark_filters.GreaterThan(("name",), "a"),),
    "name LIKE 'b%'": (spark_filters.StringStartsWith(("name",), "b"),),
    "name LIKE '%c'": (spark_filters.StringEndsWith(("name",), "c"),),
    "contains(name, 'b%')": (spark_filters.StringContains(("name",), "b%"),),
    "NOT (name LIKE 'b%')": (spark_filters.Not(spark_filters.StringStartsWith(("name",), "b")),),
    "price = 2.50": (spark_filters.EqualTo(("price",), Decimal("2.50")),),
    "day < date'2026-01-03'": (spark_filters.LessThan(("day",), dt.date(2026, 1, 3)),),
    "at >= timestamp_ntz'2026-01-01 00:00:03.003'": (spark_filters.GreaterThanOrEqual(("at",), MOMENT),),
    "ok = false": (spark_filters.EqualTo(("ok",), False),),
}


def values() -> pa.Table:
    count = 12
    return pa.table(
        {
            "id": pa.array([None if n == 5 else n for n in range(count)], pa.int64()),
            "x": pa.array(
                [None, NAN, 0.0, -0.0, 1.5, -1.5, float("inf"), float("-inf"), 1.0, 2.0, None, NAN],
                pa.float64(),
                from_pandas=False,
            ),
            "name": [None, "a", "b", "bc", "ab", "abc", "", "ä", "b%", "B", "bab", "c"],
            "price": pa.array(
                [None if n == 7 else Decimal(50 * n).scaleb(-2) for n in range(count)], pa.decimal128(10, 2)
            ),
            "day": [dt.date(2026, 1, 1 + n) for n in range(count)],
            "at": pa.array(
                [dt.datetime(2026, 1, 1, 0, 0, n, 1000 * n) for n in range(count)], pa.timestamp("us")
            ),
            "ok": [None if n % 3 == 0 else n % 2 == 0 for n in range(count)],
        }
    )


@pytest.mark.spark
def test_filters_pass_what_sparks_would(spark: Any) -> None:
    rows = values()
    spark.createDataFrame(rows).createOrReplaceTempView("plain_rows")
    tests = [
        f"SELECT {n} AS clause, COUNT(*) AS n FROM plain_rows WHERE {clause}"
        for n, clause in enumerate(CLAUSES)
    ]
    expected = dict(map(tuple, spark.sql(" UNION ALL ".join(tests)).collect()))
    found = {}
    for clause, filters in CLAUSES.items():
        taken, left = split(filters, rows.schema)
        assert not left, clause
        found[clause] = rows.filter(expression(taken, rows.schema)).num_rows
    assert found == {clause: expected[n] for n, clause in enumerate(CLAUSES)}


@pytest.mark.parametrize(
    "unsure",
    [
        spark_filters.In(("x",), (1.0, 2.0)),
        spark_filters.In(("id",), (1, None)),
        spark_filters.EqualTo(("id", "part"), 1),
        spark_filters.EqualTo(("id",), "1"),
        spark_filters.EqualTo(("at",), MOMENT.replace(tzinfo=dt.UTC)),
        spark_filters.Not(spark_filters.Not(spark_filters.EqualTo(("id",), 1))),
        spark_filters.GreaterThan(("nobody",), 1),
    ],
)
def test_what_is_not_sure_is_left_to_spark(unsure: Any) -> None:
    assert split([unsure], values().schema) == ([], [unsure])


@pytest.mark.spark
def test_filters_are_pushed_where_asked_for(spark: Any, conn: Connection, tmp_path: Path) -> None:
    conn.register("given", values())
    table(conn, tmp_path / "out", COLUMNS)
    insert(conn, "SELECT * FROM given")
    frame = load(spark, tmp_path / "out")
    assert (frame.where("id > 3").count(), frame.count(), frame.where("id > 3").union(frame).count()) == (
        7,
        12,
        19,
    ), "one relation, used again"
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    pushed = load(spark, tmp_path / "out", pushFilters="true").where("id > 3 AND name LIKE 'b%' AND x > 0")
    assert ids(pushed) == [8]
    explained = explain(pushed)
    for said in ("GreaterThan(id,3)", "StringStartsWith(name,b)", "GreaterThan(x,0.0)"):
        assert said in explained, explained


def explain(frame: Any) -> str:
    return frame.sparkSession._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "formatted")


@pytest.mark.spark
def test_partitioned_tables_and_changes(spark: Any, conn: Connection, tmp_path: Path) -> None:
    table(conn, tmp_path / "out", "id BIGINT, k INT, word STRING", "PARTITIONED BY (k, word)")
    insert(
        conn,
        "SELECT * FROM (VALUES (1, 1, 'a/b'), (2, 2, 'x y'), (3, CAST(NULL AS INT), '=')) AS t (id, k, word)",
    )
    found = load(spark, tmp_path / "out")
    assert [tuple(row) for row in found.orderBy("id").collect()] == [
        (1, 1, "a/b"),
        (2, 2, "x y"),
        (3, None, "="),
    ]
    assert (
        ids(found.where("k = 2")) == [2]
        and ids(found.where("k IS NULL")) == [3]
        and ids(found.where("word = 'a/b'").select("id")) == [1]
    )
    conn.execute("DROP TABLE out")
    table(
        conn,
        tmp_path / "changes",
        columns="k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED",
        **{"changelog.mode": "retract", "format": "arrow"},
    )
    conn.register("given", pa.table({"k": [1, 1, 2]}))
    insert(conn, "SELECT k, COUNT(*) FROM given GROUP BY k", "changes")
    frame = load(spark, tmp_path / "changes")
    assert frame.columns == ["op", "k", "n"]
    folded = (
        frame.selectExpr("k", "n", "CASE WHEN op IN ('+I', '+U') THEN 1 ELSE -1 END AS w")
        .groupBy("k", "n")
        .sum("w")
    )
    assert sorted(tuple(row)[:2] for row in folded.collect() if row[2]) == [(1, 2), (2, 1)]


# -- streams


@pytest.mark.spark
def test_a_stream_goes_on_exactly(spark: Any, conn: Connection, tmp_path: Path) -> None:
    out, sink = tmp_path / "out", tmp_path / "sink"
    table(conn, out)
    for number in range(4):
        insert(
            conn, f"VALUES ({3 * number}, 0), ({3 * number + 1}, 0), ({3 * number + 2}, 0)", f"job{number}"
        )
    assert streamed(spark, out, sink, maxRowsPerTrigger="6") == [6, 6]
    insert(conn, "VALUES (12, 0)", "more")
    # published by a checkpoint whose other subtasks have not: no entry names it
    staged = out / "part-of-nothing.parquet"
    staged.write_bytes(next(out.glob("part-*.parquet")).read_bytes())
    assert streamed(spark, out, sink, maxRowsPerTrigger="1") == [1]
    assert streamed(spark, out, sink) == []
    assert sorted(spark.read.parquet(str(sink)).toArrow().column("id").to_pylist()) == list(range(13))
    assert streamed(spark, out, tmp_path / "late", startingCommit="4") == [4]


@pytest.mark.spark
def test_what_was_cleaned_away_is_told(spark: Any, conn: Connection, tmp_path: Path) -> None:
    out = tmp_path / "out"
    table(conn, out)
    for number in range(3):
        insert(conn, f"VALUES ({number}, 0)", f"job{number}")
    log = CommitLog(out)
    (file,) = log.read(1).files
    (out / file.path).unlink()
    assert "DAT-4613" in told(lambda: load(spark, out).count())
    (out / COMMITS / f"{1:012d}.commit").unlink()
    assert "DAT-4610" in told(lambda: streamed(spark, out, tmp_path / "sink", startingCommit="1"))
    assert ids(load(spark, out, startingCommit="2")) == [1, 2]
    assert "DAT-4622" in told(lambda: load(spark, tmp_path / "nothing").count())
    assert "DAT-4625" in told(lambda: load(spark, out, columns="idd").count())
    conn.execute("DROP TABLE out")
    table(conn, tmp_path / "text", format="csv")
    insert(conn, "VALUES (1, 1)", "text")
    assert "DAT-4623" in told(lambda: load(spark, tmp_path / "text").count())


def told(call: Any) -> str:
    with pytest.raises(Exception) as caught:
        call()
    return str(caught.value)


# -- views


@pytest.mark.spark
def test_a_view_as_a_checkpoint_holds_it(spark: Any, conn: Connection, tmp_path: Path) -> None:
    endless = "'connector' = 'datagen', 'rows-per-second' = '400', 'fields.id.kind' = 'sequence'"
    conn.execute(f"CREATE TABLE s (id BIGINT) WITH ({endless})")
    conn.execute(
        "CREATE MATERIALIZED VIEW by_k AS SELECT id % 4 AS k, COUNT(*) AS n, SUM(id) AS total FROM s GROUP BY id % 4"
    )
    conn.execute("SELECT COUNT(*) FROM by_k").fetchall()
    state = tmp_path / "state"
    directory = state / "materialized-view-by_k"
    until(lambda: (directory / "CURRENT").exists())
    for _ in range(2):
        frame = load(spark, state, view="by_k")
        rows = {row["k"]: (row["n"], row["total"]) for row in frame.collect()}
        count = sum(n for n, _ in rows.values())
        assert sum(total for _, total in rows.values()) == count * (count - 1) // 2, "one prefix of the input"
    assert [row["k"] for row in frame.where("k >= 2").select("k").orderBy("k").collect()] == [2, 3]
    assert "STA-3031" in told(lambda: load(spark, state, view="by_k", checkpoint="100000").count())
    assert "DAT-4627" in told(lambda: load(spark, state, view="by_n").count())
    stream = spark.readStream.format("penstock").option("view", "by_k").load(str(state))
    assert "DAT-4624" in told(lambda: stream.writeStream.format("noop").start().awaitTermination(60))


def until(reached: Any) -> None:
    await_that(reached)
