"""Column mapping of a Delta table: data files and the log have other names for its columns, or know them by
their ids in the files. So a column is renamed or dropped without a file being written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field
from penstock.catalog.secrets import redact_url
from penstock.catalog.types import Array, DataType, Map, Row

_MODE = "delta.columnMapping.mode"
_NAME, _ID = "delta.columnMapping.physicalName", "delta.columnMapping.id"
_FILE_ID = b"PARQUET:field_id"


class ColumnMapping:
    """The columns of one version of a table. A table without a mapping has one of equal names."""

    def __init__(self, schema: str, configuration: Mapping[str, str]) -> None:
        self.mode = configuration.get(_MODE, "none")
        self._columns = _named(json.loads(schema)["fields"])

    def physical_name(self, name: str) -> str | None:
        """Return a column's name in the log and in files, ``None`` where the version has no such column."""
        column = self._columns.get(name.lower())
        return None if column is None else _physical_name(column, self.mode)

    def logical_values(self, values: Sequence[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
        """Return partition values of the log by the names of the columns."""
        if self.mode == "none":
            return tuple(values)
        names = {_physical_name(column, self.mode): column["name"] for column in self._columns.values()}
        return tuple((names.get(name, name), value) for name, value in values)

    def stored(self, field: Field, file: pa.Schema, path: str) -> Field:
        """Return a column as a file has it: by other names, also of the columns in it. DAT-5305 for a file
        without ids where columns go by them.
        """
        column = self._columns.get(field.name.lower())
        # of no version, such as the kind of a change
        if self.mode == "none" or column is None:
            return field
        if self.mode == "id" and len(file) and not any(_id_of(one) for one in file):
            raise PenstockError(
                "DAT-5305",
                f"{redact_url(path)} has no ids of columns, and its table maps columns by id",
                hint="write its rows anew: REORG TABLE in Spark",
                kind=Kind.EXTERNAL,
                sqlstate="0A000",
            )
        return self._stored(field, column, list(file))

    def _stored(self, field: Field, column: Any, there: Sequence[pa.Field]) -> Field:
        name, found = _physical_name(column, self.mode), None
        if self.mode == "id":
            found = next((one for one in there if _id_of(one) == _number(column)), None)
            # a name that no column has: the file lacks it
            name = name if found is None else found.name
        else:
            found = next((one for one in there if one.name == name), None)
        kind = self._stored_type(field.type, column["type"], None if found is None else found.type)
        return Field(name, kind, field.nullable)

    def _stored_type(self, kind: DataType, described: Any, there: pa.DataType | None) -> DataType:
        """Return a type with the names of ROW's columns in the file."""
        if not isinstance(described, dict):
            return kind
        match kind:
            case Array(element):
                inner = there.value_type if isinstance(there, pa.ListType | pa.LargeListType) else None
                return Array(self._stored_type(element, described["elementType"], inner))
            case Map(key, value):
                kinds = (there.key_type, there.item_type) if isinstance(there, pa.MapType) else (None, None)
                return Map(
                    self._stored_type(key, described["keyType"], kinds[0]),
                    self._stored_type(value, described["valueType"], kinds[1]),
                )
            case Row(fields):
                columns = _named(described["fields"])
                inner = list(there) if isinstance(there, pa.StructType) else []
                stored = (
                    self._stored(Field(name, each), columns[name.lower()], inner)
                    if name.lower() in columns
                    else Field(name, each)
                    for name, each in fields
                )
                return Row(tuple((field.name, field.type) for field in stored))
        return kind


def mapping_of(found: Any) -> ColumnMapping:
    """Return the mapping of the library's table."""
    return ColumnMapping(found.schema().to_json(), found.metadata().configuration)


def _named(fields: Sequence[Any]) -> dict[str, Any]:
    return {field["name"].lower(): field for field in fields}


def _physical_name(column: Any, mode: str) -> str:
    return str(column["name"] if mode == "none" else column["metadata"].get(_NAME, column["name"]))


def _number(column: Any) -> bytes:
    return str(column["metadata"].get(_ID)).encode()


def _id_of(field: pa.Field) -> bytes | None:
    return (field.metadata or {}).get(_FILE_ID)
