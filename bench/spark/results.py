"""``python -m bench.spark.results``: rows out of Spark, to a quick and to a slow reader and to one that
leaves: rates, memory of both sides, beside pyspark's ``toArrow()`` in turn.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock
from penstock.engine.bounded.spark.backend import warm_up
from penstock.engine.bounded.spark.local_application import OwnSpark
from penstock.engine.bounded.spark.sessions import SESSIONS

QUERY = (
    "SELECT n, v, CAST(n % 1000 AS INT) AS k, CONCAT('name ', CAST(n % 5000 AS STRING)) AS name, CONCAT('c', CAST(n % 50 AS STRING)) AS city "
    "FROM numbers"
)
_WRITTEN_ROWS = 1 << 20
# what 32 MB of frames and Arrow's pools may add; a heap of 1 GB and what Java has besides
_MORE_MB, _JAVA_MB = 200.0, 1_700.0
_IDLE_WITHIN_S = 10.0


class Peak:
    """The largest resident memory of processes while it runs, looked at ten times a second; also their CPU
    seconds.
    """

    def __init__(self, java_pid: int) -> None:
        self._java_pid = java_pid
        self.client_mb = self.java_mb = self.workers_mb = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            self.client_mb = max(self.client_mb, resident_mb(os.getpid()))
            self.java_mb = max(self.java_mb, resident_mb(self._java_pid))
            self.workers_mb = max(self.workers_mb, sum(map(resident_mb, below(self._java_pid))))


def resident_mb(pid: int) -> float:
    """Resident memory of a process in MB; 0 when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
    except (OSError, IndexError):
        return 0.0


def below(pid: int) -> list[int]:
    """The processes a process has started, and theirs."""
    try:
        children = [
            int(word)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for word in (task / "children").read_text().split()
        ]
    except OSError:
        return []
    return [*children, *(deeper for child in children for deeper in below(child))]


