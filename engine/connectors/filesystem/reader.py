"""Reads one split of files: slices decoded pieces into batches, adds metadata and partition columns, applies
the table's policy to bad records.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.registry import file_format, option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.secrets import redact_url
from penstock.catalog.types import STRING, to_arrow
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.connectors.filesystem.listing import FileListing, FileSplit
from penstock.engine.connectors.filesystem.partition_paths import partition_values
from penstock.engine.connectors.in_process.bad_records import BadRecords, RejectedRecord
from penstock.engine.formats.decoded_batch import BadRecord, Decoded, FileReader, batch_of
from penstock.engine.formats.text_conversion import from_text

_PIECES_PASSED = 64  # pieces that one poll may skip, because their rows were emitted before


class FilesystemReader:
    """A split reader over a format's reader.

    ``stored``: the columns of the format's reader, which may be more than the requested ones. ``position``:
    where to begin; records before its row were emitted earlier.
    """

    def __init__(
        self,
        reader: FileReader,
        stored: tuple[Field, ...],
        split: FileSplit,
        request: ScanRequest,
        listing: FileListing,
        position: Position,
    ) -> None:
        self._reader = reader
        self._split = split
        self._request = request
        self._policy = option(request.table, "on-error")
        self._next_row: int = position.get("row", 0)
        # where the format's reader can begin; ``row`` is how far rows were emitted after it
        self._anchor: dict[str, Any] | None = position.get("anchor")
        self._piece: Decoded | None = None
        self._emitted = 0
        self._ended = False
        schema = request.table.source_schema
        self._fields = tuple(schema[index] for index in request.columns)
        # nothing to add or reorder
        self._as_stored = stored == self._fields
        self._places = {field.name: column for column, field in enumerate(stored)}
        self._facts = _facts(request, split, listing, self._places)

    @property
    def ended(self) -> bool:
        return self._ended

    def poll(self, max_rows: int) -> pa.RecordBatch | Batch | None:
        # pass over pieces before the position, which a resumed reader decodes again
        for _ in range(_PIECES_PASSED):
            if self._piece is None and not self._ended:
                self._take(self._reader.next())
            if self._piece is None:
                return None
            # rows left to emit
            if self._emitted < self._piece.rows.num_rows:
                break
            self._pass_piece()
        # an empty batch: more is to come, but the task should handle its messages meanwhile
        if self._piece is None:
            return batch_of([pa.array([], to_arrow(field.type)) for field in self._fields], self._fields, 0)
        piece, begin = self._piece, self._emitted
        # the rows of one change stay in one batch
        end = piece.whole_records(min(begin + max_rows, piece.rows.num_rows))
        rows = self._complete(piece, begin, end)
        self._emitted = end
        self._anchor = piece.anchor
        if end == piece.rows.num_rows:
            self._pass_piece()
        else:
            self._next_row = piece.ordinal_of(end)
        return rows if piece.weights is None else Batch(rows, piece.weights[begin:end])

    def position(self) -> Position:
        return {"row": self._next_row} | ({"anchor": self._anchor} if self._anchor else {})

    def close(self) -> None:
        self._piece = None
        self._reader.close()

    def _take(self, piece: Decoded | None) -> None:
        self._piece, self._ended = piece, piece is None
        if piece is None:
            self._reader.close()
            return
        # earlier ones were reported before the position was stored
        bad = [record for record in piece.bad if record.ordinal >= self._next_row]
        if bad:
            self._reject(bad)
        self._emitted = piece.rows_before(self._next_row)

    def _pass_piece(self) -> None:
        """Drop a piece whose rows were all emitted, now or earlier."""
        if self._piece is not None:
            self._next_row = max(self._next_row, self._piece.first + self._piece.records)
            self._anchor = self._piece.anchor
        self._piece = None

    def _reject(self, bad: list[BadRecord]) -> None:
        # on-error: fail raises for the first record, skip counts, table counts and stores
        if self._policy == "fail":
            raise self._failure(min(bad, key=lambda record: record.ordinal))
        self._request.metrics.count("bad_records", len(bad))
        if self._policy == "table":
            name, path = self._request.table.name, self._split.path
            rows = [
                RejectedRecord(r.shown, path, self._split.split_id, r.ordinal, r.column, r.error) for r in bad
            ]
            self._request.services.get(BadRecords).add(name, rows)

    def _failure(self, record: BadRecord) -> PenstockError:
        # in a range the row number is unknown, the byte is not
        ranged = self._split.range is not None and record.byte is not None
        table = self._request.table
        header = file_format(table) == "csv" and option(table, "csv.header")
        location = f"byte {record.byte}" if ranged else f"row {record.ordinal + 1}"
        where = f" (byte {record.byte})" if record.byte is not None and not ranged else ""
        column = f" column {record.column}:" if record.column else ""
        return PenstockError(
            "DAT-4201",
            f"{redact_url(self._split.path)}, {location}{where}:{column} {record.error}",
            detail=f"record{' (the header is not counted)' if header and not ranged else ''}: {record.shown}",
            hint=self._hint(record),
            kind=Kind.EXTERNAL,
            sqlstate="22000",
        )

    def _hint(self, record: BadRecord) -> str:
        """Return what to write so that the statement succeeds: the type of a text, or to skip the record."""
        table, column = self._request.table, record.column
        # a text that is no text has another encoding
        place = table.schema.index_of(column) if column else None
        if place is None or table.schema[place].type == STRING:
            column = None
        # FROM 'orders.csv', read_csv(..): the table is called as its path
        if table.name == table.options.get("path"):
            call = f"read_{file_format(table)}('{table.name}', "
            typed = f"{call}types => '{column} STRING') reads it as text, " if column else ""
            return f"{typed}{call}ignore_errors => TRUE) skips the record"
        typed = f"declare {column} STRING in CREATE TABLE {table.name}" if column else "mend the file"
        return f"{typed}, or create the table with 'on-error' = 'skip' or 'table'"

    def _complete(self, piece: Decoded, begin: int, end: int) -> pa.RecordBatch:
        """Return rows begin .. end of a piece with the columns that are not stored in the file."""
        rows = piece.rows.slice(begin, end - begin)
        if self._as_stored:
            return rows
        arrays = [
            rows.column(self._places[field.name]) if fact is None else self._fill(fact, piece, begin, end)
            for field, fact in zip(self._fields, self._facts, strict=True)
        ]
        return batch_of(arrays, self._fields, end - begin)

    def _fill(self, fact: pa.Scalar | str, piece: Decoded, begin: int, end: int) -> pa.Array:
        # a constant of the file, else its row numbers
        if isinstance(fact, pa.Scalar):
            return pa.repeat(fact, end - begin)
        if piece.ordinals is None:
            return array_of(np.arange(piece.first + begin, piece.first + end))
        return array_of(piece.ordinals[begin:end])


def _facts(
    request: ScanRequest, split: FileSplit, listing: FileListing, stored: Collection[str]
) -> list[pa.Scalar | str | None]:
    """Return per requested column: ``None`` when the file stores it, else its constant value, or "row" for
    the ordinal.

    A column that is missing from the file is NULL; where that is an error, the format's reader has raised it
    already.
    """
    table = request.table
    keys = {column.name: column.key for column in table.metadata}
    partitions = partition_values(listing.relative(split.path))
    values = {
        "file.path": split.path,
        "file.name": split.path.rsplit("/", 1)[-1],
        "file.size": split.size,
        "file.modification-time": split.mtime_us,
    }
    facts: list[pa.Scalar | str | None] = []
    for field in (table.source_schema[index] for index in request.columns):
        # a directory's name; a stored column; the row number; a fact about the file
        if field.name in table.partitioned_by:
            facts.append(partition_value(field, partitions, split))
        elif field.name not in keys:
            facts.append(None if field.name in stored else pa.scalar(None, to_arrow(field.type)))
        elif keys[field.name] == "file.row":
            facts.append("row")
        else:
            facts.append(pa.scalar(values[keys[field.name]], to_arrow(field.type)))
    return facts


def partition_value(field: Field, partitions: Mapping[str, str | None], split: FileSplit) -> pa.Scalar:
    """Return the value of a partition column from a file's directories. DAT-4110 when there is none, or it is
    not of the column's type.
    """
    if field.name.lower() not in partitions:
        message = f"{redact_url(split.path)} is in no directory {field.name}=.."
        raise PenstockError(
            "DAT-4110",
            message,
            hint="PARTITIONED BY reads the column from the directory's name",
            kind=Kind.EXTERNAL,
        )
    text = partitions[field.name.lower()]
    try:
        return from_text(pa.array([text], pa.string()), field.type)[0]
    except pa.ArrowInvalid as error:
        message = f"{redact_url(split.path)}: directory {field.name}={text} is not a {field.type}"
        hint = f"rename the directory, or declare {field.name} STRING"
        raise PenstockError("DAT-4110", message, hint=hint, kind=Kind.EXTERNAL) from error
