"""``python -m bench.checkpoints``: how long rows wait for a snapshot, what a checkpoint writes, and what an interval of 5 s costs a job."""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench.data import ROWS, events
from bench.queries import QUESTIONS, Question, events_ddl
from catalog.schema import Field, Schema
from catalog.types import BIGINT
from engine.chain import OperatorSnapshot
from engine.clock import SystemClock
from engine.elements import Batch
from engine.job_messages import TaskId
from engine.job_options import JobOptions
from engine.layers import Layers
from engine.local_storage import LocalStorage
from engine.metrics import OperatorMetrics
from engine.operator import Context, KeyedState, KeyGroups, Services
from engine.operators.group_aggregate import GroupAggregateOperator
from engine.snapshot_writer import SnapshotWriter
from engine.state.join_side import JoinSide
from engine.state.key_index import KeyIndex
from planner.expressions import AggregateCall, Column
from planner.logical import Phase
from planner.physical import GroupAggregateSpec

STATE_BYTES = 10_000_000
STALL_MS = 50.0
TOUCHED = 100  # one key in so many
QUERIES = ("filter", "group aggregate")


class CountingStorage(LocalStorage):
    """Counts what is made durable."""

    syncs = 0

    def sync(self, name: str) -> None:
        self.syncs += 1
        super().sync(name)


class _Dropped:
    def collect(self, batch: Batch) -> None: ...

    def watermark(self, time_us: int) -> None: ...

    def idle(self) -> None: ...

    def split(self, event: object) -> None: ...


def aggregate() -> tuple[KeyedState, Callable[[np.ndarray], None], int]:
    """Return a group aggregate's state, what touches keys of it, and how many keys make STATE_BYTES."""
    source = Schema((Field("k", BIGINT), Field("v", BIGINT)))
    calls = (AggregateCall("count", (), BIGINT, False), AggregateCall("sum", (Column(BIGINT, True, index=1, name="v"),), BIGINT))
    schema = Schema((Field("k", BIGINT), Field("a0", BIGINT), Field("a1", BIGINT)))
    operator = GroupAggregateOperator(GroupAggregateSpec("op", "group", schema, source, (0,), calls, Phase.SINGLE, False), JobOptions())
    operator.open(Context("op", "group", 0, 1, KeyGroups(0, 128, 128), SystemClock(), OperatorMetrics(), Services()))

    def touch(keys: np.ndarray) -> None:
        column = pa.array(keys)
        operator.on_batch(Batch(pa.RecordBatch.from_arrays([column, column], names=["k", "v"])), 0, _Dropped())
        operator.before_barrier(0, _Dropped())

    return operator.keyed_states()["groups"], touch, STATE_BYTES // 40


def join_side() -> tuple[KeyedState, Callable[[np.ndarray], None], int]:
    """Return the rows of a join's side, likewise."""
    schema = pa.schema([("k", pa.int64()), ("name", pa.string()), ("v", pa.int64())])
    index = KeyIndex([pa.int64()])
    side = JoinSide(schema, [0], index, 128, retracting=False, counts=True)

    def touch(keys: np.ndarray) -> None:
        names = pa.array([f"customer {key}" for key in keys.tolist()])
        rows = pa.RecordBatch.from_arrays([pa.array(keys), names, pa.array(keys)], schema=schema)
        side.change(Batch(rows), index.lookup_or_insert([rows.column(0)]), np.zeros(keys.size, np.int64))

    return side, touch, STATE_BYTES // 60


def stalls(runs: int) -> bool:
    """Print how long a snapshot of 10 MB keeps rows waiting, whole and with 1 % touched, and what it writes; return whether all are short enough."""
    print(
        f"{'state of 10 MB':18} {'whole ms':>9} {'1 % ms':>7} {'bytes whole':>12} {'bytes 1 %':>10} {'share':>6} {'fsyncs':>7} {'elsewhere ms':>13}"
    )
    worst = 0.0
    for name, make in (("group aggregate", aggregate), ("join side", join_side)):
        whole, part, elsewhere, sizes, syncs = [], [], [], [0, 0], 0
        for _ in range(runs):
            state, touch, keys = make()
            for first in range(0, keys, 32_768):
                touch(np.arange(first, min(keys, first + 32_768)))
            with tempfile.TemporaryDirectory() as folder:
                storage = CountingStorage(Path(folder))
                layers, writer = Layers(True), SnapshotWriter(storage, 1, 1)
                for number, times in ((1, whole), (2, part)):
                    started = time.perf_counter()
                    frozen = layers.freeze("op", name, state, number)
                    times.append((time.perf_counter() - started) * 1e3)
                    started = time.perf_counter()
                    written = writer.write(number, TaskId(0, 0), [OperatorSnapshot("op", {name: frozen})])
                    elsewhere.append((time.perf_counter() - started) * 1e3)
                    sizes[number - 1] = sum(file.length for file in written.files if f"-c{number}-" in file.name)
                    layers.complete(number)
                    touch(np.arange(0, keys, TOUCHED))
                syncs = storage.syncs // 2
        worst = max([worst, *whole, *part])
        share = sizes[1] / sizes[0]
        figures = f"{max(whole):9.1f} {max(part):7.1f} {sizes[0]:12,} {sizes[1]:10,} {share:6.1%} {syncs:7} {max(elsewhere):13.1f}"
        print(f"{name:18} {figures}", flush=True)
    print(f"longest wait {worst:.1f} ms of {STALL_MS:.0f}: {'within' if worst <= STALL_MS else 'TOO LONG'}")
    return worst <= STALL_MS


def run_s(files: Path, question: Question, state: Path, interval: str, rounds: int) -> tuple[float, int, float]:
    """Return the seconds of a job over the events so many times, its checkpoints, and the longest wait for a snapshot in milliseconds."""
    import penstock

    with penstock.connect() as connection:
        settings = {"execution.runtime-mode": "streaming", "execution.checkpointing.interval": interval, "execution.checkpointing.dir": str(state)}
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
    """Print interleaved pairs with checkpoints on and off, and off against off, for they show how much is noise."""
    print(f"{'query':38} {'on/off':>8} {'off/off':>8} {'checkpoints':>12} {'longest wait ms':>16}   (medians of {pairs} pairs, {interval})")
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


def main() -> int:
    """Print what was asked for; 1 when rows wait too long."""
    parser = argparse.ArgumentParser(prog="python -m bench.checkpoints", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each wait (5)")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of each cost; 0: only waits (5)")
    parser.add_argument("--interval", default="5 s", help="between checkpoints (5 s)")
    parser.add_argument("--rounds", type=int, default=10, help="how many times the events are read in a run (10)")
    parser.add_argument("--folder", type=Path, default=Path("out/bench"), help="where the events are kept (out/bench)")
    arguments = parser.parse_args()
    within = stalls(arguments.runs)
    if arguments.pairs:
        print(f"{ROWS * arguments.rounds / 1e6:.0f} M rows a run")
        costs(events(arguments.folder), arguments.pairs, arguments.interval, arguments.rounds)
    return 0 if within else 1


if __name__ == "__main__":
    raise SystemExit(main())