def cpu_s(pids: list[int]) -> float:
    """CPU seconds of processes and of their children that have ended."""
    total = 0
    for pid in pids:
        try:
            words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, words[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def read(connection: penstock.Connection, java_pid: int, rows: int, pause_s: float) -> Peak:
    """Read a result to its end, with a pause after each batch; print what that was like, and return the
    memory it took.
    """
    sql = f"{QUERY} WHERE n < {rows}"
    before, start, first_s, count = (
        cpu_s([os.getpid(), java_pid, *below(java_pid)]),
        time.perf_counter(),
        0.0,
        0,
    )
    with Peak(java_pid) as peak:
        for batch in connection.execute(sql).batches():
            first_s = first_s or time.perf_counter() - start
            count += batch.num_rows
            if pause_s:
                time.sleep(pause_s)
    wall_s = time.perf_counter() - start
    spent_s = cpu_s([os.getpid(), java_pid, *below(java_pid)]) - before
    assert count == rows, (count, rows)
    print(
        f"{'slow' if pause_s else 'quick'} reader: {count / 1e6:5.1f} M rows, first batch {first_s:5.2f} s, {count / 1e6 / wall_s:5.2f} M rows/s, "
        f"{count / 1e6 / spent_s:5.2f} M rows per cpu-second; peak MB: client {peak.client_mb:.0f}, Java {peak.java_mb:.0f}, "
        f"Python workers {peak.workers_mb:.0f}",
        flush=True,
    )
    return peak


def read_by_library(java_pid: int, path: Path, rows: int) -> None:
    """Read the same rows with pyspark's ``toArrow()``, which holds the whole result; print what that was like."""
    session = SESSIONS.new("UTC")
    session.read.parquet(str(path)).createOrReplaceTempView("numbers")
    # Spark refuses results of more than 1 GB in this way unless it is told otherwise, when it starts
    before, start = cpu_s([os.getpid(), java_pid, *below(java_pid)]), time.perf_counter()
    with Peak(java_pid) as peak:
        try:
            count = session.sql(f"{QUERY} WHERE n < {rows}").toArrow().num_rows
        except Exception as error:  # noqa: BLE001  whatever ends it is what is printed
            print(f"toArrow(): {rows / 1e6:5.1f} M rows fail: {str(error).splitlines()[0][:120]}", flush=True)
            return
    wall_s = time.perf_counter() - start
    spent_s = cpu_s([os.getpid(), java_pid, *below(java_pid)]) - before
    assert count == rows, (count, rows)
    print(
        f"toArrow():    {count / 1e6:5.1f} M rows, first batch {wall_s:5.2f} s, {count / 1e6 / wall_s:5.2f} M rows/s, "
        f"{count / 1e6 / spent_s:5.2f} M rows per cpu-second; peak MB: client {peak.client_mb:.0f}, Java {peak.java_mb:.0f}",
        flush=True,
    )


def flat(few: Peak, many: list[Peak], rows: int) -> bool:
    """Print, and return, whether reading many rows took hardly more memory on any side than reading a few;
    Java's heap may fill up to its limit.
    """
    most = (
        max(peak.client_mb for peak in many),
        max(peak.workers_mb for peak in many),
        max(peak.java_mb for peak in many),
    )
    bounds = few.client_mb + _MORE_MB, few.workers_mb + _MORE_MB, _JAVA_MB
    is_flat = all(peak <= bound for peak, bound in zip(most, bounds, strict=True))
    sides = zip(("client", "Python workers", "Java"), most, bounds, strict=True)
    told = ", ".join(f"{side} {peak:.0f} of at most {bound:.0f} MB" for side, peak, bound in sides)
    print(
        f"memory over {rows / 1e6:.0f} M rows {'is flat' if is_flat else 'IS NOT FLAT'}: {told}", flush=True
    )
    return is_flat


def leave(connection: penstock.Connection, rows: int) -> bool:
    """Read one batch, close; print how soon Spark ran nothing and the next query had its answer, and
    return whether the job was cancelled.
    """
    cursor = connection.execute(f"{QUERY} WHERE n < {rows}")
    next(cursor.batches())
    start = time.perf_counter()
    cursor.close()
    closed_s = time.perf_counter() - start
    tracker = SESSIONS.new("UTC").sparkContext.statusTracker()
    while (running := tracker.getActiveStageIds()) and time.perf_counter() - start < _IDLE_WITHIN_S:
        time.sleep(0.02)
    idle_s = time.perf_counter() - start
    connection.execute("SELECT COUNT(*) FROM numbers").fetchall()
    next_s = time.perf_counter() - start
    said = "STILL RUNNING" if running else "idle"
    print(
        f"early close: close() {closed_s:.2f} s, Spark {said} after {idle_s:.2f} s, next query answered after {next_s:.2f} s"
    )
    return not running


def write_numbers(path: Path, rows: int) -> None:
    """Write numbers and their roots as Parquet, once."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    with pq.ParquetWriter(part, pa.schema([("n", pa.int64()), ("v", pa.float64())])) as writer:
        for first in range(0, rows, _WRITTEN_ROWS):
            numbers = np.arange(first, min(rows, first + _WRITTEN_ROWS))
            writer.write_table(pa.table({"n": numbers, "v": np.sqrt(numbers)}), row_group_size=_WRITTEN_ROWS)
    part.rename(path)


def main() -> int:
    """Print a line for each kind of reader; return 1 when memory grew with the rows, or an early close did
    not end the job.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.spark.results", description=__doc__)
    parser.add_argument(
        "--folder", type=Path, default=Path("out/bench"), help="where the rows are kept (out/bench)"
    )
    parser.add_argument("--rows", type=int, default=16_000_000, help="how many rows (16 million)")
    parser.add_argument(
        "--pause-ms",
        type=float,
        default=100.0,
        help="what the slow reader does with a batch of 65,536 rows (100 ms)",
    )
    arguments = parser.parse_args()
    path = (arguments.folder / f"numbers-{arguments.rows}.parquet").absolute()
    write_numbers(path, arguments.rows)
    with penstock.connect(settings={"bounded.backend": "spark"}) as connection:
        connection.execute(
            f"CREATE TABLE numbers (n BIGINT, v DOUBLE) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '{path}')"
        )
        start = time.perf_counter()
        connection.execute("SELECT COUNT(*) FROM numbers").fetchall()
        warm_up(SESSIONS.new("UTC"))  # as the shell does
        print(f"Spark up and warm after {time.perf_counter() - start:.1f} s", flush=True)
        assert isinstance(SESSIONS.application, OwnSpark)
        java_pid = SESSIONS.application.jvm.process.pid
        few = read(connection, java_pid, min(arguments.rows, 1_000_000), 0)
        many = []
        for pause_s in (0, arguments.pause_ms / 1000):
            many.append(read(connection, java_pid, arguments.rows, pause_s))
            read_by_library(java_pid, path, arguments.rows)
        held = [flat(few, many, arguments.rows), leave(connection, arguments.rows)]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
