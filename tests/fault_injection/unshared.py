"""The card of a cluster that shares no files with the driver: its worker sees neither the tables' directory
nor the driver's temporary one. What Spark does not read itself still gives DuckDB's answer.

The worker runs in a mount namespace of its own (``unshare``, Linux), with empty file systems over both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.client.session import Session
from tests.fault_injection.hosted_cluster import Cluster
from tests.fault_injection.job_process import ROOT
from tests.fault_injection.verdict import Verdict

QUERIES = (
    "SELECT k, COUNT(*) AS n, SUM(v) AS s, SUM(r.x) AS x, MAX(r.y[1]) AS y, MAX(t) AS t FROM j GROUP BY k",
    "SELECT j.k, COUNT(*) AS n, COUNT(m.z) AS z FROM j JOIN m ON j.k = m.k GROUP BY j.k",
    "SELECT day, COUNT(*) AS n, MAX(b) AS b FROM p GROUP BY day",
    "SELECT v, t FROM j WHERE v < 100000",
)
"""Over nested JSON, files of a wider type without a column, and text that is declared as bytes."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """``--rows`` of the JSON table: above 32 MB they travel in segments, below with the plan."""
    parser.add_argument("--rows", type=int, default=400_000)


def run(arguments: argparse.Namespace, verdict: Verdict) -> None:
    """Ask each query of DuckDB here and of Spark there. The client is a process of its own, for its temporary
    directory is another.
    """
    verdict.least = {"equal answers": len(QUERIES)}
    tables, temporary = arguments.directory / "tables", arguments.directory / "temporary"
    temporary.mkdir()
    _write(tables, arguments.rows)
    expected = _asked(tables, temporary, "duckdb")
    with Cluster(arguments.directory / "cluster", workers=1, hidden=(tables, temporary)) as cluster:
        found = _asked(tables, temporary, cluster.master)
    *answers_there, csv = found
    for query, want, rows in zip(QUERIES, expected, answers_there, strict=True):
        verdict.coverage["equal answers"] += verdict.check(want == rows, f"not the rows of DuckDB: {query}")
        verdict.coverage["rows"] += len(want)
    # the control: a table that Spark reads itself must be on disks its executors share
    verdict.check("error" in csv, "the worker saw the tables after all")


def _write(tables: Path, rows: int) -> None:
    for name in ("j", "m", "p/day=2024-01-01", "csv"):
        (tables / name).mkdir(parents=True)
    with (tables / "j" / "0.json").open("w", encoding="utf-8") as file:
        for i in range(rows):
            row = {"k": i % 7, "v": i, "r": {"x": i % 5, "y": [i, i + 1]}, "t": f"{'w' * 80}{i}"}
            file.write(json.dumps(row) + "\n")
    pq.write_table(pa.table({"k": list(range(5))}), tables / "m" / "0.parquet")  # wider than declared
    values = [f"é{i}" for i in range(1_000)]
    pq.write_table(pa.table({"b": values}), tables / "p" / "day=2024-01-01" / "0.parquet")
    (tables / "csv" / "0.csv").write_text("1\n2\n", encoding="utf-8")


def _asked(tables: Path, temporary: Path, where: str) -> list[Any]:
    command = [sys.executable, "-m", "tests.fault_injection.unshared", str(tables), where]
    environment = {**os.environ, "TMPDIR": str(temporary)}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def answers(tables: Path, where: str) -> list[Any]:
    """Return the sorted rows of each query; on a cluster also what a table says that Spark reads itself."""
    backend = {"bounded.backend": "duckdb"}
    if where != "duckdb":
        backend = {"bounded.backend": "spark", "spark.master": where}
    session = Session({"execution.runtime-mode": "batch", **backend})
    try:
        for name, columns, options in (
            ("j", "k INT, v BIGINT, r ROW<x INT, y ARRAY<BIGINT>>, t STRING", "'format' = 'json'"),
            ("m", "k INT, z STRING", "'format' = 'parquet', 'source.missing-columns' = 'null'"),
            ("p", "b BYTES, day STRING) PARTITIONED BY (day", "'format' = 'parquet'"),
            ("csv", "n INT", "'format' = 'csv'"),
        ):
            session.execute(
                f"CREATE TABLE {name} ({columns}) WITH ('connector' = 'filesystem', 'path' = '{tables}/{name}', {options})"
            )
        found: list[Any] = [
            sorted(session.execute(query).final_rows().to_pylist(), key=str) for query in QUERIES
        ]
        if where != "duckdb":
            try:
                found.append(session.execute("SELECT SUM(n) AS n FROM csv").final_rows().to_pylist())
            except Exception as error:  # noqa: BLE001 - any error says that the worker saw no file
                found.append({"error": str(error)})
        return json.loads(json.dumps(found, default=repr))
    finally:
        session.close()


if __name__ == "__main__":
    json.dump(answers(Path(sys.argv[1]), sys.argv[2]), sys.stdout)
