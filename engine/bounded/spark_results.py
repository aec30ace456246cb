"""Rows out of Spark with bounded memory: its tasks write Arrow IPC files, which we read in order of partition while the query runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from catalog.errors import Kind, PenstockError
from engine.bounded.staging import file_name, read_file

_POLL_S = 0.02
_STUCK_AFTER_S = 120.0
TASK_SCHEMA = "partition int, files int"


def staging_task(directory: str, durable: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function Spark's tasks run: each writes its batches as files, then gives one row (partition, number of files).

    It carries its imports along, for it runs in Spark's Python workers, which need not have penstock.
    """

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import os
        from pathlib import Path

        import pyarrow as pa
        from pyspark import TaskContext

        context = TaskContext.get()
        partition, count, folder = context.partitionId(), 0, Path(directory)
        for batch in batches:
            if batch.num_rows == 0:
                continue
            name = f"p{partition:06d}-{count:06d}.arrow"
            temporary = folder / f".{name}.{context.taskAttemptId()}.part"
            with temporary.open("wb") as raw:
                with pa.ipc.new_file(raw, batch.schema) as writer:
                    writer.write_batch(batch)
                raw.flush()
                if durable:
                    os.fsync(raw.fileno())
            temporary.rename(folder / name)
            count += 1
        (folder / f"p{partition:06d}.done").write_text(str(count), encoding="utf-8")
        kinds = pa.schema([("partition", pa.int32()), ("files", pa.int32())])
        yield pa.RecordBatch.from_arrays([pa.array([partition], pa.int32()), pa.array([count], pa.int32())], schema=kinds)

    return write


class StagingJob:
    """A Spark job that stages a DataFrame's rows in a directory, running in a thread."""

    def __init__(self, frame: Any, directory: Path, durable: bool, begin: Callable[[], None], is_stuck: Callable[[], bool]) -> None:
        """``begin`` is called first in the job's thread (to tag it); ``is_stuck`` says whether Spark has nothing running."""
        self._frame = frame
        self._directory = directory
        self._durable = durable
        self._begin = begin
        self._is_stuck = is_stuck
        self._finished = threading.Event()
        self._counts: dict[int, int] = {}
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="penstock-spark-job", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._begin()
            staged = self._frame.mapInArrow(staging_task(str(self._directory), self._durable), TASK_SCHEMA)
            self._counts = {row["partition"]: row["files"] for row in staged.collect()}
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
            self._error = error
        finally:
            self._finished.set()

    def wait(self) -> list[str]:
        """Wait for the job; return the names of all files in order."""
        idle_s = 0.0
        while not self._finished.wait(1.0):
            idle_s = idle_s + 1.0 if self._is_stuck() else 0.0
            self._check_idle(idle_s)
        self._check()
        return [file_name(partition, number) for partition in sorted(self._counts) for number in range(self._counts[partition])]

    def batches(self, wanted: Callable[[], bool]) -> Iterator[pa.RecordBatch]:
        """Yield batches in order of partition as their files appear, removing them; stop early when not ``wanted`` any more."""
        partition, number, idle_s = 0, 0, 0.0
        while wanted():
            path = self._directory / file_name(partition, number)
            if path.exists():
                batch = read_file(path)
                path.unlink()
                number, idle_s = number + 1, 0.0
                yield batch
                continue
            if self._partition_is_done(partition, number):
                partition, number = partition + 1, 0
                continue
            if self._finished.is_set():
                self._check()
                if partition > max(self._counts, default=-1):
                    return
                if number >= self._counts.get(partition, 0):
                    partition, number = partition + 1, 0
                continue
            self._finished.wait(_POLL_S)
            idle_s = idle_s + _POLL_S if self._stalled(idle_s) else 0.0
            self._check_idle(idle_s)

    def _stalled(self, idle_s: float) -> bool:
        """Whether Spark has nothing running; asked only now and then, for asking costs a call."""
        return self._is_stuck() if int(idle_s / _POLL_S) % 100 == 99 else True

    def _partition_is_done(self, partition: int, number: int) -> bool:
        mark = self._directory / f"p{partition:06d}.done"
        return mark.exists() and mark.stat().st_size > 0 and number >= int(mark.read_text(encoding="utf-8"))

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    def _check_idle(self, idle_s: float) -> None:
        if idle_s > _STUCK_AFTER_S:
            message = f"Spark has run nothing for {_STUCK_AFTER_S:.0f} s and the query has not ended"
            raise PenstockError("BND-5005", message, kind=Kind.EXTERNAL, retriable=True, sqlstate="57014")
