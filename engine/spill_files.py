"""SpillFiles: rows of state written to disk and read back through mapped memory. A file has no name from before its first byte, so none is left."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from catalog.errors import Kind, PenstockError


@dataclass
class SpilledRows:
    """Record batches whose columns lie in mapped files; ``size`` is the bytes of those. Their files are gone when nothing refers to them."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    size: int = 0
    _maps: list[mmap.mmap] = field(default_factory=list)

    def add(self, other: SpilledRows) -> None:
        """Go on with the rows of another."""
        self.batches = [*self.batches, *other.batches]
        self.size += other.size
        self._maps = [*self._maps, *other._maps]

    def let_go_of_pages(self) -> None:
        """Give back the memory of pages that were read; they are read again when they are asked for."""
        for pages in self._maps:
            pages.madvise(mmap.MADV_DONTNEED)


@dataclass(frozen=True)
class SpillFiles:
    """Makes files in a directory (None: that of the system for temporary files)."""

    directory: Path | None = None

    def write(self, batches: Sequence[pa.RecordBatch], schema: pa.Schema) -> SpilledRows:
        """Return batches as they are read from disk; STA-3051 when they cannot be written."""
        try:
            return _written(batches, schema, self.directory)
        except OSError as error:
            where = self.directory or Path(tempfile.gettempdir())
            raise PenstockError(
                "STA-3051",
                f"state cannot be written to {where}: {error.strerror or error}",
                hint="make room there, or SET 'state.spill.dir' to a directory with more of it",
                kind=Kind.EXTERNAL,
                retriable=True,
                sqlstate="53100",
            ) from error


def _written(batches: Sequence[pa.RecordBatch], schema: pa.Schema, directory: Path | None) -> SpilledRows:
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(prefix="penstock-spill-", dir=directory) as file:
        with pa.ipc.new_file(file, schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
        file.flush()
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    pages.madvise(mmap.MADV_RANDOM)
    reader = pa.ipc.open_file(pa.py_buffer(pages))
    return SpilledRows([reader.get_batch(i) for i in range(reader.num_record_batches)], len(pages), [pages])
