"""The filesystem source. Splits are files, or ranges of files where order does not matter; new files are
discovered by listing again.
"""

from __future__ import annotations

from penstock.catalog.connectors.connector import TableOptions
from penstock.catalog.connectors.filesystem import CHANGELOG_FORMATS, codec_name, split_suffixes
from penstock.catalog.connectors.registry import file_format, option, options_of
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.source import Position, ScanRequest, SplitReader
from penstock.engine.connectors.filesystem.changelog_files import SEQUENCE, ChangeSequence
from penstock.engine.connectors.filesystem.listing import FileListing, FileSplit
from penstock.engine.connectors.filesystem.reader import FilesystemReader
from penstock.engine.formats.file_task import UTF_8, CsvDialect, FileTask
from penstock.engine.formats.missing_columns import columns_of, file_schema, with_columns_there
from penstock.engine.formats.parquet import row_group_ranges
from penstock.engine.formats.registry import READERS

# large enough that opening a range is nothing beside reading it
RANGE_BYTES = 32 << 20
RANGE_ROWS = 1 << 20
# files whose columns are looked at before the first is read: each is a small read, far away perhaps
_CHECKED_AT_ONCE = 64


class FilesystemSource:
    """Lists and opens the files of one table. The files of a changelog are one split, whatever their number.

    With a watermark a file is one split, read in its order. Without one, large files are cut so that several
    subtasks can share them: plain csv and json files by bytes, parquet files by row groups.
    """

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._table = request.table
        self._format = file_format(request.table)
        self._listing = FileListing(request.table.options["path"], self._format, request.table.options)
        self._watch_ms = option(request.table, "source.monitor-interval")
        self._known: dict[str, FileSplit] = {}

    def splits(self) -> list[str]:
        begun = bool(self._known)
        files = self._files()
        if not begun:
            self._check_columns(files)
        return (
            [SEQUENCE]
            if self._in_sequence
            else sorted(split.split_id for file in files for split in self._cut(file))
        )

    def _files(self) -> list[FileSplit]:
        # a watched directory may not exist yet
        files = self._listing.files(missing_ok=self._watch_ms is not None)
        for file in files:
            # a file that grows after it was listed would lose or repeat rows
            _refuse_changed(self._known.setdefault(file.path, file), file)
        return files

    def _check_columns(self, files: list[FileSplit]) -> None:
        """Check that the files have the columns before any row is read. Files of later listings are checked
        when they are opened.
        """
        # csv and json show their columns only when they are read
        if self._format not in ("parquet", "arrow"):
            return
        nulls = option(self._table, "source.missing-columns") == "null"
        for file in [file for file in files if file.size][:_CHECKED_AT_ONCE]:
            task = self._task(file)
            columns_of(file_schema(task, self._format), file.path, task.wanted, nulls)

    def open(self, split_id: str, position: Position | None) -> SplitReader:
        if split_id == SEQUENCE:
            return ChangeSequence(
                self._files, self._open_file, self._watched_ms, self._request.clock, position
            )
        return self._open_file(split_id, position)

    def _open_file(self, split_id: str, position: Position | None) -> FilesystemReader:
        split = FileSplit.parse(split_id)
        task = self._task(split)
        try:
            if option(self._table, "source.missing-columns") == "null":
                task = with_columns_there(task, self._format)
            reader = READERS[self._format](task, (position or {}).get("anchor"))
        except PenstockError:
            check_unchanged(self._listing, split)  # another file under that name is why, if there is one
            raise
        try:
            # once it is open: what is opened is what was listed, whoever replaces the file from now on
            check_unchanged(self._listing, split)
        except PenstockError:
            reader.close()
            raise
        return FilesystemReader(reader, task.wanted, split, self._request, self._listing, position or {})

    def recall(self, split_ids: list[str]) -> None:
        # the sequence of a changelog has one id for ever; its reader checks each file
        for split_id in split_ids if not self._in_sequence else ():
            split = FileSplit.parse(split_id)
            now = self._listing.current(split.path)
            if now is not None:
                _refuse_changed(split, now)
            self._known[split.path] = split

    def discover_every_ms(self) -> int | None:
        return None if self._in_sequence else self._watched_ms

    @property
    def _watched_ms(self) -> int | None:
        return self._watch_ms if isinstance(self._watch_ms, int) else None

    @property
    def _in_sequence(self) -> bool:
        return self._format in CHANGELOG_FORMATS

    def rows_per_second(self) -> int:
        rate = option(self._table, "source.rows-per-second")
        return rate if isinstance(rate, int) else 0

    def _cut(self, file: FileSplit) -> list[FileSplit]:
        # cut only where order does not matter: no watermark, no row numbers, no monitored directory
        numbered = any(column.key == "file.row" for column in self._table.metadata)
        if self._table.watermark is not None or numbered or self._watch_ms is not None or not file.size:
            return [file]
        if self._format == "parquet":
            ranges = row_group_ranges(self._task(file), RANGE_ROWS)
        elif (
            self._format in ("csv", "json")
            and file.size > 2 * RANGE_BYTES
            # a file that is compressed or not in UTF-8 has no middle to begin at
            and self._task(file).is_plain
            # a quoted line end cannot be found from there
            and not self._multiline
        ):
            starts = range(0, file.size, RANGE_BYTES)
            ranges = [(start, min(start + RANGE_BYTES, file.size)) for start in starts]
        else:
            return [file]
        return (
            [file]
            if len(ranges) < 2
            else [FileSplit(file.path, file.size, file.mtime_us, cut) for cut in ranges]
        )

    @property
    def _multiline(self) -> bool:
        return self._format == "csv" and bool(option(self._table, "csv.multiline"))

    @property
    def _checks_all(self) -> bool:
        """Whether all columns are decoded, even those not requested. With bad records skipped, the set of
        rows must not depend on the query.
        """
        return self._format in ("csv", "json", "debezium-json") and option(self._table, "on-error") != "fail"

    def _compression(self, path: str) -> str | None:
        declared = option(self._table, "compression")
        # parquet compresses its own pages
        if self._format == "parquet" or declared == "none":
            return None
        return split_suffixes(path)[1] if declared == "auto" else str(declared)

    def _task(self, split: FileSplit) -> FileTask:
        start, end = split.range or (0, None)
        request = self._request
        physical = stored_fields(self._table)
        asked = tuple(self._table.source_schema[index] for index in request.columns)
        # metadata and partition columns are not in the files
        wanted = physical if self._checks_all else tuple(field for field in asked if field in physical)
        return FileTask(
            self._listing.filesystem,
            split.path,
            wanted,
            physical,
            self._compression(split.path),
            csv_dialect(self._table) if self._format == "csv" else CsvDialect(),
            start,
            end,
            # the predicate refers to positions of the requested columns
            request.predicate if wanted == asked else None,
            # small batches are sliced later: decoding few rows at a time costs more
            request.batch_max_rows if request.batch_max_rows >= 1024 else 32_768,
            bool(option(self._table, "debezium-json.schema-include")),
            request.skipping,
            reads_documents(self._table),
        )


