"""``python -m bench.backfill``: queries over ten million rows of a past, replayed and begun with their
history; equal, and how much sooner.

Times are from the statement to the end of a job that has then written and committed everything; processor
seconds are of this process (not of Spark's). Spark is started, and has compiled its first query, before
anything is timed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.past import COLUMNS, ROWS, past

QUERIES = {
    "counts of 1,000 keys": (
        "k BIGINT, n BIGINT, s BIGINT",
        "SELECT k, COUNT(*), SUM(v) FROM past GROUP BY k",
    ),
    "counts of 1,000 keys by hour": (
        "k BIGINT, until TIMESTAMP(3), n BIGINT, s BIGINT",
        "SELECT k, window_end, COUNT(*), SUM(v) FROM TUMBLE(TABLE past, DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY k, window_start, window_end",
    ),
    "last row of 100,000 keys": (
        "u BIGINT, v BIGINT, ts TIMESTAMP(3)",
        "SELECT u, v, ts FROM (SELECT u, v, ts, ROW_NUMBER() OVER (PARTITION BY u ORDER BY ts DESC) AS r FROM past) WHERE r = 1",
    ),
    "sums of DOUBLE, not split": ("k BIGINT, a DOUBLE", "SELECT k, ROUND(AVG(x), 6) FROM past GROUP BY k"),
    "join with the counts of its keys": (
        "u BIGINT, v BIGINT, n BIGINT",
        "SELECT p.u, p.v, c.n FROM (SELECT * FROM past WHERE v < 50) AS p JOIN (SELECT u, COUNT(*) AS n FROM past GROUP BY u) AS c ON p.u = c.u",
    ),
}


@dataclass(frozen=True)
class Took:
    """How long a run took, in seconds: by the wall, and of this process's processor time."""

    wall_s: float
    cpu_s: float


def ran(folder: Path, query: str, columns: str, out: Path, parallelism: int, backend: str | None) -> Took:
    """Run a query into Parquet files, with its history computed by a backend or without, and wait for its
    end.
    """
    import penstock

    with penstock.connect(
        settings={"parallelism.default": str(parallelism), "execution.runtime-mode": "streaming"}
    ) as connection:
        for setting in (f"'bounded.backend' = '{backend or 'duckdb'}'", "'table.dml-sync' = 'true'"):
            connection.execute(f"SET {setting}")
        options = (
            f"'connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet', 'source.replay' = 'true'"
        )
        connection.execute(
            f"CREATE TEMPORARY TABLE past ({COLUMNS}, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND) WITH ({options})"
        )
        options = f"'connector' = 'filesystem', 'path' = '{out}', 'format' = 'parquet', 'changelog.mode' = 'retract'"
        connection.execute(f"CREATE TEMPORARY TABLE result ({columns}) WITH ({options})")
        if backend == "spark":
            _warm(folder)
        started_s, cpu_s = time.perf_counter(), time.process_time()
        connection.execute(f"INSERT INTO result {query}{' WITH HISTORY' if backend else ''}")
        return Took(time.perf_counter() - started_s, time.process_time() - cpu_s)


def _warm(folder: Path) -> None:
    """Start Spark, if it is not, and have it read a file."""
    from penstock.engine.bounded.spark.sessions import SESSIONS

    SESSIONS.new("UTC").read.parquet(next(folder.resolve().glob("*.parquet")).as_uri()).groupBy(
        "k"
    ).count().toArrow()


def same(one: Path, other: Path) -> bool:
    """Return whether two directories of changes add up to the same rows, by DuckDB."""
    import duckdb

    def added(out: Path, sign: int) -> str:
        given = f"CASE WHEN op IN ('+I', '+U') THEN {sign} ELSE {-sign} END"
        return f"SELECT * EXCLUDE (op), {given} AS given FROM read_parquet('{out}/*.parquet')"

    both = f"SELECT * EXCLUDE (given), SUM(given) AS n FROM ({added(one, 1)} UNION ALL {added(other, -1)}) GROUP BY ALL HAVING n <> 0"
    ((count,),) = duckdb.connect().execute(f"SELECT COUNT(*) FROM ({both})").fetchall()
    return int(count) == 0


def report(folder: Path, rows: int, parallelism: int, backends: list[str], wanted: str) -> None:
    """Print one line per query and backend."""
    source = past(folder, rows)
    print(
        f"{rows:,} rows, {parallelism} subtasks    replay s (cpu s)    with history s (cpu s)   sooner   equal"
    )
    for name, (columns, query) in QUERIES.items():
        if wanted not in name:
            continue
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as scratch:
            replay = ran(source, query, columns, Path(scratch) / "replay", parallelism, None)
            for backend in backends:
                out = Path(scratch) / backend
                history = ran(source, query, columns, out, parallelism, backend)
                ratio, equal = (
                    replay.wall_s / history.wall_s,
                    "yes" if same(Path(scratch) / "replay", out) else "NO",
                )
                told = f"{replay.wall_s:7.2f} ({replay.cpu_s:5.2f})    {history.wall_s:7.2f} ({history.cpu_s:5.2f})   {ratio:5.1f} x   {equal}"
                print(f"{name:34} {backend:7} {told}", flush=True)
                shutil.rmtree(out)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.backfill", description=__doc__)
    parser.add_argument("--rows", type=int, default=ROWS, help="how many rows of a past (10 million)")
    parser.add_argument(
        "--folder", type=Path, default=Path("out/bench"), help="where they are kept (out/bench)"
    )
    parser.add_argument("--parallelism", type=int, default=2, help="subtasks (2)")
    parser.add_argument("--backends", default="duckdb,spark", help="duckdb,spark")
    parser.add_argument("--query", default="", help="only queries whose name has this in it")
    arguments = parser.parse_args()
    report(
        arguments.folder,
        arguments.rows,
        arguments.parallelism,
        arguments.backends.split(","),
        arguments.query,
    )


if __name__ == "__main__":
    main()
