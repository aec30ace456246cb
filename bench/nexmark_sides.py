"""The two sides of the Nexmark figures, ours and DuckDB's: a new process for each query. Its first run is the
first of the process; warm runs are those after it. Processor time of all threads, and the peak of its memory.
"""

from __future__ import annotations

import compileall
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SIDES = ("ours", "duckdb")

ROOT = Path(__file__).resolve().parent.parent
# what an installation has compiled: the package, and the folders that are its subpackages
_PACKAGES = ("penstock", "catalog", "client", "engine", "optimizer", "planner", "repl")


def compile_modules() -> None:
    """Compile the checkout's modules, as pip does when it installs them. A first run would otherwise compile
    those that it imports: where ``PYTHONDONTWRITEBYTECODE`` is set, every first run would.
    """
    for package in _PACKAGES:
        compileall.compile_dir(ROOT / package, quiet=1)


@dataclass(frozen=True)
class Timed:
    """Seconds of processor time (all threads) and by the clock, and the peak of memory until its end."""

    cpu_s: float
    wall_s: float
    peak_mb: float


class SideProcess:
    """One side's process for one query, which ``serve`` is given. ``run`` runs it and waits for its end."""

    def __init__(self, request: dict[str, Any]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.nexmark_sides", json.dumps(request)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self) -> Timed:
        """Raise RuntimeError when the process ended."""
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        reply = process.stdout.readline()
        if not reply:
            raise RuntimeError(f"the process ended with {process.wait()}")
        return Timed(**json.loads(reply))

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def interleaved(requests: dict[str, dict[str, Any]], runs: int, turn: int) -> dict[str, list[Timed]]:
    """Return the first run and the ``runs`` warm ones of each side. The sides alternate; ``turn`` decides which
    begins, so that a slow moment of the machine meets both.
    """
    sides = SIDES if turn % 2 else SIDES[::-1]
    processes = {side: SideProcess(requests[side]) for side in sides}
    timed: dict[str, list[Timed]] = {side: [] for side in SIDES}
    for number in range(runs + 1):
        for side in sides if number % 2 else sides[::-1]:
            timed[side].append(processes[side].run())
    for process in processes.values():
        process.close()
    return timed


def peak_mb() -> float:
    """Return the most memory this process has had."""
    # getrusage would count what the parent had when it began this process
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def serve(request: dict[str, Any]) -> None:
    """Run the query for each line of standard input until it closes: the child's side of ``SideProcess.run``.
    The time of imports and of the tables' declarations is not counted.
    """
    with (_duckdb if request["side"] == "duckdb" else _ours)(request) as run:
        for _ in sys.stdin:
            cpu, wall = time.process_time(), time.perf_counter()
            run()
            taken = Timed(time.process_time() - cpu, time.perf_counter() - wall, peak_mb())
            sys.stdout.write(json.dumps(asdict(taken)) + "\n")
            sys.stdout.flush()


@contextmanager
def _ours(request: dict[str, Any]) -> Iterator[Callable[[], None]]:
    # the module that declares the tables and runs the query
    bench = importlib.import_module(request.get("bench", "bench.nexmark"))
    with bench.prepared(request["query"], Path(request["folder"]), request["form"], request["slots"]) as run:
        yield run


def into_blackhole(connection: Any, select: str) -> Callable[[], None]:
    """Return what runs a query from submit to the end of its job, result into a blackhole. It raises the job's
    error.
    """

    def run() -> None:
        job = connection.execute(
            f"CREATE TEMPORARY TABLE bench_sink WITH ('connector' = 'blackhole') AS {select}"
        ).job
        job.wait()
        if job.error is not None:
            raise job.error
        connection.execute("DROP TEMPORARY TABLE bench_sink")

    return run


@contextmanager
def _duckdb(request: dict[str, Any]) -> Iterator[Callable[[], None]]:
    """Yield a run on one thread that hands out all batches. The process imports nothing of ours, for its
    memory.
    """
    import duckdb

    with duckdb.connect() as connection:
        for statement in ("SET threads = 1", *request["views"]):
            connection.execute(statement)

        def run() -> None:
            for _ in connection.sql(request["select"]).to_arrow_reader(100_000):
                pass

        yield run


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
