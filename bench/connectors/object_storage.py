"""``python -m bench.connectors.object_storage``: state in an object store beside a local disk: writing and reading 100 MB,
small files, and what a checkpoint costs in requests.

The servers run on this machine: moto, written in Python, which is slow but keeps conditions of writes, and
localbucket, which is quicker and ignores some. The library's store in memory shows what is our own cost.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from obstore.store import MemoryStore

from penstock.engine.api.locations import ObjectUrl
from penstock.engine.checkpoint.manifest import Manifest, OperatorEntry
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.storage.local import LocalStorage
from penstock.engine.storage.object_client import ObjectClient
from penstock.engine.storage.object_store import ObjectStorage
from penstock.engine.storage.storage import Storage
from penstock.engine.task.messages import TaskId
from penstock.engine.task.operator_chain import OperatorSnapshot
from tests.harness.object_stores import localbucket_server, moto_server

_PIECE = 256 << 10
_BUCKET = "bench"


def storages() -> dict[str, Storage]:
    """Return an empty storage of each kind, by name."""
    root = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    made: dict[str, Storage] = {"local disk": LocalStorage(root / "state")}
    url = ObjectUrl("s3", _BUCKET, f"jobs-{time.monotonic_ns()}")
    made["in memory"] = ObjectStorage(url, ObjectClient(MemoryStore(), "memory"))
    for name, server in (("localbucket", localbucket_server()), ("moto", moto_server())):
        server.bucket(_BUCKET)
        made[name] = ObjectStorage(url, server.client(_BUCKET))
    return made


def volume(storage: Storage, megabytes: int) -> tuple[float, float, float, float]:
    """Return wall and CPU seconds of writing a file of so many MB, and of reading it."""
    # bytes that no server compresses or shares
    piece = np.random.default_rng(1).bytes(_PIECE)

    def write() -> None:
        storage.create("seg-1")
        for _ in range(megabytes << 20 >> 18):
            storage.append("seg-1", piece)
        storage.sync("seg-1")

    def read() -> None:
        for begin in range(0, megabytes << 20, _PIECE):
            assert len(storage.read("seg-1", begin, _PIECE)) == _PIECE

    return (*_timed(write), *_timed(read))


def small_files(storage: Storage, count: int) -> tuple[float, float]:
    """Return the median and the worst milliseconds of writing 1 kB durably."""
    spent = []
    for number in range(count):

        def write(number: int = number) -> None:
            storage.create(f"small-{number}")
            storage.append(f"small-{number}", bytes(1024))
            storage.sync(f"small-{number}")

        spent.append(_timed(write)[0] * 1e3)
    return statistics.median(spent), max(spent)


def checkpoints(storage: Storage, count: int) -> tuple[float, float, dict[str, float]]:
    """Return the median wall and CPU milliseconds of a checkpoint of one task, with its clean-up, and the
    requests of each.
    """
    store = CheckpointStore(storage, "job")
    store.open()
    table = pa.table({"key_group": np.zeros(1000, np.uint16), "value": np.arange(1000)})
    walls, cpus, before = [], [], _counts(storage)
    for number in range(1, count + 1):

        def take(number: int = number) -> None:
            written = store.write_task(
                1, number, TaskId(0, 0), [OperatorSnapshot("agg", {"sums": table}, {})]
            )
            entry = OperatorEntry("agg", "sum", True, 1)
            store.publish(
                Manifest("job", 0, number, None, "periodic", 5, 8, "p", (entry,), (written,), frozenset())
            )
            store.retire()

        wall, cpu = _timed(take)
        walls.append(wall * 1e3)
        cpus.append(cpu * 1e3)
    after = _counts(storage)
    store.close()
    each = {name: (after[name] - before.get(name, 0)) / count for name in sorted(after)}
    return statistics.median(walls), statistics.median(cpus), each


def _counts(storage: Storage) -> dict[str, int]:
    return dict(storage.client.counts) if isinstance(storage, ObjectStorage) else {}


def _timed(act: Callable[[], None]) -> tuple[float, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.connectors.object_storage", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=100)
    parser.add_argument("--files", type=int, default=50)
    arguments = parser.parse_args()
    print(
        f"{'':12} {'write MB/s':>10} {'cpu s':>6} {'read MB/s':>10} {'cpu s':>6} {'1 kB ms':>8} {'worst':>7}"
    )
    made = storages()
    for name, storage in made.items():
        # moto holds what it stores in Python objects, and is an order slower
        megabytes = arguments.megabytes // 5 if name == "moto" else arguments.megabytes
        write_s, write_cpu, read_s, read_cpu = volume(storage, megabytes)
        median, worst = small_files(storage, arguments.files)
        print(
            f"{name:12} {megabytes / write_s:>10.0f} {write_cpu:>6.2f} {megabytes / read_s:>10.0f} "
            f"{read_cpu:>6.2f} {median:>8.1f} {worst:>7.1f}"
        )
    print(f"\n{'a checkpoint':12} {'ms':>8} {'cpu ms':>8}  requests")
    for name, storage in storages().items():
        if name == "localbucket":  # refused for the state of jobs
            continue
        wall, cpu, requests = checkpoints(storage, arguments.files // 2)
        shown = ", ".join(f"{count:.1f} {verb}" for verb, count in requests.items() if count >= 0.05)
        print(f"{name:12} {wall:>8.1f} {cpu:>8.1f}  {shown}")


if __name__ == "__main__":
    main()
