"""Columns of self-describing files (parquet, arrow) as the columns a table declares: found by name, cast to the engine's types."""

from __future__ import annotations

import pyarrow as pa

from catalog.errors import Kind, PenstockError
from catalog.names import did_you_mean
from catalog.schema import Field
from catalog.types import to_arrow
from engine.formats.decoded import batch_of


class ColumnAdapter:
    """Maps the columns of one file to wanted fields. ``names``: the file's columns to read, in the order of the fields."""

    def __init__(self, path: str, file_schema: pa.Schema, wanted: tuple[Field, ...]) -> None:
        self._path = path
        self._wanted = wanted
        self._targets = [to_arrow(field.type) for field in wanted]
        self.names = [_find(path, file_schema, field) for field in wanted]
        types = [file_schema.field(name).type for name in self.names]
        self.exact = types == self._targets and len(set(self.names)) == len(self.names)
        for field, have, target in zip(wanted, types, self._targets, strict=True):
            if not _castable(have, target):
                message = f"{path}: column {field.name} holds {have}, not {field.type}"
                raise PenstockError("DAT-4205", message, hint="declare the column with the type the file has", kind=Kind.EXTERNAL)
        self._schema = pa.schema([pa.field(field.name, target) for field, target in zip(wanted, self._targets, strict=True)])

    def adapt(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of the file (whose columns may stand in any order) as the wanted columns. DAT-4206 when a value does not fit."""
        if not self._wanted:
            return batch_of([], (), batch.num_rows)
        if self.exact and batch.schema.names == self._schema.names:
            return pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
        arrays = [self._cast(batch.column(name), index) for index, name in enumerate(self.names)]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _cast(self, column: pa.Array, index: int) -> pa.Array:
        target = self._targets[index]
        if column.type == target:
            return column
        try:
            return column.cast(target, safe=not pa.types.is_timestamp(target))
        except pa.ArrowInvalid as error:
            field = self._wanted[index]
            message = f"{self._path}: a value of column {field.name} does not fit {field.type}"
            raise PenstockError("DAT-4206", message, detail=str(error)[:200], kind=Kind.EXTERNAL) from error


def _find(path: str, file_schema: pa.Schema, field: Field) -> str:
    """Return the file's name of a field: the exact one, else the one equal without case. DAT-4203 when there is none."""
    names = file_schema.names
    if field.name in names:
        return field.name
    for name in names:
        if name.lower() == field.name.lower():
            return name
    raise PenstockError("DAT-4203", f"{path} has no column {field.name}", hint=did_you_mean(field.name, names, others=True), kind=Kind.EXTERNAL)


def _castable(have: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_string(target):
        value = have.value_type if pa.types.is_dictionary(have) else have
        return pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value)
    try:
        pa.array([], have).cast(target)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False
    return True
