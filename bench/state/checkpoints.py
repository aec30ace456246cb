"""``python -m bench.state.checkpoints``: how long rows wait for a snapshot, what a checkpoint writes, how much
later rows come, what an interval costs.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.data import ROWS, events
from bench.latency import run as paced
from bench.queries import QUESTIONS, Question, events_ddl
from bench.state.checkpoint_states import STATES
from penstock.engine.checkpoint.snapshot_writer import SnapshotWriter
from penstock.engine.storage.local import LocalStorage
from penstock.engine.task.incremental_snapshots import IncrementalSnapshots
from penstock.engine.task.messages import TaskId
from penstock.engine.task.operator_chain import OperatorSnapshot

STALL_MS = 50.0
ADDED_MS = 100.0
WARM_S = 2.0
KEPT_KEYS = 250_000  # about 10 MB of a group aggregate
TOUCHED = 100  # one key in so many
QUERIES = ("filter", "group aggregate")


class CountingStorage(LocalStorage):
    """Counts what is made durable."""

    syncs = 0

    def sync(self, name: str) -> None:
        self.syncs += 1
        super().sync(name)


def stalls(runs: int) -> bool:
    """Print how long a snapshot of 10 MB keeps rows waiting, whole and with 1 % touched, and what it writes;
    return whether all are short enough.

    ``cpu ms`` is what the thread works of that for a whole one: where it is much less, others were at work on
    the machine.
    """
    times_named = f"{'state of 10 MB':18} {'whole ms':>9} {'cpu ms':>7} {'1 % ms':>7}"
    print(
        f"{times_named} {'bytes whole':>12} {'bytes 1 %':>10} {'share':>6} {'fsyncs':>7} {'elsewhere ms':>13}"
    )
    worst = 0.0
    for name, make in STATES.items():
        whole, part, worked, elsewhere, sizes, syncs = [], [], [], [], [0, 0], 0
        for _ in range(runs):
            measured = make()
            for first in range(0, measured.keys, 32_768):
                measured.touch(np.arange(first, min(measured.keys, first + 32_768)))
            with tempfile.TemporaryDirectory() as folder:
                storage = CountingStorage(Path(folder))
                increments, writer = IncrementalSnapshots(True), SnapshotWriter(storage, 1, 1)
                for number, times in ((1, whole), (2, part)):
                    started, worked_before = time.perf_counter(), time.thread_time()
                    frozen = {
                        state: increments.freeze("op", state, kept, number)
                        for state, kept in measured.states.items()
                    }
                    times.append((time.perf_counter() - started) * 1e3)
                    worked.append((time.thread_time() - worked_before) * 1e3)
                    started = time.perf_counter()
                    written = writer.write(number, TaskId(0, 0), [OperatorSnapshot("op", frozen)])
                    elsewhere.append((time.perf_counter() - started) * 1e3)
                    sizes[number - 1] = sum(
                        file.length for file in written.files if f"-c{number}-" in file.name
                    )
                    increments.complete(number)
                    measured.touch(np.arange(0, measured.keys, TOUCHED))
                syncs = storage.syncs // 2
        worst = max([worst, *whole, *part])
        share = sizes[1] / sizes[0]
        figures = f"{max(whole):9.1f} {max(worked):7.1f} {max(part):7.1f} {sizes[0]:12,} {sizes[1]:10,} {share:6.1%} {syncs:7} {max(elsewhere):13.1f}"
        print(f"{name:18} {figures}", flush=True)
    print(f"longest wait {worst:.1f} ms of {STALL_MS:.0f}: {'within' if worst <= STALL_MS else 'TOO LONG'}")
    return worst <= STALL_MS


def run_s(
    files: Path, question: Question, state: Path, interval: str, rounds: int
) -> tuple[float, int, float]:
    """Return the seconds of a job over the events so many times, its checkpoints, and the longest wait for
    a snapshot in milliseconds.
    """
    import penstock

    with penstock.connect() as connection:
        settings = {
            "execution.runtime-mode": "streaming",
            "execution.checkpointing.interval": interval,
            "execution.checkpointing.dir": str(state),
        }
        for key, value in settings.items():
            connection.execute(f"SET '{key}' = '{value}'")
        connection.execute(events_ddl(str(files), watermark=question.watermark))
        connection.execute(f"CREATE TEMPORARY TABLE sink ({question.sink}) WITH ('connector' = 'blackhole')")
        both = " UNION ALL ".join(["SELECT * FROM events"] * rounds)
        connection.execute(f"CREATE TEMPORARY VIEW many AS {both}")
        started = time.perf_counter()
        job = connection.execute(f"INSERT INTO sink {question.ours}".replace("events", "many")).job
        job.wait()
        seconds = time.perf_counter() - started
        if job.error is not None:
            raise job.error
        metrics = job.metrics()
        return seconds, metrics.checkpoints_completed, max(task.checkpoint_sync_ms for task in metrics.tasks)


def costs(files: Path, pairs: int, interval: str, rounds: int) -> None:
    """Print interleaved pairs with checkpoints on and off, and off against off, for they show how much is
    noise.
    """
    print(
        f"{'query':38} {'on/off':>8} {'off/off':>8} {'checkpoints':>12} {'longest wait ms':>16}   (medians of {pairs} pairs, {interval})"
    )
    for question in [q for q in QUESTIONS if any(word in q.name.lower() for word in QUERIES)]:
        ratios, control, taken, waits = [], [], [], []
        for number in range(pairs + 1):
            with tempfile.TemporaryDirectory() as folder:
                off, _, _ = run_s(files, question, Path(folder) / "off", "0", rounds)
                on, checkpoints, wait_ms = run_s(files, question, Path(folder) / "on", interval, rounds)
                again, _, _ = run_s(files, question, Path(folder) / "again", "0", rounds)
            if number:  # the first warms up
                ratios.append(on / off)
                control.append(again / off)
                taken.append(checkpoints)
                waits.append(wait_ms)
        figures = f"{statistics.median(ratios):8.3f} {statistics.median(control):8.3f} {statistics.median(taken):12.0f} {max(waits):16.1f}"
        print(f"{question.name:38} {figures}", flush=True)


def added_latency(pairs: int, seconds: float, rate: int) -> bool:
    """Print the p99 latency of rows with a checkpoint every second less that without, of a keyed aggregate
    of 10 MB; return whether it is low.
    """
    on, off = [], []
    for number in range(pairs + 1):
        for kept, interval in ((off, "0"), (on, "1 s")):
            with tempfile.TemporaryDirectory() as folder:
                settings = {
                    "execution.checkpointing.interval": interval,
                    "execution.checkpointing.dir": folder,
                }
                _, arrivals = paced(1, 10, rate, int(rate * (seconds + WARM_S)), settings, KEPT_KEYS)
            if number:  # the first warms up
                kept.append(float(np.percentile(arrivals.latencies_ms(WARM_S), 99)))
    added = statistics.median(one - other for one, other in zip(on, off, strict=True))
    told = f"p99 on {statistics.median(on):.1f} ms, off {statistics.median(off):.1f} ms (medians of {pairs} pairs, {rate:,} rows/s)"
    print(
        f"a checkpoint every second adds {added:.1f} ms of {ADDED_MS:.0f} to p99: {'within' if added <= ADDED_MS else 'TOO MUCH'}; {told}",
        flush=True,
    )
    return added <= ADDED_MS


def main() -> int:
    """Print what was asked for; 1 when rows wait too long or come too late."""
    parser = argparse.ArgumentParser(prog="python -m bench.state.checkpoints", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each wait (5)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of each cost; 0: only waits (5)")
    parser.add_argument(
        "--latency-pairs",
        type=int,
        default=3,
        help="pairs of runs for the latency a checkpoint adds; 0: none (3)",
    )
    parser.add_argument(
        "--seconds", type=float, default=5.0, help="how long latency is measured in each run (5)"
    )
    parser.add_argument(
        "--rate", type=int, default=500_000, help="rows per second while latency is measured (500000)"
    )
    parser.add_argument("--interval", default="5 s", help="between checkpoints (5 s)")
    parser.add_argument(
        "--rounds", type=int, default=10, help="how many times the events are read in a run (10)"
    )
    parser.add_argument(
        "--folder", type=Path, default=Path("out/bench"), help="where the events are kept (out/bench)"
    )
    arguments = parser.parse_args()
    within = stalls(arguments.runs)
    if arguments.latency_pairs:
        within &= added_latency(arguments.latency_pairs, arguments.seconds, arguments.rate)
    if arguments.pairs:
        print(f"{ROWS * arguments.rounds / 1e6:.0f} M rows a run")
        costs(events(arguments.folder), arguments.pairs, arguments.interval, arguments.rounds)
    return 0 if within else 1


if __name__ == "__main__":
    raise SystemExit(main())
