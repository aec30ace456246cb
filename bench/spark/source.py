"""``python -m bench.spark.source``: rates at which Spark reads what a job has committed, beside Spark's
own reading of the same files.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock
from penstock.engine.bounded.spark.sessions import SESSIONS

COLUMNS = "k BIGINT, a BIGINT, b DOUBLE, c STRING, d STRING"
ROWS_PER_COMMIT = 1_000_000


def written(directory: Path, rows: int) -> None:
    """Have jobs write a table, a commit of a million rows each."""
    with penstock.connect(settings={"bounded.backend": "duckdb"}) as conn:
        conn.execute(
            f"CREATE TABLE s ({COLUMNS}) WITH ('connector' = 'datagen', 'number-of-rows' = '{min(rows, ROWS_PER_COMMIT)}', 'rows-per-second' = '0', "
            "'fields.k.kind' = 'sequence', 'fields.c.length' = '8', 'fields.d.length' = '8')"
        )
        conn.execute(
            f"CREATE TABLE t ({COLUMNS}) WITH ('connector' = 'filesystem', 'path' = '{directory}', 'format' = 'parquet')"
        )
        for number in range(max(1, rows // ROWS_PER_COMMIT)):
            conn.execute(f"SET 'pipeline.name' = 'write-{number}'")
            job = conn.execute("INSERT INTO t SELECT * FROM s").job
            assert job is not None
            job.wait()
            assert job.error is None, job.error


def timed(what: str, rows: int, act: Callable[[], Any], runs: int) -> None:
    """Print the best rate of some runs."""
    best_s = float("inf")
    for _ in range(runs):
        began = time.perf_counter()
        act()
        best_s = min(best_s, time.perf_counter() - began)
    print(f"{what:<44} {rows / best_s / 1e6:8.2f} M rows/s {best_s:8.2f} s", flush=True)


def report(rows: int, runs: int) -> None:
    """Write a table, read it every way, and print the rates."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "t"
        written(table, rows)
        spark = SESSIONS.new("UTC", {"spark.sql.python.filterPushdown.enabled": "true"})
        penstock.register_spark(spark)

        def committed(**options: str) -> Any:
            return spark.read.format("penstock").options(**options).load(str(table))

        def to_noop(frame: Any) -> Callable[[], Any]:
            return lambda: frame.write.format("noop").mode("overwrite").save()

        def streamed() -> None:
            with tempfile.TemporaryDirectory() as offsets:
                frame = spark.readStream.format("penstock").load(str(table))
                query = (
                    frame.writeStream.format("noop")
                    .option("checkpointLocation", offsets)
                    .trigger(availableNow=True)
                    .start()
                )
                query.awaitTermination()

        timed("spark.read.parquet, all columns", rows, to_noop(spark.read.parquet(str(table))), runs)
        timed("penstock, all columns", rows, to_noop(committed()), runs)
        timed("penstock, two numeric columns", rows, to_noop(committed(columns="k, b")), runs)
        timed(
            "penstock, GROUP BY k % 1000",
            rows,
            lambda: committed(columns="k").selectExpr("k % 1000 AS g").groupBy("g").count().collect(),
            runs,
        )
        timed(
            "penstock, pushed k < 1000 (rows in the files)",
            rows,
            lambda: committed(pushFilters="true").where("k < 1000").count(),
            runs,
        )
        timed("penstock, a stream with availableNow", rows, streamed, runs)


def main() -> None:
    """Parse arguments and print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.spark.source", description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="rows of the table (4 million)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each figure, the best counts (3)")
    arguments = parser.parse_args()
    report(arguments.rows, arguments.runs)


if __name__ == "__main__":
    main()
