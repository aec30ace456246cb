"""The exactly-once filesystem sink: rows go to staged files, a checkpoint prepares them, and its completion
publishes them.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from penstock.catalog.connectors.registry import file_format, option, takes_changes, written_changes
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Schema
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import STRING, DataType
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.operator import KeyedState
from penstock.engine.api.sink import Committable, SinkRequest, writer_name
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.row_kinds import OP_FIELD, UPDATE_BEFORE, change_rows, with_op_column
from penstock.engine.connectors.filesystem.arrow_filesystems import resolve
from penstock.engine.connectors.filesystem.commit_log import CommittedFile, WrittenAs
from penstock.engine.connectors.filesystem.commit_writer import SinkCommits
from penstock.engine.connectors.filesystem.compaction import Compaction, hidden_path
from penstock.engine.connectors.filesystem.partition_paths import partition_directory
from penstock.engine.connectors.filesystem.source import csv_dialect
from penstock.engine.connectors.filesystem.staged_files import StagedFiles
from penstock.engine.formats.file_merging import MergeTask
from penstock.engine.formats.file_task import CsvDialect
from penstock.engine.formats.file_writers import FileWriter, WriteTask, WrittenFile, open_writer
from penstock.engine.formats.variant_columns import StoredColumns

# partitions with an open file per subtask; the oldest file is completed beyond it
MAX_OPEN = 64
_SUFFIXES = {
    "csv": ".csv",
    "json": ".jsonl",
    "debezium-json": ".jsonl",
    "parquet": ".parquet",
    "arrow": ".arrow",
}
_CODEC_SUFFIXES = {"gzip": ".gz", "zstd": ".zst"}
# errors that may be gone at the next attempt
_DISK_TROUBLE = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.ESTALE, errno.EMFILE, errno.ENFILE)
# <subtask>-<process>-<n>.inprogress
_SUBTASK = re.compile(r"(\d+)-\d+-\d+\.")


@dataclass
class _OpenFile:
    """A staged file being written, and the partition directory of its final name."""

    writer: FileWriter
    staged: str
    directory: str
    rows: int = 0
    written: WrittenFile | None = None


class FilesystemSink:
    """Writes one subtask's share of a table's files.

    Staged names are ``<subtask>-<process>-<n>.inprogress`` in the hidden folder of job and operator. The
    process is part of the name because a fenced-off process may still write and delete its own files. Final
    names are ``part-<job>-<operator>-<subtask>-<checkpoint>-<folder>-<n>``.

    The folder's name is derived from the job's owner and the operator's id, so no other job shares it. The
    parts before it are for people and for the order of files, which follows checkpoints even after a
    savepoint.
    """

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None, "a filesystem sink has a table"
        table = request.table
        self._request = request
        self._format = file_format(table)
        self._with_ops = takes_changes(table)
        self._upserts = written_changes(table) == "upsert"
        self._layout = FileLayout(table, request.schema, self._with_ops)
        self._in_payload = bool(option(table, "debezium-json.schema-include"))
        self._dialect = csv_dialect(table) if self._format == "csv" else CsvDialect()
        self._codec, self._suffix = codec_and_suffix(table, self._format)
        self._rows_per_file = int(option(table, "sink.rolling.rows") or 0)
        self._bytes_per_file = int(option(table, "sink.rolling.bytes") or 0)
        root, folder, origin = (
            table_directory(table),
            writer_name(request.owner, request.operator_id),
            request.origin,
        )
        self._former = None if origin is None else writer_name(origin.owner, origin.operator_id)
        # the folder's name before format 1.4, for committables that do not name one
        early = (
            (request.job_id, request.operator_id) if origin is None else (origin.owner, origin.operator_id)
        )
        self._files = StagedFiles(root, folder, f"{_word(early[0], 24)}-{_word(early[1], 8)}")
        stem = f"part-{_word(request.job_id, 24)}-{_word(request.operator_id, 8)}"
        self._stem = f"{stem}-{request.subtask:04d}"
        self._compacts = bool(option(table, "auto-compaction"))
        self._commits = SinkCommits(
            root, self._layout.written_as(table), request, self._compaction(table, stem)
        )
        self._open: dict[str, _OpenFile] = {}
        self._complete: list[_OpenFile] = []
        self._number = 0
        # staged names that will be committed again, perhaps later and by another subtask: no new file may
        # have one
        self._pending: set[str] = set()

    def _compaction(self, table: CatalogTable, stem: str) -> Compaction:
        """Return what merges files, also where none are to be merged any more: a checkpoint may hold some."""
        target = option(table, "compaction.file-size")
        written = WriteTask(self._files.root, self._layout.stored, self._codec, self._dialect)
        return Compaction(
            self._files.root,
            self._files.folder,
            self._request.subtask,
            (stem, self._suffix),
            self._bytes_per_file if target is None else int(target),
            MergeTask(self._format, written),
        )

    def keyed_states(self) -> dict[str, KeyedState]:
        return {}

    def on_restored(self) -> None:
        """Nothing: restored items have been committed."""

    def recover(self, pending: list[Committable]) -> None:
        with self._files.report_unwritable():
            self._files.open()
        self._commits.start()
        # staged files of the restored checkpoint: they will be committed
        request, restored = self._request, {(item.get("folder"), item["staged"]) for item in pending}
        self._pending = {item["staged"] for item in pending if self._files.is_own(item)}
        own = {self._files.folder}
        if self._former is not None and request.origin is not None and request.origin.owner == request.owner:
            own.add(self._former)  # of this job, whose query has changed
        for folder in own:
            for name in self._files.leftovers(folder):
                match = _SUBTASK.match(name)
                if (
                    (folder, name) not in restored
                    and match
                    # staged files of a lost subtask fall to the one with its remainder
                    and int(match[1]) % request.parallelism == request.subtask
                ):
                    self._files.discard(name, folder)

    def write(self, batch: Batch) -> None:
        rows = self._changes(batch) if self._with_ops else batch.rows
        if not rows.num_rows:  # changes that cancel out are no reason for a file
            return
        with self._files.report_unwritable():
            self._write(rows)

    def _write(self, batch: pa.RecordBatch) -> None:
        for directory, rows in self._layout.split(batch):
            file = self._file(directory)
            file.writer.write(rows)
            file.rows += rows.num_rows
            full = 0 < self._rows_per_file <= file.rows
            # rolled: complete now, published with the next checkpoint
            if full or file.writer.bytes >= self._bytes_per_file:
                self._finish(directory)

    def _changes(self, batch: Batch) -> pa.RecordBatch:
        """Return rows with their ops. In upsert mode an update emits no row for the old value."""
        rows, ops = change_rows(batch, self._request.upsert_key)
        if self._upserts:
            # upsert: the +U replaces the row, so the -U is not written
            written = ops != UPDATE_BEFORE
            rows, ops = rows.filter(array_of(written)), ops[written]
        return with_op_column(rows, ops)

    def prepare(self, checkpoint_id: int) -> list[Committable]:
        with self._files.report_unwritable():
            return self._prepare(checkpoint_id)

    def _prepare(self, checkpoint_id: int) -> list[Committable]:
        # a checkpoint ends every open file: its rows must be in files that are complete
        for directory in list(self._open):
            self._finish(directory)
        items, number = [], 0
        for file in self._complete:
            stem = f"{self._stem}-{checkpoint_id:06d}-{self._files.folder}"
            final, number = self._files.free_name(file.directory, stem, self._suffix, number)
            assert file.written is not None, "a file is complete before it is prepared"
            facts = {
                "rows": file.rows,
                "bytes": file.written.length,
                "crc32": file.written.crc32,
                "checkpoint": checkpoint_id,
            }
            items.append({"folder": self._files.folder, "staged": file.staged, "final": final, **facts})
            number += 1
        self._complete = []
        if items:
            failpoint("S2")
            # the names must be durable before the checkpoint that lists them
            self._files.sync()
        return items

    def commit(self, items: list[Committable]) -> None:
        if not items:
            return
        with self._files.report_unwritable():
            self._commit(items)

    def _commit(self, items: list[Committable]) -> None:
        items = [self._located(item) for item in items]
        # the last entry before any of these files is published: no entry up to it can name them
        known, published = self._commits.begin(), 0
        for item in items:
            published += self._files.publish(item, self._is_noted)
            failpoint("S5")
        # the renames must be durable before the log names the files
        self._files.sync_published([item["final"] for item in items])
        if not self._compacts:
            self._request.metrics.count("files_committed", published)
        files = [self._committed(item) for item in items]
        self._commits.published(
            # -1: some were published before, so an earlier entry may name them
            int(items[0].get("checkpoint", 0)),
            files,
            known if published == len(items) else -1,
        )

    def _located(self, item: Committable) -> Committable:
        """Return a committable with the name to commit it under. That is its final name, or a hidden one
        until all subtasks have committed theirs and files are merged.
        """
        hidden = {**item, "final": hidden_path(self._files.folder_of(item), item["final"])}
        usual, other = (hidden, item) if self._compacts else (item, hidden)
        there = (
            self._files.staged(item["staged"], self._files.folder_of(item)),
            self._files.root / usual["final"],
        )
        # committed before auto-compaction was changed: under the other name
        if not any(path.exists() for path in there) and (
            (self._files.root / other["final"]).exists() or self._is_noted(other)
        ):
            return other
        return usual

    def _is_noted(self, item: Committable) -> bool:
        """Whether the log names an item as published. Items of checkpoints of earlier versions lack the
        length or checksum to tell.
        """
        return "bytes" in item and "crc32" in item and self._commits.notes(self._committed(item))

    def _committed(self, item: Committable) -> CommittedFile:
        """Return the log's record of a file; checkpoints of earlier versions store only its rows."""
        length = item.get("bytes")
        # the length of the published file, which is whole
        if length is None:
            length = (self._files.root / item["final"]).stat().st_size
        return CommittedFile(item["final"], item["rows"], length, item.get("crc32"))

    def completed(self, checkpoint_id: int) -> None:
        with self._files.report_unwritable():
            self._commits.completed(checkpoint_id)

    def abort(self, items: list[Committable]) -> None:
        for item in items:
            if self._files.is_own(item):
                self._files.discard(item["staged"])

    def ready(self) -> bool:
        return True

    def end(self) -> None:
        """Nothing: the final checkpoint prepares the open files."""

    def close(self) -> None:
        open_files, complete = self._open.values(), self._complete
        self._open, self._complete = {}, []
        # called in reverse: whatever the disk says to the first, the last of them lets others write again
        with contextlib.ExitStack() as closing:
            closing.callback(self._files.tidy, *(() if self._former is None else (self._former,)))
            closing.callback(self._commits.close)
            # rows after the last checkpoint: a restored job reads them again
            for staged in complete:
                closing.callback(self._files.discard, staged.staged)
            for file in open_files:
                closing.callback(file.writer.discard)

    def _file(self, directory: str) -> _OpenFile:
        """Return the open file of a partition. Beyond 64 open files the oldest is completed."""
        file = self._open.get(directory)
        if file is None:
            # the first key of a dict is the one opened first
            if len(self._open) >= MAX_OPEN:
                self._finish(next(iter(self._open)))
            staged, self._number = self._files.reserve(
                f"{self._request.subtask}-{os.getpid()}", self._number, self._pending
            )
            task = WriteTask(
                self._files.staged(staged), self._layout.stored, self._codec, self._dialect, self._in_payload
            )
            self._number += 1
            try:
                file = self._open[directory] = _OpenFile(open_writer(self._format, task), staged, directory)
            except BaseException:
                self._files.discard(staged)
                raise
        return file

    def _finish(self, directory: str) -> None:
        file = self._open.pop(directory)
        try:
            file.written = file.writer.finish()
        except OSError:
            file.writer.discard()  # it is not whole, and nobody else knows of it
            raise
        self._complete.append(file)


