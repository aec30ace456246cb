"""The exactly-once sink of files in an object store, where nothing can be renamed.

Rows are staged in the job's checkpoint, not in the bucket. Once that is complete they become files, each
uploaded whole under its final name. Then the number of the checkpoint is written by compare-and-swap. Names
follow from writer and checkpoint: a commit that is repeated after a crash writes the same names again. So
whoever lists the directory sees each row once, whether it knows penstock or not.
"""

from __future__ import annotations

import itertools
import json
import os
import platform
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.registry import file_format, option, takes_changes, written_changes
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.epoch_target import EpochWriter, StagedForm
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.locations import ObjectUrl, parse_location
from penstock.engine.api.sink import SinkRequest
from penstock.engine.changelog.row_kinds import OPS, UPDATE_BEFORE
from penstock.engine.connectors.filesystem.arrow_filesystems import client_options
from penstock.engine.connectors.filesystem.sink import MAX_OPEN, FileLayout, codec_and_suffix
from penstock.engine.connectors.filesystem.source import csv_dialect
from penstock.engine.formats.file_task import CsvDialect
from penstock.engine.formats.file_writers import FileWriter, WriteTask, open_writer
from penstock.engine.storage.object_client import ConditionFailedError, ObjectClient, Version, client_of
from penstock.engine.storage.object_probe import check_conditions

EPOCHS = ".penstock.epochs"
"""The hidden directory of the marks: one object a writer, with its last checkpoint and its attempt."""
_ATTEMPTS = itertools.count(1)


