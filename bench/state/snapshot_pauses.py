"""``python -m bench.state.snapshot_pauses``: for each kind of large state, how long rows wait at a barrier and while
its snapshot is written on another thread, what that costs in rate and memory, and what an increment writes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

import numpy as np

from bench.state.checkpoint_states import LARGE_STATES, Measured
from penstock.engine.checkpoint.snapshot_format import WrittenTask
from penstock.engine.checkpoint.snapshot_writer import SnapshotWriter
from penstock.engine.storage.local import LocalStorage
from penstock.engine.task.incremental_snapshots import IncrementalSnapshots
from penstock.engine.task.messages import TaskId
from penstock.engine.task.operator_chain import OperatorSnapshot

BATCH = 16_384
SECONDS = 2.0
"""How long batches are timed without a snapshot, and how many seconds are between two snapshots of a rate."""
TOUCHED = 100
"""One key in so many is touched before the increment."""
_MB = 1e6


@dataclass
class Steps:
    """Batches of keys that were touched: milliseconds of each, and the peak of memory in bytes."""

    ms: list[float] = field(default_factory=list)
    peak: int = 0

    def touch(self, measured: Measured, keys: np.ndarray) -> None:
        """Touch keys, and note how long it takes."""
        began = time.perf_counter()
        measured.touch(keys)
        self.ms.append((time.perf_counter() - began) * 1e3)
        self.peak = max(self.peak, resident())


@dataclass
class Checkpoint:
    """A snapshot of a state: how long rows waited for it, and what was written of it."""

    wait_ms: float
    worked_ms: float
    written: WrittenTask | None = None

    def new_bytes(self, number: int) -> int:
        """Return the bytes of the files that checkpoint ``number`` has written."""
        assert self.written is not None, "the snapshot was not written"
        return sum(file.length for file in self.written.files if f"-c{number}-" in file.name)


def resident() -> int:
    """Return the bytes of memory in use."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def batches(keys: int, seed: int) -> Iterator[np.ndarray]:
    """Yield batches of random keys without end."""
    random = np.random.default_rng(seed)
    while True:
        yield np.unique(random.integers(0, keys, BATCH))


def report(kind: str, keys: int) -> None:
    """Print the row of a kind of state."""
    measured = LARGE_STATES[kind]()
    for first in range(0, keys, BATCH):
        measured.touch(np.arange(first, min(keys, first + BATCH)))
    draw, before = batches(keys, 1), Steps()
    ends = time.perf_counter() + SECONDS
    while time.perf_counter() < ends or len(before.ms) < 3:
        before.touch(measured, next(draw))
    with tempfile.TemporaryDirectory() as folder:
        increments = IncrementalSnapshots(True)
        writer = SnapshotWriter(LocalStorage(Path(folder)), 1, 1)

        def freeze(number: int) -> tuple[Checkpoint, Thread]:
            began, worked = time.perf_counter(), time.thread_time()
            frozen = {
                name: increments.freeze("op", name, state, number) for name, state in measured.states.items()
            }
            waited = (time.perf_counter() - began) * 1e3
            taken = Checkpoint(waited, (time.thread_time() - worked) * 1e3)
            snapshot = [OperatorSnapshot("op", frozen)]

            def write() -> None:
                taken.written = writer.write(number, TaskId(0, 0), snapshot)
                snapshot.clear()

            return taken, Thread(target=write)

        whole, thread = freeze(1)
        during = Steps()
        thread.start()
        while thread.is_alive():
            during.touch(measured, next(draw))
        # another one, so that the third has nothing to write but what is touched between the two
        for number in (2, 3):
            increments.complete(number - 1)
            if number == 3:
                measured.touch(np.arange(0, keys, TOUCHED))
            increment, thread = freeze(number)
            thread.start()
            thread.join()
    size, part = whole.new_bytes(1), increment.new_bytes(3)
    print(
        f"{kind:22} {keys / 1e6:6.1f} {size / _MB:8,.0f} {whole.wait_ms:8.1f} {whole.worked_ms:7.1f} "
        f"{np.median(before.ms):7.1f} {max(before.ms):8.0f} {np.median(during.ms):8.1f} "
        f"{max(during.ms):8.0f} {sum(during.ms) / 1e3:7.1f} {during.peak / before.peak:7.2f} "
        f"{part / _MB:10.1f}",
        flush=True,
    )


def main() -> int:
    """Print a row for each kind of state, each in a process of its own."""
    parser = argparse.ArgumentParser(prog="python -m bench.state.snapshot_pauses", description=__doc__)
    parser.add_argument("--keys", type=int, default=2_000_000, help="keys of a state (2000000)")
    parser.add_argument("--of", choices=list(LARGE_STATES), action="append", help="kinds of state (all)")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        report(arguments.of[0], arguments.keys)
        return 0
    print(
        f"{BATCH:,} rows a batch; 'before' and 'during' are ms of a batch, without a snapshot and beside one"
    )
    print(
        f"{'state':22} {'M keys':>6} {'MB':>8} {'waits ms':>8} {'cpu ms':>7} {'before':>7} {'longest':>8} "
        f"{'during':>8} {'longest':>8} {'made s':>7} {'memory':>7} {'1 % MB':>10}",
        flush=True,
    )
    for kind in arguments.of or LARGE_STATES:
        command = [sys.executable, "-m", "bench.state.snapshot_pauses", "--one", "--of", kind]
        subprocess.run([*command, "--keys", str(arguments.keys)], check=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
