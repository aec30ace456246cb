"""Columns of self-describing files (parquet, arrow) as the declared columns: matched by name, converted by
the table of types.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field
from penstock.catalog.types import DataType, Row, to_arrow
from penstock.engine.formats.decoded_batch import batch_of
from penstock.engine.formats.file_types import (
    Fit,
    fit,
    is_checked,
    matching,
    read_as,
    row_positions,
    type_name,
)


class ColumnAdapter:
    """Maps the columns of one file to wanted fields. ``names``: the file's columns to read, in the order
    of the fields.
    """

    def __init__(self, path: str, file_schema: pa.Schema, wanted: tuple[Field, ...]) -> None:
        self._path = path
        self._wanted = wanted
        self._targets = [to_arrow(field.type) for field in wanted]
        columns = [file_column(path, file_schema, field) for field in wanted]
        self.names = [column.name for column, _ in columns]
        self._types = [column.type for column, _ in columns]
        # maps and VARIANT are always converted
        self.exact = self._types == self._targets and not any(is_checked(field.type) for field in wanted)
        self._schema = pa.schema(
            [pa.field(field.name, target) for field, target in zip(wanted, self._targets, strict=True)]
        )

    @property
    def paths(self) -> list[str]:
        """The paths to read from the file, each once: a column, or the requested fields of a ROW column."""
        triples = zip(self.names, self._types, self._wanted, strict=True)
        # ROW<a, b> of a struct with more fields: read only ``r.a`` and ``r.b``
        return list(
            dict.fromkeys(path for name, have, field in triples for path in _paths(name, have, field.type))
        )

    def adapt(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a batch of the file as the requested columns, whatever their order in the file. DAT-4206
        when a value does not fit.
        """
        # SELECT COUNT(*): only the number of rows
        if not self._wanted:
            return batch_of([], (), batch.num_rows)
        # nothing to convert or reorder; parquet returns columns in the order of the file
        if self.exact and batch.schema.names == self._schema.names:
            return pa.RecordBatch.from_arrays(batch.columns, schema=self._schema)
        arrays = [
            self._read(batch.column(name), field)
            for name, field in zip(self.names, self._wanted, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def fault(self, batch: pa.RecordBatch) -> PenstockError | None:
        """Describe the fault of an invalid batch: the first column whose values violate its type."""
        # the column at fault is named, which Arrow's error for the whole batch does not do
        for name, field in zip(self.names, self._wanted, strict=True):
            try:
                batch.column(name).validate(full=True)
            except pa.ArrowInvalid as error:
                return self._misfit(field, error)
        return None

    def _read(self, column: pa.Array, field: Field) -> pa.Array:
        try:
            return read_as(column, field.type)
        except pa.ArrowInvalid as error:
            raise self._misfit(field, error) from error

    def _misfit(self, field: Field, error: pa.ArrowInvalid) -> PenstockError:
        message = f"{self._path}: a value of column {field.name} does not fit {field.type}"
        return PenstockError(
            "DAT-4206", message, detail=str(error)[:200], kind=Kind.EXTERNAL, sqlstate="22000"
        )


def file_column(path: str, file_schema: pa.Schema, field: Field) -> tuple[pa.Field, Fit]:
    """Return the file's column of a field, and its fit.

    DAT-4203 where there is none, DAT-4208 where several have its name without case, DAT-4205 where its type
    cannot be read as the field's.
    """
    column = file_schema.field(the_one(path, file_schema.names, field))
    fitting = fit(column.type, field.type)
    if fitting is None:
        message = f"{path}: column {field.name} holds {type_name(column.type)}, not {field.type}"
        hint = f"declare it {type_name(column.type)}; a query may CAST it"
        raise PenstockError("DAT-4205", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42804")
    return column, fitting


def the_one(path: str, names: Sequence[str], field: Field) -> int:
    """Return the index of the column with a field's name. DAT-4203 for none, DAT-4208 for several."""
    positions = matching(names, field.name)
    if len(positions) == 1:
        return positions[0]
    if not positions:
        hint = did_you_mean(field.name, names, others=True)
        raise PenstockError(
            "DAT-4203", f"{path} has no column {field.name}", hint=hint, kind=Kind.EXTERNAL, sqlstate="42703"
        )
    several = " and ".join(names[position] for position in positions)
    message = f"{path} has {len(positions)} columns for {field.name}: {several}"
    hint = "names are compared without case: rename one in the file, or leave the column out of the table"
    raise PenstockError("DAT-4208", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42702")


def _paths(name: str, have: pa.DataType, declared: DataType) -> list[str]:
    # a whole column
    if not isinstance(declared, Row) or not pa.types.is_struct(have):
        return [name]
    positions = [position for position in row_positions(have, declared) if position is not None]
    inside = [
        (have.field(position), kind) for position, (_, kind) in zip(positions, declared.fields, strict=True)
    ]
    # all fields are needed, or a name with a dot in it would read as a path
    if len(inside) == have.num_fields or any("." in field.name for field, _ in inside):
        return [name]
    return [path for mine, kind in inside for path in _paths(f"{name}.{mine.name}", mine.type, kind)]