class ObjectFilesTarget:
    """Commits the rows of epochs as files below a URL. DAT-55xx where the store cannot be used; DAT-5511 for
    one that ignores conditions of writes.

    Files are ``part-<job>-<operator>-<subtask>-<checkpoint>-<writer>-<n>``, so that those of one writer sort
    by checkpoint. An epoch is at hand as local files, one a partition, until it is uploaded.
    """

    def __init__(self, request: SinkRequest, client: ObjectClient | None = None) -> None:
        assert request.table is not None, "a filesystem sink has a table"
        table = request.table
        url = parse_location(table.options["path"])
        assert isinstance(url, ObjectUrl), "tables in directories have another sink"
        self._url = url
        self._client = client_of(url, client_options(table.options)) if client is None else client
        self._root = f"{url.prefix}/" if url.prefix else ""
        self._metrics = request.metrics
        with_ops = takes_changes(table)
        self.form = StagedForm.CHANGES if with_ops else StagedForm.INSERTS
        self._upserts = written_changes(table) == "upsert"
        self._format = file_format(table)
        self._layout = FileLayout(table, request.schema, with_ops)
        self._in_payload = bool(option(table, "debezium-json.schema-include"))
        self._dialect = csv_dialect(table) if self._format == "csv" else CsvDialect()
        self._codec, self._suffix = codec_and_suffix(table, self._format)
        self._rows_per_file = int(option(table, "sink.rolling.rows") or 0)
        self._bytes_per_file = int(option(table, "sink.rolling.bytes") or 0)
        self._job = _word(request.job_id, 24)
        # two attempts never write the same bytes: a lost answer would pass for success
        self._me = f"{platform.node()} {os.getpid()} {next(_ATTEMPTS)}"
        # what the marks of this attempt's writers say, and the versions that were read
        self._marks: dict[str, tuple[int, int, Version]] = {}
        # writers whose next commit may be one that an earlier attempt has begun
        self._unsure: set[str] = set()
        self._retries = 0

    def fence(self, writers: list[EpochWriter]) -> None:
        """Begin a new attempt in the mark of each writer; an earlier attempt then fails to write it."""
        check_conditions(self._client, f"{self._root}{EPOCHS}/")
        for writer in writers:
            while writer.name not in self._marks:
                found = self._read_mark(writer)
                epoch, attempt = (0, 0) if found is None else found[:2]
                try:
                    self._write_mark(writer, epoch, attempt + 1, None if found is None else found[2])
                except (FileExistsError, ConditionFailedError):
                    continue  # another attempt begins at this moment, and is fenced off in its turn
            self._unsure.add(writer.name)

    def last_committed(self, writer: EpochWriter) -> int:
        """Return the epoch of the mark, as the store has it. STA-3504 where a later attempt has begun: it is
        noticed before anything is uploaded.
        """
        found, known = self._read_mark(writer), self._marks.get(writer.name)
        if found is not None and known is not None and found[1] != known[1]:
            raise _fenced_off(self._url)
        return 0 if found is None else found[0]

    def commit(self, writer: EpochWriter, epoch: int, rows: Iterable[pa.RecordBatch]) -> None:
        """Upload the files of an epoch, then mark it."""
        with tempfile.TemporaryDirectory(prefix="penstock-upload-") as directory:
            upload = _Upload(self, Path(directory), f"{self._stem(writer)}-{epoch:06d}-{writer.name}")
            for batch in rows:
                upload.write(self._without_old_rows(batch))
            upload.finish()
        if writer.name in self._unsure:
            self._delete_others(writer, epoch, upload.keys)
        known = self._marks.get(writer.name)
        if known is None:
            raise _fenced_off(self._url)
        try:
            self._write_mark(writer, epoch, known[1], known[2])
        except (FileExistsError, ConditionFailedError) as error:
            raise _fenced_off(self._url) from error
        self._unsure.discard(writer.name)
        self._metrics.count("files_committed", len(upload.keys))
        retries = self._client.counts["retries"]
        self._metrics.count("object_store_retries", retries - self._retries)
        self._retries = retries

    def retire(self, writer: EpochWriter) -> None:
        """Delete the mark: no later attempt will ask for it."""
        self._client.delete(self._mark_key(writer))

    def close(self) -> None:
        """Nothing is open."""

    def open_file(self, path: Path) -> FileWriter:
        """Return a writer of one local file."""
        task = WriteTask(path, self._layout.stored, self._codec, self._dialect, self._in_payload)
        return open_writer(self._format, task)

    def is_full(self, writer: FileWriter, rows: int) -> bool:
        """Whether a file is to be completed before its epoch ends."""
        return 0 < self._rows_per_file <= rows or writer.bytes >= self._bytes_per_file

    def split(self, rows: pa.RecordBatch) -> Iterable[tuple[str, pa.RecordBatch]]:
        """Yield the partition directory and the stored columns of each partition."""
        return self._layout.split(rows)

    def key(self, directory: str, stem: str, number: int) -> str:
        """Return the key of a file."""
        return self._root + f"{directory}/{stem}-{number:04d}{self._suffix}".lstrip("/")

    def upload(self, key: str, path: Path) -> None:
        """Write a complete file as an object; readers see it from now on."""
        self._client.upload(key, path)
        failpoint("S5")

    def _without_old_rows(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """In upsert mode an update writes no row for the old value."""
        if not self._upserts:
            return rows
        return rows.filter(pc.not_equal(rows.column(0), OPS[UPDATE_BEFORE]))

    def _stem(self, writer: EpochWriter) -> str:
        return f"part-{self._job}-{_word(writer.operator_id, 8)}-{writer.subtask:04d}"

    def _delete_others(self, writer: EpochWriter, epoch: int, keys: list[str]) -> None:
        """Delete files of this epoch that an earlier attempt has uploaded under other names: the job had
        another name then, or the table other options.
        """
        own = f"-{epoch:06d}-{writer.name}-"
        for stored in self._client.below(self._url.prefix):
            if own in stored.key.rpartition("/")[2] and stored.key not in keys:
                self._client.delete(stored.key)

    def _mark_key(self, writer: EpochWriter) -> str:
        return f"{self._root}{EPOCHS}/{writer.name}"

    def _read_mark(self, writer: EpochWriter) -> tuple[int, int, Version] | None:
        try:
            data, version = self._client.get(self._mark_key(writer))
        except FileNotFoundError:
            return None
        try:
            fields = json.loads(data)
            return int(fields["epoch"]), int(fields["attempt"]), version
        except (ValueError, KeyError, TypeError) as error:
            raise PenstockError(
                "DAT-5514",
                f"{self._url.scheme}://{self._url.bucket}/{self._mark_key(writer)} is not as it was written",
                hint="restore the object, or write to another path",
                kind=Kind.EXTERNAL,
                sqlstate="58030",
            ) from error

    def _write_mark(self, writer: EpochWriter, epoch: int, attempt: int, before: Version | None) -> None:
        data = json.dumps({"epoch": epoch, "attempt": attempt, "by": self._me}).encode()
        key = self._mark_key(writer)
        version = (
            self._client.put_new(key, data) if before is None else self._client.replace(key, data, before)
        )
        self._marks[writer.name] = (epoch, attempt, version)


class _Upload:
    """The files of one epoch, each uploaded when it is complete and deleted here."""

    def __init__(self, target: ObjectFilesTarget, directory: Path, stem: str) -> None:
        self._target = target
        self._directory = directory
        self._stem = stem
        self._open: dict[str, tuple[FileWriter, Path, int]] = {}
        self._number = 0
        self.keys: list[str] = []

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows to the files of their partitions."""
        for directory, part in self._target.split(rows):
            if directory not in self._open:
                # the first key of a dict is the one opened first
                if len(self._open) >= MAX_OPEN:
                    self._complete(next(iter(self._open)))
                path = self._directory / str(len(self.keys) + len(self._open))
                self._open[directory] = (self._target.open_file(path), path, 0)
            writer, path, count = self._open[directory]
            writer.write(part)
            count += part.num_rows
            self._open[directory] = (writer, path, count)
            if self._target.is_full(writer, count):
                self._complete(directory)

    def finish(self) -> None:
        """Complete and upload every open file."""
        for directory in list(self._open):
            self._complete(directory)

    def _complete(self, directory: str) -> None:
        writer, path, _ = self._open.pop(directory)
        writer.finish()
        key = self._target.key(directory, self._stem, self._number)
        self._number += 1
        self._target.upload(key, path)
        self.keys.append(key)
        path.unlink()


def _word(text: str, length: int) -> str:
    """Return a text as part of a name: letters and digits only, cut to a length."""
    return re.sub(r"[^A-Za-z0-9]", "", text)[:length] or "job"


def _fenced_off(url: ObjectUrl) -> PenstockError:
    return PenstockError(
        "STA-3504",
        f"this attempt no longer writes to {url}: a later attempt of the job has begun",
        hint="another process has taken the job over, and continues it",
        kind=Kind.EXTERNAL,
    )
