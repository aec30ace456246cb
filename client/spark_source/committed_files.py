"""The committed files of a table's directory, as the commit log names them."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.connectors.filesystem.commit_log import Commit, CommitLog, CommittedFile
from penstock.engine.connectors.filesystem.partition_paths import partition_values

FORMATS = ("parquet", "arrow")


@dataclass(frozen=True)
class FileToRead:
    """One file, by its path, and what stands in its directory's name: (column, text or None)."""

    path: str
    format: str
    rows: int | None
    length: int
    crc32: int | None
    partition: tuple[tuple[str, str | None], ...]


class CommittedFiles:
    """Reads the log of a directory. DAT-4622 where there is none, DAT-4623 for a format Spark's workers
    are not given.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._log = CommitLog(root)

    def last(self) -> int:
        """Return the number of the newest commit."""
        last = self._log.last()
        if last < 0:
            message = f"there is no commit log in {self.root}"
            hint = (
                "path is the directory a penstock job writes a filesystem table to; without a log, read "
                "the files: spark.read.parquet(..)"
            )
            raise PenstockError("DAT-4622", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42704")
        return last

    def commits(self, first: int, last: int) -> Iterator[Commit]:
        """Yield the commits ``first`` to ``last``, both included. DAT-4610 for one that is there no more."""
        for number in range(first, last + 1):
            yield self._log.read(number)

    def schema(self, ending: int | None) -> pa.Schema:
        """Return the columns of the table as a commit, by default the newest, writes them."""
        last = self.last()
        return _schema(self._log.read(last if ending is None else ending))

    def files(self, first: int, last: int) -> list[FileToRead]:
        """Return the files of commits, in the order they were committed."""
        return [self._file(commit, file) for commit in self.commits(first, last) for file in commit.files]

    def _file(self, commit: Commit, file: CommittedFile) -> FileToRead:
        kind = commit.written_as
        if kind.format not in FORMATS:
            message = f"commit {commit.number} of {self.root} is written as {kind.format}"
            hint = "write the table with 'format' = 'parquet' or 'arrow' for Spark to read it by commits"
            raise PenstockError("DAT-4623", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="0A000")
        found = partition_values(file.path)
        values = ((name, found.get(name.lower(), "")) for name in kind.partitioned_by)
        return FileToRead(
            str(self.root / file.path), kind.format, file.rows, file.length, file.crc32, tuple(values)
        )


def _schema(commit: Commit) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(commit.written_as.schema)))
