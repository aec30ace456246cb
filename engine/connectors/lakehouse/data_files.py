"""A data file of a lakehouse table: Parquet, with values that are the same in all its rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.secrets import redact_url
from penstock.catalog.types import Binary, to_arrow
from penstock.engine.api.scan_pruning import Skipping
from penstock.engine.api.source import Position
from penstock.engine.formats.decoded_batch import Decoded, batch_of
from penstock.engine.formats.file_task import FileTask
from penstock.engine.formats.missing_columns import with_columns_there
from penstock.engine.formats.registry import READERS
from penstock.engine.formats.text_conversion import from_text
from penstock.planner.expressions.nodes import Expression

# rows decoded at once
_BATCH_ROWS = 32_768


@dataclass(frozen=True)
class DataFile:
    """A file by its path below the table. ``values``: name and value, a text or an Arrow scalar, of columns
    that are not in the file.
    """

    path: str
    values: tuple[tuple[str, Any], ...] = ()


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
    ) -> None:
        values = {name.lower(): value for name, value in file.values}
        self._fields = fields
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
        try:
            task = with_columns_there(task, "parquet")
            self._reader = READERS["parquet"](task, position.get("anchor"))
        except PenstockError as error:
            raise _gone(path) if error.code == "DAT-4101" else error from error
        self._places = {field.name: place for place, field in enumerate(task.wanted)}
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
        while self._piece is None or self._done:
            self._piece = self._reader.next()
            if self._piece is None:
                return None
            self._anchor = self._piece.anchor
        piece = self._piece
        begin = piece.rows_before(self._next_row)
        rows = piece.rows.slice(begin, max_rows)
        self._next_row = piece.first + begin + rows.num_rows
        return self._complete(rows)

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
            rows.column(self._places[field.name])
            if field.name in self._places
            else pa.repeat(
                self._constants.get(field.name, pa.scalar(None, to_arrow(field.type))), rows.num_rows
            )
            for field in self._fields
        ]
        return batch_of(arrays, self._fields, rows.num_rows)


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