class FileLayout:
    """Which columns of the rows are stored in files, and which in directory names. ``with_ops``: the first
    column is the op.
    """

    def __init__(self, table: CatalogTable, schema: Schema, with_ops: bool = False) -> None:
        names = [OP_FIELD.name] * with_ops + [field.name for field in table.physical_fields]
        self._partitions = [names.index(name) for name in table.partitioned_by]
        self._stored = [index for index in range(len(names)) if index not in self._partitions]
        self._names = names
        arrow = pa.schema([*[OP_FIELD] * with_ops, *schema.to_arrow()])
        self._whole = pa.schema([pa.field(name, arrow.field(index).type) for index, name in enumerate(names)])
        kinds: list[DataType] = [*[STRING] * with_ops, *(field.type for field in schema.fields)]
        self._columns = StoredColumns(
            [names[index] for index in self._stored],
            [kinds[index] for index in self._stored],
            file_format(table),
        )
        self.stored = self._columns.schema

    def written_as(self, table: CatalogTable) -> WrittenAs:
        """Return how files are written, as the commit log records it."""
        encoded = base64.b64encode(self._whole.serialize().to_pybytes()).decode()
        return WrittenAs(file_format(table), encoded, table.partitioned_by, written_changes(table))

    def split(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield (directory, stored columns) for each partition in the rows."""
        stored = self._columns.of([rows.column(index) for index in self._stored])
        if not self._partitions:
            yield "", stored
            return
        # distinct combinations of partition values, as rows of dictionary codes; NULL has a code of its own
        encoded = [rows.column(index).dictionary_encode("encode") for index in self._partitions]
        codes = np.stack([column.indices.to_numpy() for column in encoded], axis=1)
        distinct, numbers = np.unique(codes, axis=0, return_inverse=True)
        for number, combination in enumerate(distinct):
            values = [
                column.dictionary.slice(int(code), 1)
                for column, code in zip(encoded, combination, strict=True)
            ]
            names = [self._names[index] for index in self._partitions]
            yield (
                partition_directory(names, values),
                stored.take(array_of(np.flatnonzero(numbers.ravel() == number))),
            )


def codec_and_suffix(table: CatalogTable, kind: str) -> tuple[str | None, str]:
    """Return the codec of a table's new files and their suffix."""
    suffix = _SUFFIXES[kind]
    # parquet compresses pages, text formats the whole file
    if kind == "parquet":
        codec = str(option(table, "sink.parquet.compression"))
        return (None if codec == "none" else codec), suffix
    declared = str(option(table, "compression"))
    # Arrow files are read at random, so they are not compressed as a whole
    if kind == "arrow" or declared in ("auto", "none"):
        return None, suffix
    return declared, suffix + _CODEC_SUFFIXES[declared]


def table_directory(table: CatalogTable) -> Path:
    """Return the local directory of a table that is written. DAT-4601 for a file, DAT-4602 for a URL that is
    not local.
    """
    path = table.options["path"]
    filesystem, inside = resolve(path)
    if not isinstance(filesystem, pafs.LocalFileSystem):
        raise PenstockError(
            "DAT-4602",
            f"{redact_url(path)} cannot be written: only directories and object stores can",
            hint="write a directory, or a URL of s3://, gs:// or az://",
            kind=Kind.EXTERNAL,
        )
    root = Path(inside)
    if root.exists() and not root.is_dir():
        raise PenstockError(
            "DAT-4601",
            f"{path} is a file; a table is written into a directory",
            hint="give another path",
            kind=Kind.EXTERNAL,
        )
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"the directory {path} cannot be made: {(error.strerror or str(error)).lower()}"
        hint = "give another path"
        raise PenstockError(
            "DAT-4603", message, hint=hint, kind=Kind.EXTERNAL, retriable=error.errno in _DISK_TROUBLE
        ) from error
    return root


def _word(text: str, length: int) -> str:
    """Return a text as part of a file name: letters and digits only, cut to a length."""
    return re.sub(r"[^A-Za-z0-9]", "", text)[:length] or "job"
