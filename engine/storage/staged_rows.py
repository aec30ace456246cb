"""Staged rows: a bounded result as Arrow IPC files of one batch each. The manifest is written only once all
files are durable.

Files are named ``p<partition>-<batch>.arrow``, in the order partition, then batch. The manifest ``COMPLETE``
lists their rows, bytes and CRC-32, under a checksum of its own. So a result can be read again from any
(batch, row) while the directory exists.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.storage.local import make_private, open_private
from penstock.engine.storage.sealed_json import BrokenSealError, seal, unseal

MANIFEST = "COMPLETE"


def file_name(partition: int, batch: int) -> str:
    """Return the name of the file that holds a batch."""
    return f"p{partition:06d}-{batch:06d}.arrow"


def write_file(directory: Path, name: str, batch: pa.RecordBatch) -> None:
    """Write one batch as a file that exists completely and durably, or not at all."""
    temporary = directory / f".{name}.part"
    with open_private(temporary) as raw, pa.PythonFile(raw, "w") as sink:
        with pa.ipc.new_file(sink, batch.schema) as writer:
            writer.write_batch(batch)
        raw.flush()
        os.fsync(raw.fileno())
    # atomic: a reader never sees a part of a file
    # A dot file that was left behind is no staged file.
    temporary.rename(directory / name)


def stage(directory: Path, batches: Iterable[pa.RecordBatch]) -> StagedRows:
    """Write batches as staged files of partition 0 and complete them."""
    make_private(directory)
    names = []
    for number, batch in enumerate(batches):
        # Zero-padded: names sort in the order of their numbers.
        names.append(file_name(0, number))
        write_file(directory, names[-1], batch)
    return complete(directory, names)


def complete(directory: Path, names: list[str]) -> StagedRows:
    """Write the manifest over existing files, in order: the result is now complete."""
    # [name, rows, bytes, CRC-32], in the order of the batches.
    files = [[name, read_file(directory / name).num_rows, *_measured(directory / name)] for name in names]
    temporary = directory / f".{MANIFEST}.part"
    with open_private(temporary) as sink:
        sink.write(seal({"version": 1, "files": files}))
        sink.flush()
        os.fsync(sink.fileno())
    # The result is complete from here on.
    temporary.rename(directory / MANIFEST)
    # the renames are durable only once the directory is synced
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
    return StagedRows(directory)


def _measured(path: Path) -> tuple[int, int]:
    """Return a file's length and checksum."""
    checksum = size = 0
    with path.open("rb") as source:
        # A MiB at a time: files may be large.
        while block := source.read(1 << 20):
            checksum, size = zlib.crc32(block, checksum), size + len(block)
    return size, checksum


def read_file(path: Path) -> pa.RecordBatch:
    """Return the batch of a staged file, memory-mapped. BND-5201 when it cannot be read."""
    try:
        with pa.memory_map(str(path)) as source:
            return pa.ipc.open_file(source).get_batch(0)
    except (OSError, pa.ArrowInvalid) as error:
        # An error of the system may pass; damaged bytes do not.
        detail, passes = str(error)[:200], isinstance(error, OSError) and error.errno is not None
        raise PenstockError(
            "BND-5201",
            f"staged file {path.name} cannot be read",
            detail=detail,
            kind=Kind.EXTERNAL,
            retriable=passes,
        ) from error


class StagedRows:
    """A complete staged result."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        try:
            manifest = unseal((directory / MANIFEST).read_bytes())
        except (OSError, BrokenSealError) as error:
            message = f"the staged rows in {directory} have no manifest {MANIFEST} that can be read"
            raise PenstockError("BND-5201", message, detail=str(error)[:200], kind=Kind.EXTERNAL) from error
        self._files: list[tuple[str, int, int, int]] = [tuple(entry) for entry in manifest["files"]]

    def __len__(self) -> int:
        return len(self._files)

    def check(self) -> None:
        """Read all files and verify their length and checksum. BND-5201 names the first that differs."""
        for number in range(len(self)):
            self._check(number)

    def _check(self, number: int) -> Path:
        name, _, size, checksum = self._files[number]
        path = self.directory / name
        if not path.is_file() or _measured(path) != (size, checksum):
            raise PenstockError(
                "BND-5201", f"staged file {name} is not as it was written", kind=Kind.EXTERNAL
            )
        return path

    # Each read checks the whole file: a damaged batch is never returned.
    def batch(self, number: int) -> pa.RecordBatch:
        """Return a batch by its ordinal. BND-5201 when its file differs from the manifest."""
        name, rows, _, _ = self._files[number]
        batch = read_file(self._check(number))
        if batch.num_rows != rows:
            raise PenstockError(
                "BND-5201", f"staged file {name} holds {batch.num_rows} rows, not {rows}", kind=Kind.EXTERNAL
            )
        return batch

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield all batches in order."""
        return (self.batch(number) for number in range(len(self)))


def is_complete(directory: Path) -> bool:
    """Return whether a directory holds a complete staged result."""
    return (directory / MANIFEST).is_file()


def attempt_directory(root: Path, attempt: int) -> Path:
    """Return the staging directory of one attempt at a result."""
    return root / f"attempt-{attempt}"


def new_attempt(root: Path) -> int:
    """Return the number of a new attempt. Incomplete attempts are removed; complete ones stay for the
    checkpoints that reference them.
    """
    numbers = [int(path.name.rpartition("-")[2]) for path in root.glob("attempt-*")]
    for number in numbers:
        if not is_complete(attempt_directory(root, number)):
            shutil.rmtree(attempt_directory(root, number), ignore_errors=True)
    # Above every number that was used, complete or not.
    return max(numbers, default=0) + 1
