"""Spill files: state on disk, read through mapped memory. They hold rows, or arrays that change. A file is
unlinked at once, so none is left behind.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.storage.local import make_private

_PIECE = 4 << 20
"""Bytes of an array written at once: two large pages."""


@dataclass
class SpilledRows:
    """Record batches whose columns are in mapped files of ``size`` bytes. A file is freed with the last
    reference to it.
    """

    batches: list[pa.RecordBatch] = field(default_factory=list)
    size: int = 0
    pages: list[mmap.mmap] = field(default_factory=list)

    def add(self, other: SpilledRows) -> None:
        """Append the rows of another."""
        self.batches = [*self.batches, *other.batches]
        self.size += other.size
        self.pages = [*self.pages, *other.pages]

    def evict_pages(self) -> None:
        """Evict the resident pages; they are read from disk again when needed."""
        evict_pages(self.pages)


class ArrayPages(mmap.mmap):
    """The mapped file of one array that may change; ``files`` creates the next one when the array grows."""

    files: SpillFiles


def pages_of(array: np.ndarray) -> ArrayPages | None:
    """Return the mapped file of an array, ``None`` for one in memory."""
    owner: object = array
    # views have their array as base, and a mapped array has its file
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner if isinstance(owner, ArrayPages) else None


def zeros_beside(array: np.ndarray, shape: int | tuple[int, ...]) -> np.ndarray:
    """Return zeros of an array's type, stored like the array: in memory, or in a mapped file."""
    pages = pages_of(array)
    # A spilled array grows in a file: memory would not be freed otherwise.
    return np.zeros(shape, array.dtype) if pages is None else pages.files.zeros(shape, array.dtype)


def evict_pages(pages: Sequence[mmap.mmap]) -> None:
    """Evict pages of mapped files from memory; they are read again when needed, with the last writes."""
    for mapped in pages:
        # The pages are shared with the file: nothing is lost.
        mapped.madvise(mmap.MADV_DONTNEED)


def mapped_bytes() -> int:
    """Return how many bytes of mapped files are resident; 0 where ``/proc`` is missing."""
    try:
        # Field 2 of statm: resident pages backed by files.
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[2]) * mmap.PAGESIZE
    except OSError:
        return 0


def pages_are_many(least: int) -> bool:
    """Return whether more than ``least`` bytes of mapped files are resident, and more than a quarter of the
    memory that is available.

    Pages that are evicted must be mapped again when they are needed: after each batch that took half of the
    time. They stay while memory is there, for the system takes them when it has none left.
    """
    mapped = mapped_bytes()
    return mapped > least and mapped > _available_bytes() // 4


def _available_bytes() -> int:
    """Return how many bytes the system could give to processes; 0 where ``/proc`` is missing."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").split("\n")
    except OSError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), 0)


@dataclass(frozen=True)
class SpillFiles:
    """Creates files in a directory (None: the system's directory for temporary files)."""

    directory: Path | None = None

    def write(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> SpilledRows:
        """Write batches and return them mapped from disk; STA-3051 when they cannot be written."""
        try:
            return _written(batches, schema, self.directory)
        except OSError as error:
            raise self._unwritten(error) from error

    def zeros(self, shape: int | tuple[int, ...], kind: np.dtype) -> np.ndarray:
        """Return an array in a mapped file of its own, with all its blocks allocated; STA-3051 when the disk
        is full.
        """
        return self._array(shape, np.zeros(0, kind))

    def copied(self, array: np.ndarray, size: int | None = None) -> np.ndarray:
        """Copy an array into a mapped file, with zeros behind it up to ``size`` first elements."""
        size = len(array) if size is None else size
        return self._array((size, *array.shape[1:]), np.ascontiguousarray(array))

    def _array(self, shape: int | tuple[int, ...], first: np.ndarray) -> np.ndarray:
        try:
            octets = int(np.prod(shape)) * first.itemsize
            pages = _mapped(octets, self.directory, first.reshape(-1).view(np.uint8))
        except OSError as error:
            raise self._unwritten(error) from error
        pages.files = self
        # The array refers to the mapping, which refers to the file: it is freed with the array.
        return np.ndarray(shape, first.dtype, buffer=pages)

    def _unwritten(self, error: OSError) -> PenstockError:
        where = self.directory or Path(tempfile.gettempdir())
        return PenstockError(
            "STA-3051",
            f"state cannot be written to {where}: {error.strerror or error}",
            hint="free space there, or SET 'state.spill.dir' to a directory with more space",
            kind=Kind.EXTERNAL,
            retriable=True,
            sqlstate="53100",
        )


def _mapped(size: int, directory: Path | None, first: np.ndarray) -> ArrayPages:
    """Map a new file of these bytes and zeros behind them, with all its blocks allocated: writing a page
    without a block on a full disk would kill the process.

    It is written, not only allocated. What comes in large writes is cached in large pages, where the file
    system has them, and a fault then maps up to 2 MB and not 4 KB. Random access to 512 MB took 1,000 faults
    after that, 120,000 before.
    """
    if directory is not None:
        make_private(directory)
    with tempfile.TemporaryFile(prefix="penstock-spill-", dir=directory, buffering=0) as file:
        os.posix_fallocate(file.fileno(), 0, size)
        piece: np.ndarray = np.empty(min(size, _PIECE), np.uint8)
        for start in range(0, size, _PIECE):
            # Copied first: of memory that nobody has touched yet the system writes small pages only.
            some, piece = first[start : start + _PIECE], piece[: size - start]
            piece[: some.size] = some
            piece[some.size :] = 0
            _write(file, piece)
        pages = ArrayPages(file.fileno(), size)
    # state is accessed by key: read-ahead would load pages that nobody needs
    pages.madvise(mmap.MADV_RANDOM)
    return pages


def _write(file: IO[bytes], octets: np.ndarray) -> None:
    # The system may write less than it is asked to, at most 2 GB at once.
    done = 0
    while done < octets.size:
        done += file.write(octets[done:].data)


def _written(batches: Sequence[pa.RecordBatch], schema: pa.Schema, directory: Path | None) -> SpilledRows:
    if directory is not None:
        make_private(directory)
    with tempfile.TemporaryFile(prefix="penstock-spill-", dir=directory) as file:
        with pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        file.flush()
        # 0: the whole file.
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    pages.madvise(mmap.MADV_RANDOM)
    # No copy: the batches are views of the mapping.
    reader = pa.ipc.open_file(pa.py_buffer(pages))
    return SpilledRows([reader.get_batch(i) for i in range(reader.num_record_batches)], len(pages), [pages])
