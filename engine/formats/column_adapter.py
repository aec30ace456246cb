"""Columns of self-describing files (parquet, arrow) as the columns a table declares: found by name, cast to the engine's types."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

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
        types = self._types = [file_schema.field(name).type for name in self.names]
        self.exact = types == self._targets and len(set(self.names)) == len(self.names)
        for field, have, target in zip(wanted, types, self._targets, strict=True):
            if not _castable(have, target):
                message = f"{path}: column {field.name} holds {have}, not {field.type}"
                raise PenstockError("DAT-4205", message, hint="declare the column with the type the file has", kind=Kind.EXTERNAL)
        self._schema = pa.schema([pa.field(field.name, target) for field, target in zip(wanted, self._targets, strict=True)])

    @property
    def paths(self) -> list[str]:
        """What to read of the file, each path once: a column, or the fields wanted of one with more."""
        pairs = zip(self.names, self._types, self._targets, strict=True)
        return list(dict.fromkeys(path for name, have, target in pairs for path in _paths(name, have, target)))

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
            return _cast(column, target)
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


def _cast(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Return a column as the type wanted: rows field by field, by their names, for a file may have more of them, or in another order."""
    if not pa.types.is_struct(target) or column.type == target:
        return column.cast(target, safe=not pa.types.is_timestamp(target))
    places = _places(column.type, target)
    parts = [_cast(pc.struct_field(column, place), field.type) for place, field in zip(places, target, strict=True)]
    missing = pc.is_null(column) if column.null_count else None
    return pa.StructArray.from_arrays(parts, fields=list(target), mask=missing)


def _places(have: pa.StructType, target: pa.StructType) -> list[int]:
    """Where the fields wanted stand in a file's rows, -1 where there is none: by the exact name, else without case."""
    names = [field.name for field in have]
    folded = [name.lower() for name in names]
    found = []
    for field in target:
        exact = names.index(field.name) if field.name in names else -1
        found.append(folded.index(field.name.lower()) if exact < 0 and field.name.lower() in folded else exact)
    return found


def _paths(name: str, have: pa.DataType, target: pa.DataType) -> list[str]:
    if not pa.types.is_struct(target) or not pa.types.is_struct(have):
        return [name]
    inside = [(have.field(place), field) for place, field in zip(_places(have, target), target, strict=True)]
    if len(inside) == have.num_fields or any("." in field.name for field, _ in inside):
        return [name]
    return [path for mine, wanted in inside for path in _paths(f"{name}.{mine.name}", mine.type, wanted.type)]


def _castable(have: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_string(target):
        value = have.value_type if pa.types.is_dictionary(have) else have
        return pa.types.is_string(value) or pa.types.is_large_string(value) or pa.types.is_string_view(value)
    if pa.types.is_struct(target) and pa.types.is_struct(have):
        places = _places(have, target)
        return all(place >= 0 and _castable(have.field(place).type, field.type) for place, field in zip(places, target, strict=True))
    try:
        pa.array([], have).cast(target)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False
    return True
