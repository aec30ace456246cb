"""The committed files of a table's directory, as the commit log lists them, and their rows as Arrow batches.

The second half runs in Spark's workers: it applies filters and reads only the requested columns.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql.datasource import InputPartition

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.spark_source.spark_schema import as_spark_takes_it
from penstock.engine.connectors.filesystem.commit_log import Commit, CommitLog, CommittedFile
from penstock.engine.connectors.filesystem.partition_paths import partition_values

FORMATS = ("parquet", "arrow")


@dataclass(frozen=True)
class FileToRead:
    """One file with its path and the partition values of its directory's name: (column, text or None)."""

    path: str
    format: str
    rows: int | None
    length: int
    crc32: int | None
    partition: tuple[tuple[str, str | None], ...]


class CommittedFiles:
    """The commit log of a directory. DAT-4622 where there is none, DAT-4623 for a format that Spark's
    workers do not read.
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
        """Yield the commits ``first`` to ``last``, both included. DAT-4610 for one that no longer exists."""
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
        # the values come from the directory's name, k=1/
        values = ((name, found.get(name.lower(), "")) for name in kind.partitioned_by)
        return FileToRead(
            str(self.root / file.path), kind.format, file.rows, file.length, file.crc32, tuple(values)
        )


def _schema(commit: Commit) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(commit.written_as.schema)))


# rows of one Arrow batch for Spark
BATCH_ROWS = 1 << 16
# of committed bytes, per Spark task
PARTITION_BYTES = 32 << 20


@dataclass(frozen=True)
class FilePiece:
    """A file, or row groups of a parquet file."""

    file: FileToRead
    row_groups: tuple[int, ...] | None = None


class FilePieces(InputPartition):
    """The input of one Spark task."""

    def __init__(self, pieces: Sequence[FilePiece]) -> None:
        super().__init__(tuple(pieces))


def packed(files: Sequence[FileToRead]) -> list[InputPartition]:
    """Return tasks of about 32 MB each: small files together, large parquet files by row groups."""
    tasks: list[InputPartition] = []
    held: list[FilePiece] = []
    size_bytes = 0
    for file in files:
        # before Spark starts tasks: a missing file is one error, not one in each task
        _check_there(file)
        for piece, piece_bytes in _pieces(file):
            # a task gets at least one piece, also one that is larger than the limit
            if held and size_bytes + piece_bytes > PARTITION_BYTES:
                tasks.append(FilePieces(held))
                held, size_bytes = [], 0
            held.append(piece)
            size_bytes += piece_bytes
    return [*tasks, FilePieces(held)] if held else tasks


def _pieces(file: FileToRead) -> Iterator[tuple[FilePiece, int]]:
    # only parquet can be read in parts: by row groups
    if file.format != "parquet" or file.length <= PARTITION_BYTES:
        yield FilePiece(file), file.length
        return
    with pq.ParquetFile(file.path) as opened:
        groups = opened.metadata.num_row_groups
    for group in range(groups):
        # about: the mean of the row groups, for the packing only
        yield FilePiece(file, (group,)), file.length // groups


def batches(
    partition: InputPartition, schema: pa.Schema, predicate: pc.Expression | None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task that pass the predicate, in exactly ``schema``."""
    if partition.value is None:  # Spark asks for one task where there is nothing to read
        return
    for piece in partition.value:
        for batch in _scanned(piece, schema, predicate):
            if batch.num_rows:
                yield as_spark_takes_it(batch, schema)


def _scanned(
    piece: FilePiece, schema: pa.Schema, predicate: pc.Expression | None
) -> Iterator[pa.RecordBatch]:
    file = piece.file
    # again in the worker: the file may have been removed since planning
    _check_there(file)
    # Arrow files have no checksums of pages, unlike parquet
    if file.format == "arrow" and file.crc32 is not None:
        _check_content(file)
    # partition columns as an expression: the scanner fills them in and tests filters on them
    partition = pc.scalar(True)
    known = dict(file.partition)
    whole = schema
    for name, text in known.items():
        # not requested, but a pushed filter may test it
        if name not in schema.names:
            whole = whole.append(pa.field(name, pa.string()))
        kind = whole.field(name).type
        # k=1 is text in the path; the column may be a number or a date
        value = pa.scalar(text, pa.string()).cast(kind)
        partition &= pc.field(name).is_null() if text is None else pc.field(name) == value
    options = (
        ds.ParquetFragmentScanOptions(page_checksum_verification=True) if file.format == "parquet" else None
    )
    kinds = {"parquet": ds.ParquetFileFormat, "arrow": ds.IpcFileFormat}
    more = {"row_groups": list(piece.row_groups)} if piece.row_groups is not None else {}
    fragment = kinds[file.format]().make_fragment(
        file.path, pafs.LocalFileSystem(), partition_expression=partition, **more
    )
    yield from fragment.to_batches(
        schema=whole,
        columns=schema.names,
        filter=predicate,
        batch_size=BATCH_ROWS,
        fragment_scan_options=options,
        # Spark runs a task a core already
        use_threads=False,
    )


def _check_there(file: FileToRead) -> None:
    try:
        length = Path(file.path).stat().st_size
    except FileNotFoundError:
        length = None
    # a file of another length was replaced or cut: its rows are not those that were committed
    if length != file.length:
        found = "is there no more" if length is None else f"has {length} bytes"
        message = f"committed file {file.path} {found}; {file.length} bytes were committed"
        hint = "what was cleaned away cannot be read again: begin at a later startingCommit"
        raise PenstockError("DAT-4613", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="58030")


def _check_content(file: FileToRead) -> None:
    """Compare a file that has no checksums of its own with the log's checksum: DAT-4614."""
    found = 0
    with pa.OSFile(file.path) as opened:
        # 16 MB at a time
        while data := opened.read_buffer(1 << 24):
            found = zlib.crc32(data, found)
    if found != file.crc32:
        message = f"committed file {file.path} is damaged: crc32 {found:08x}, {file.crc32:08x} was committed"
        raise PenstockError("DAT-4614", message, kind=Kind.EXTERNAL, sqlstate="58030")
