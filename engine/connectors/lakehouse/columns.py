"""Declared columns against those of the table, which others may change in mid-run."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field
from penstock.catalog.types import from_arrow, to_arrow


def column_named(there: pa.Schema, name: str) -> int | None:
    """Return the position of a column, regardless of case."""
    return next((i for i, other in enumerate(there.names) if other.lower() == name.lower()), None)


def missing(fields: Sequence[Field], there: pa.Schema) -> list[Field]:
    """Return the declared columns that the table has not."""
    return [field for field in fields if column_named(there, field.name) is None]


def check_types(fields: Sequence[Field], there: pa.Schema, where: str) -> None:
    """Refuse a declared column of another type than the table's. DAT-5306."""
    for field in fields:
        place = column_named(there, field.name)
        if place is None:
            continue
        kind = engine_type(there.field(place).type)
        if kind != to_arrow(field.type):
            raise PenstockError(
                "DAT-5306",
                f"column {field.name} is declared {field.type}, and is {from_arrow(there.field(place).type)} "
                f"in {where}",
                hint=f"declare {field.name} {from_arrow(there.field(place).type)}, and CAST in the query",
                kind=Kind.EXTERNAL,
                sqlstate="42804",
            )


def refuse_missing(fields: Sequence[Field], there: pa.Schema, where: str, *, written: bool) -> None:
    """Refuse declared columns that the table has not. DAT-5306."""
    for field in missing(fields, there):
        way = "or add 'sink.schema-evolution' = 'additive'" if written else "or leave it out"
        near = did_you_mean(field.name, there.names, others=True)
        raise PenstockError(
            "DAT-5306",
            f"{where} has no column {field.name}",
            hint=f"{near}; {way}" if near else f"add it to the table, {way}",
            kind=Kind.EXTERNAL,
            sqlstate="42703",
        )


def refuse_undeclared(fields: Sequence[Field], there: pa.Schema, where: str) -> None:
    """Refuse columns of a table that are not declared: rows that are written again would lose them.
    DAT-5306.
    """
    declared = {field.name.lower() for field in fields}
    for column in there:
        if column.name.lower() not in declared:
            raise PenstockError(
                "DAT-5306",
                f"column {column.name} of {where} is not declared, and its values would be lost",
                hint=f"declare {column.name} too: rows are read, and written again with their changes",
                kind=Kind.EXTERNAL,
                sqlstate="0A000",
            )


def engine_type(arrow: pa.DataType) -> pa.DataType:
    """Return the layout in which the engine has values of a table's Arrow type."""
    try:
        return to_arrow(from_arrow(arrow))
    except PenstockError:
        return arrow


class RowsFitter:
    """Puts rows into the columns of a table: by name, in its order, NULL where nothing is declared.

    DAT-5306 for a column that allows no NULL and is not declared, DAT-5314 for a NULL in one. ``keep``:
    leading columns of the rows that are none of the table's; the first of them marks rows that are deleted.
    """

    def __init__(self, fields: Sequence[Field], there: pa.Schema, where: str, keep: int = 0) -> None:
        self._keep = keep
        self._where = where
        names = [field.name.lower() for field in fields]
        self._places = [names.index(name.lower()) if name.lower() in names else None for name in there.names]
        for place, column in zip(self._places, there, strict=True):
            if place is None and not column.nullable:
                raise PenstockError(
                    "DAT-5306",
                    f"column {column.name} of {where} allows no NULL, and is not declared",
                    hint=f"declare {column.name} {from_arrow(column.type)} NOT NULL, and write it",
                    kind=Kind.EXTERNAL,
                    sqlstate="23502",
                )
        kinds = [engine_type(column.type) for column in there]
        self.schema = pa.schema(
            [pa.field(column.name, kind, column.nullable) for column, kind in zip(there, kinds, strict=True)]
        )

    def fit(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows as the table has them."""
        arrays = [rows.column(place) for place in range(self._keep)]
        arrays += [
            pa.nulls(rows.num_rows, column.type) if place is None else rows.column(self._keep + place)
            for place, column in zip(self._places, self.schema, strict=True)
        ]
        self._refuse_nulls(rows, arrays)
        leading = [rows.schema.field(place) for place in range(self._keep)]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema([*leading, *self.schema]))

    def _refuse_nulls(self, rows: pa.RecordBatch, arrays: Sequence[pa.Array]) -> None:
        """Refuse a NULL where the table allows none: the libraries do so in words of their own, or abort.

        A row that is deleted has its key only.
        """
        for array, column in zip(arrays[self._keep :], self.schema, strict=True):
            if column.nullable or not array.null_count:
                continue
            if not self._keep or pc.any(pc.and_not(array.is_null(), rows.column(0))).as_py():
                raise PenstockError(
                    "DAT-5314",
                    f"column {column.name} of {self._where} allows no NULL, and a row has one",
                    hint=f"leave such rows out: WHERE {column.name} IS NOT NULL; or give COALESCE a value",
                    kind=Kind.USER,
                    sqlstate="23502",
                )


def check_declared_partitions(declared: Sequence[str], there: Sequence[str], where: str) -> None:
    """Refuse PARTITIONED BY of other columns than the table's; without it the table's are taken. DAT-5307."""
    if declared and [name.lower() for name in declared] != [name.lower() for name in there]:
        raise PenstockError(
            "DAT-5307",
            f"{where} is {_partitioning(there)}, and is declared as {_partitioning(declared)}",
            hint="leave PARTITIONED BY out: the table says it",
            kind=Kind.EXTERNAL,
        )


def _partitioning(columns: Sequence[str]) -> str:
    return f"partitioned by ({', '.join(columns)})" if columns else "not partitioned"
