"""A data file of a lakehouse table: Parquet, with values that are the same in all its rows."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as pafs

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.secrets import redact_url
from penstock.catalog.types import Binary, to_arrow
from penstock.engine.api.scan_pruning import Skipping
from penstock.engine.api.source import Position
from penstock.engine.formats.decoded_batch import Decoded, batch_of, empty_columns
from penstock.engine.formats.file_task import FileTask
from penstock.engine.formats.missing_columns import file_schema, with_columns_there
from penstock.engine.formats.registry import READERS
from penstock.engine.formats.text_conversion import from_text
from penstock.planner.expressions.nodes import Expression

# rows decoded at once
_BATCH_ROWS = 32_768


@dataclass(frozen=True)
class DataFile:
    """A file by its path below the table. ``values``: name and value, a text or an Arrow scalar, of columns
    that are not in the file. ``deleted``: the positions of rows that are deleted, or where they are recorded.
    """

    path: str
    values: tuple[tuple[str, Any], ...] = ()
    deleted: Any = dataclasses.field(default=None, compare=False)


@dataclass(frozen=True)
class RowChoice:
    """Which rows of a file are read, by ascending positions: all but those ``left_out``; where ``only`` is
    set, none but those.
    """

    left_out: np.ndarray | None = None
    only: np.ndarray | None = None

    def of(self, rows: pa.RecordBatch, first: int) -> pa.RecordBatch:
        """Return the chosen ones of rows that begin at a position."""
        chosen = self.only if self.only is not None else self.left_out
        if chosen is None:
            return rows
        begin, end = np.searchsorted(chosen, [first, first + rows.num_rows])
        places = chosen[begin:end] - first
        if self.only is None:
            places = np.delete(np.arange(rows.num_rows), places)
        # a batch of no columns still counts rows
        return rows.take(pa.array(places)) if rows.num_columns else empty_columns(len(places))


ALL_ROWS = RowChoice()
# a column as a file has it, by the file's schema
StoredField = Callable[[Field, pa.Schema], Field]


class DataFileReader:
    """Reads one file from a position on: the requested columns, NULL for those it lacks.

    DAT-5310 when the file is gone. ``predicate`` reads positions of ``fields``, and only serves to skip.
    """

    def __init__(
        self,
        filesystem: pafs.FileSystem,
        path: str,
        file: DataFile,
        fields: tuple[Field, ...],
        position: Position,
        predicate: Expression | None = None,
        skipping: Skipping | None = None,
        rows: RowChoice = ALL_ROWS,
        stored_as: StoredField | None = None,
    ) -> None:
        values = {name.lower(): value for name, value in file.values}
        self._fields = fields
        self._rows = rows
        stored = tuple(field for field in fields if field.name.lower() not in values)
        task = FileTask(
            filesystem,
            path,
            stored,
            stored,
            predicate=predicate if stored == fields else None,
            batch_rows=_BATCH_ROWS,
            skipping=skipping,
        )
        names = {field.name: field.name for field in stored}
        try:
            if stored_as is not None:
                there = file_schema(task, "parquet")
                own = tuple(stored_as(field, there) for field in stored)
                names = {field.name: mine.name for field, mine in zip(stored, own, strict=True)}
                # what is learned at run time goes by the names of the table
                task = dataclasses.replace(
                    task, wanted=own, declared=own, skipping=skipping if own == stored else None
                )
            task = with_columns_there(task, "parquet")
            self._reader = READERS["parquet"](task, position.get("anchor"))
        except PenstockError as error:
            raise _gone(path) if error.code == "DAT-4101" else error from error
        there_at = {field.name: place for place, field in enumerate(task.wanted)}
        self._places = {name: there_at[own] for name, own in names.items() if own in there_at}
        self._constants = {
            field.name: constant(field, values[field.name.lower()], path)
            for field in fields
            if field.name.lower() in values
        }
        self._as_stored = task.wanted == fields
        self._next_row: int = position.get("row", 0)
        self._anchor = position.get("anchor")
        self._piece: Decoded | None = None

    def poll(self, max_rows: int) -> pa.RecordBatch | None:
        """Return up to ``max_rows`` rows, ``None`` at the end of the file."""
        while True:
            while self._piece is None or self._done:
                self._piece = self._reader.next()
                if self._piece is None:
                    return None
                self._anchor = self._piece.anchor
            piece = self._piece
            begin = piece.rows_before(self._next_row)
            rows = piece.rows.slice(begin, max_rows)
            self._next_row = piece.first + begin + rows.num_rows
            kept = self._rows.of(rows, piece.first + begin)
            # none of these may be chosen
            if kept.num_rows:
                return self._complete(kept)

    def position(self) -> Position:
        """Return the position after the last returned row."""
        return {"row": self._next_row} | ({"anchor": self._anchor} if self._anchor else {})

    def close(self) -> None:
        """Close the file."""
        self._piece = None
        self._reader.close()

    @property
    def _done(self) -> bool:
        piece = self._piece
        return piece is None or self._next_row >= piece.first + piece.records

    def _complete(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        if self._as_stored:
            return rows
        arrays = [
            _named_as(rows.column(self._places[field.name]), to_arrow(field.type))
            if field.name in self._places
            else pa.repeat(
                self._constants.get(field.name, pa.scalar(None, to_arrow(field.type))), rows.num_rows
            )
            for field in self._fields
        ]
        return batch_of(arrays, self._fields, rows.num_rows)


class _Renamed:
    """The buffers of an array with another type, of the same layout and other names."""

    def __init__(self, array: pa.Array, kind: pa.DataType) -> None:
        self._array, self._kind = array, kind

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._kind.__arrow_c_schema__(), self._array.__arrow_c_array__()[1]


def _named_as(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column whose rows have the names of a type, for a file has others."""
    return array if array.type == kind else pa.array(_Renamed(array, kind))


def constant(field: Field, value: Any, path: str) -> pa.Scalar:
    """Return the value of a column that is the same in all rows of a file. DAT-5306 when it is of another
    type.
    """
    if isinstance(field.type, Binary) and value is not None and not _is_null(value):
        raise PenstockError(
            "DAT-5305",
            f"the table of {redact_url(path)} is partitioned by {field.name}, of {field.type}: writers spell "
            "such values differently",
            hint=f"leave {field.name} out; or write the table's rows to one that is partitioned otherwise",
            kind=Kind.EXTERNAL,
            sqlstate="0A000",
        )
    try:
        if isinstance(value, pa.Scalar):
            return value.cast(to_arrow(field.type))
        return from_text(pa.array([value], pa.string()), field.type)[0]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise PenstockError(
            "DAT-5306",
            f"{redact_url(path)}: the partition value {value} of column {field.name} is no {field.type}",
            hint="declare the column as the table has it",
            kind=Kind.EXTERNAL,
        ) from error


def _is_null(value: Any) -> bool:
    return isinstance(value, pa.Scalar) and not value.is_valid


def _gone(path: str) -> PenstockError:
    return PenstockError(
        "DAT-5310",
        f"data file {redact_url(path)} is gone, its rows were not all read",
        hint="VACUUM or an expired snapshot removed it: read a newer version, and keep files longer than a "
        "reader may be behind",
        kind=Kind.EXTERNAL,
    )