def check_unchanged(listing: FileListing, split: FileSplit) -> None:
    """Refuse a file that is gone or has changed since it was listed. DAT-4107."""
    now = listing.current(split.path)
    if now is None:
        message = f"file {redact_url(split.path)} is gone, its rows were not all read"
        raise PenstockError("DAT-4107", message, kind=Kind.EXTERNAL)
    _refuse_changed(split, now)


def _refuse_changed(was: FileSplit, now: FileSplit) -> None:
    # size and time identify the content: checksums would read every file twice
    if (now.size, now.mtime_us) == (was.size, was.mtime_us):
        return
    what = f"was {was.size} B, is {now.size} B" if now.size != was.size else "same size, written again"
    hint = "write new files under a hidden name and rename them when they are complete"
    raise PenstockError(
        "DAT-4107",
        f"file {redact_url(now.path)} changed after it was read or listed ({what})",
        hint=hint,
        kind=Kind.EXTERNAL,
    )


def reads_documents(table: CatalogTable) -> bool:
    """Return whether JSON objects of a table's files may span lines."""
    return file_format(table) == "json" and bool(option(table, "json.multiline"))


def csv_dialect(table: CatalogTable) -> CsvDialect:
    """Return the csv dialect from a table's options."""
    return dialect_of(options_of(table))


def dialect_of(table: TableOptions) -> CsvDialect:
    """Return the csv dialect from the options of a filesystem table."""
    keys = ("csv.delimiter", "csv.quote", "csv.header", "csv.null-literal", "csv.multiline", "csv.encoding")
    delimiter, quote, header, null_literal, multiline, encoding = (table.option(key) for key in keys)
    return CsvDialect(
        str(delimiter),
        str(quote),
        bool(header),
        str(null_literal),
        bool(multiline),
        codec_name(str(encoding)) or UTF_8,
    )


def stored_fields(table: CatalogTable) -> tuple[Field, ...]:
    """Return the columns stored inside the files: neither metadata nor partition columns."""
    outside = {column.name for column in table.metadata} | set(table.partitioned_by)
    return tuple(field for field in table.source_schema if field.name not in outside)
