"""A program that has started Spark itself, as a notebook has: what it saw when penstock used the same one,
as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

import penstock
from tests.fault_injection import hosted_job as hosted

MASTER = "local[3]"
NAME = "a program's own"


def main(out: Path, rows: int) -> None:
    """Run a job hosted by the program's Spark, then read a view only that Spark has."""
    spark = SparkSession.builder.master(MASTER).appName(NAME).getOrCreate()
    spark.createDataFrame([(1, "one"), (2, "two")], "k BIGINT, name STRING").createOrReplaceGlobalTempView(
        "names"
    )
    settings = {key: value for key, value in hosted.SETTINGS.items() if not key.startswith("spark.")}
    with penstock.connect(settings=settings) as connection:
        sink, query = hosted.count_sql(out)
        for statement in (hosted.numbers_sql(rows, rows // 3), sink):
            connection.execute(statement)
        job = connection.execute(query).job
        assert job is not None
        hosted.until(lambda: job.metrics().checkpoints_completed, job)
        hosts = bool(spark.sparkContext.statusTracker().getActiveJobsIds())
        assert job.wait(60) and job.error is None, job.error
        connection.execute("SET 'bounded.backend' = 'spark'")
        connection.execute(
            "CREATE TABLE names (k BIGINT, name STRING) WITH ('connector' = 'spark', 'table-name' = 'global_temp.names')"
        )
        names = connection.execute("SELECT k, name FROM names ORDER BY k").fetchall()
    saw = {
        "hosts": hosts,
        "names": names,
        "application": spark.sparkContext.appName,
        "left": spark.range(5).count(),
    }
    print(json.dumps(saw))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
