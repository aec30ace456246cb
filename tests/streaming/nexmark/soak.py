"""``python -m tests.streaming.nexmark.soak [--events N] [--queries q0,q3] [--spark]``: a million events, our answers
against DuckDB's (and Spark's).

The stream is read from the generator in four splits, out of order, at parallelism 1 and 2; the others answer
over the same events as tables.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow as pa

from penstock.client.session import Session
from tests.streaming.nexmark.site import QUERIES, asked_of, database, duckdb_text, script
from tests.streaming.nexmark.spark_answers import SparkAnswers

RATE = 10_000
_DIFFERENCE = "(SELECT count(*) FROM (SELECT {columns} FROM {a} EXCEPT ALL SELECT {columns} FROM {b}))"


def streamed(query: str, events: int, parallelism: int) -> tuple[pa.Table, float]:
    """Return the folded answer of our stream, and the seconds it took to the last row."""
    session = Session(
        {
            "bounded.backend": "duckdb",
            "execution.runtime-mode": "streaming",
            "parallelism.default": str(parallelism),
        }
    )
    try:
        statements = session.parse(script(query, events, RATE), f"{query}.sql")
        for statement in statements[:-1]:
            session.run(statement)
        started = time.perf_counter()
        rows = session.pipeline.run(asked_of(statements[-1].node)).final_rows(600)
        return pa.Table.from_batches([rows]) if isinstance(
            rows, pa.RecordBatch
        ) else rows, time.perf_counter() - started
    finally:
        session.close()


def differences(connection: duckdb.DuckDBPyConnection, a: str, b: str) -> int:
    """Return how many rows two tables do not share; floating values are compared to eleven digits."""
    kinds = connection.execute(f"DESCRIBE {a}").fetchall()
    parts = (
        f"printf('%.10e', {_column(at)})" if kind[1] in ("DOUBLE", "FLOAT") else _column(at)
        for at, kind in enumerate(kinds)
    )
    columns = ", ".join(parts)
    counts = connection.execute(
        f"SELECT {_DIFFERENCE.format(columns=columns, a=a, b=b)} + {_DIFFERENCE.format(columns=columns, a=b, b=a)}"
    )
    return int(counts.fetchall()[0][0])


def _column(at: int) -> str:
    return f"c{at}"


def keep(connection: duckdb.DuckDBPyConnection, name: str, rows: pa.Table) -> None:
    """Store rows as a table whose columns are named by position."""
    named = rows.rename_columns([_column(at) for at in range(rows.num_columns)])
    connection.register("rows", named)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM rows")
    connection.unregister("rows")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--spark", action="store_true", help="ask Spark as well")
    arguments = parser.parse_args()
    connection = database(arguments.events, RATE)
    spark = SparkAnswers(connection, Path(tempfile.mkdtemp(prefix="nexmark-"))) if arguments.spark else None
    bad = 0
    for query in arguments.queries.split(","):
        keep(connection, "theirs", connection.sql(duckdb_text(query)).to_arrow_table())
        line = f"{query:5}"
        for parallelism in (1, 2):
            rows, seconds = streamed(query, arguments.events, parallelism)
            keep(connection, "ours", rows)
            wrong = differences(connection, "ours", "theirs")
            bad += wrong > 0
            line += f"  p={parallelism}: {rows.num_rows:>9,} rows {seconds:6.1f} s {'equal' if not wrong else f'{wrong:,} DIFFERENCES'}"
        if spark is not None:
            keep(connection, "sparks", spark.answer(query))
            wrong = differences(connection, "sparks", "theirs")
            bad += wrong > 0
            line += f"  Spark: {'equal' if not wrong else f'{wrong:,} DIFFERENCES'}"
        print(line, flush=True)
    print("all equal" if not bad else f"{bad} answers differ")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
