"""Compiles columns and a schema to a program of the writer's kernel, and makes the schema of a table."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.types import (
    Array,
    BigInt,
    Binary,
    Boolean,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    Int,
    Map,
    Row,
    SmallInt,
    String,
    Time,
    Timestamp,
    TimestampLtz,
    TinyInt,
)
from penstock.engine.formats.avro.columns import ColumnLayout, OutputColumn
from penstock.engine.formats.avro.schema import NO_DEFAULT, AvroField, AvroType
from penstock.engine.kernels.avro.operations import WriteOp

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, eq=False)
class WriterProgram:
    """What the kernel walks, the columns it reads, and the Avro type that each scalar is written as.
    ``places`` name the column of each instruction.
    """

    code: np.ndarray
    layout: ColumnLayout
    columns: list[OutputColumn]
    written: dict[int, AvroType]
    depth: int
    places: list[str]


def table_schema(fields: tuple[Field, ...], name: str = "record") -> dict[str, Any]:
    """Return the schema of a table as JSON: a nullable column is a union with null, as Flink writes it.

    DAT-5213 for a name or a type that Avro does not have.
    """
    parts = [(one.name, one.type, one.nullable) for one in fields]
    return _record_schema(name, parts)


def _record_schema(name: str, parts: list[tuple[str, DataType, bool]]) -> dict[str, Any]:
    made = []
    for part, kind, nullable in parts:
        if _NAME.fullmatch(part) is None:
            raise _refusal(
                f"{part} is no name of Avro", "rename the column: letters, digits and _, no digit first"
            )
        described = _type_schema(kind, f"{name}_{part}", part)
        field: dict[str, Any] = {"name": part, "type": ["null", described] if nullable else described}
        made.append(field | ({"default": None} if nullable else {}))
    return {"type": "record", "name": name, "fields": made}


def _type_schema(kind: DataType, name: str, column: str) -> Any:
    match kind:
        case Array(element):
            return {"type": "array", "items": ["null", _type_schema(element, name, column)]}
        case Map(String(), value):
            return {"type": "map", "values": ["null", _type_schema(value, name, column)]}
        case Row(fields):
            return _record_schema(name, [(part, of, True) for part, of in fields])
        case Decimal(precision, scale):
            return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        case Date():
            return {"type": "int", "logicalType": "date"}
        case Time():
            return {"type": "long", "logicalType": "time-micros"}
        case Timestamp(precision) | TimestampLtz(precision):
            unit = "millis" if precision <= 3 else "micros"
            zone = "local-" if isinstance(kind, Timestamp) else ""
            return {"type": "long", "logicalType": f"{zone}timestamp-{unit}"}
    plain = {
        Boolean: "boolean", TinyInt: "int", SmallInt: "int", Int: "int", BigInt: "long", Float: "float",
        Double: "double", String: "string", Binary: "bytes",
    }  # fmt: skip
    if type(kind) not in plain:
        raise _refusal(f"column {column} of type {kind} has no type of Avro", "CAST it to STRING")
    return plain[type(kind)]


def schema_text(described: dict[str, Any]) -> str:
    """Return a schema as the text that a registry gets: always the same for the same schema."""
    return json.dumps(described, separators=(",", ":"), ensure_ascii=False)


def _refusal(reason: str, hint: str) -> PenstockError:
    return PenstockError("DAT-5213", f"rows cannot be written as Avro: {reason}", hint=hint, kind=Kind.USER)


def compile_writer(schema: AvroType, fields: tuple[Field, ...]) -> WriterProgram:
    """Return the program that writes rows of a table in a schema. DAT-5213 where they do not match: each
    field of the schema is a column, or has a default of null.
    """
    return _Compiler().compile(schema, fields)


class _Compiler:
    def __init__(self) -> None:
        self._layout = ColumnLayout()
        self._code: list[int] = []
        self._places: list[str] = []
        self._place = ""
        self._written: dict[int, AvroType] = {}
        self._depth = 0
        self._deepest = 0

    def compile(self, schema: AvroType, fields: tuple[Field, ...]) -> WriterProgram:
        columns = [self._layout.column(one.type, 0, one.nullable) for one in fields]
        if schema.kind == "record":
            self._record(schema, [one.name for one in fields], columns, "")
        elif len(fields) == 1:
            self._place = fields[0].name
            self._value(columns[0], schema)
        else:
            raise _refusal(f"the schema is {schema}, and the table has {len(fields)} columns", "use a record")
        self._emit(WriteOp.END)
        return WriterProgram(
            np.array(self._code, np.int64),
            self._layout,
            columns,
            self._written,
            self._deepest + 1,
            self._places,
        )

    def _emit(self, op: WriteOp, column: OutputColumn | None = None, size: int = 0, *operands: int) -> int:
        """Append an instruction; return the index of its first operand behind the size."""
        node, group, stride = (0, 0, 0) if column is None else (column.node, column.group, column.stride)
        given = [*operands, 0, 0, 0][:3]
        self._code += [int(op), node, group, size, *given, stride]
        self._places.append(self._place)
        return len(self._code) - 4

    def _record(self, schema: AvroType, names: list[str], columns: list[OutputColumn], path: str) -> None:
        used = set()
        for part in schema.fields:
            alike = [i for i, name in enumerate(names) if name == part.name]
            alike = alike or [i for i, name in enumerate(names) if name.lower() == part.name.lower()]
            if not path:
                self._place = part.name
            if alike:
                used.add(alike[0])
                self._value(columns[alike[0]], part.type)
            else:
                self._absent(part)
        unused = [name for i, name in enumerate(names) if i not in used]
        if unused:
            raise _refusal(
                f"the schema has no field {path}{unused[0]}", "leave the column out, or add the field"
            )

    def _absent(self, part: AvroField) -> None:
        """WriteOp a field that is no column: null, where that is its default."""
        nulls = [i for i, branch in enumerate(part.type.branches) if branch.kind == "null"]
        if part.type.kind == "null":
            return
        if not nulls or part.default is NO_DEFAULT or part.default is not None:
            raise _refusal(f"there is no column {part.name}, which the schema has", "add the column")
        self._emit(WriteOp.BRANCH, None, 0, nulls[0])

    def _value(self, column: OutputColumn, schema: AvroType) -> None:
        if schema.kind != "union":
            self._emit(WriteOp.REQUIRED, column)
            if not self._write(column, schema):
                raise _refusal(f"{self._place} is {column.kind}, and the schema has {schema}", "CAST it")
            return
        nulls = [i for i, branch in enumerate(schema.branches) if branch.kind == "null"]
        values = [i for i, branch in enumerate(schema.branches) if self._fits(column, branch)]
        if not values:
            raise _refusal(f"{self._place} is {column.kind}, and the schema has {schema}", "CAST it")
        if nulls:
            operands = self._emit(WriteOp.NULLABLE, column, 0, nulls[0], values[0])
            self._write(column, schema.branches[values[0]])
            self._code[operands + 2] = len(self._code)
        else:
            self._emit(WriteOp.REQUIRED, column)
            self._emit(WriteOp.BRANCH, None, 0, values[0])
            self._write(column, schema.branches[values[0]])

    def _fits(self, column: OutputColumn, schema: AvroType) -> bool:
        match column.kind:
            case Array():
                return schema.kind == "array"
            case Map():
                return schema.kind == "map"
            case Row():
                return schema.kind == "record"
        return scalar_operation(column.kind, schema) is not None

    def _write(self, column: OutputColumn, schema: AvroType) -> bool:
        """Emit the writing of a value that is there; return whether the types match."""
        if not self._fits(column, schema):
            return False
        match column.kind:
            case Row(fields):
                self._record(schema, [name for name, _ in fields], column.children, f"{self._place}.")
            case Array() | Map():
                self._list(column, schema)
            case _:
                operation = scalar_operation(column.kind, schema)
                assert operation is not None
                self._written[column.node] = schema
                self._emit(operation, column, schema.size)
        return True

    def _list(self, column: OutputColumn, schema: AvroType) -> None:
        self._depth += 1
        self._deepest = max(self._deepest, self._depth)
        self._emit(WriteOp.LIST_BEGIN, column, 0, column.inner)
        again = len(self._code)
        operands = self._emit(WriteOp.LIST_NEXT, column, 0, column.inner)
        if schema.kind == "map":
            self._written[column.children[0].node] = AvroType("string")
            self._emit(WriteOp.BYTES, column.children[0])
        self._value(column.children[-1], schema.element)
        self._emit(WriteOp.LIST_ITEM, column, 0, column.inner, again)
        self._code[operands + 1] = len(self._code)
        self._depth -= 1


def scalar_operation(kind: DataType, schema: AvroType) -> WriteOp | None:
    """Return how a scalar is written in a schema; ``None`` where it cannot be."""
    have, logical = schema.kind, schema.logical or ""
    match kind:
        case Boolean() if have == "boolean":
            return WriteOp.BOOLEAN
        case TinyInt() | SmallInt() | Int() if have == "int" and not logical:
            return WriteOp.INT
        case TinyInt() | SmallInt() | Int() | BigInt() if have == "long" and not logical:
            return WriteOp.INT
        case Float() if have == "float":
            return WriteOp.FLOAT
        case Float() | Double() if have == "double":
            return WriteOp.DOUBLE
        case String() if have == "enum":
            return WriteOp.INT
        case String() if have == "string":
            return WriteOp.BYTES
        case Binary() if have == "bytes" and not logical:
            return WriteOp.BYTES
        case Binary() if have == "fixed" and not logical:
            return WriteOp.FIXED
        case Decimal(precision, scale) if logical == "decimal" and scale == schema.scale:
            if precision <= schema.precision:
                return WriteOp.DECIMAL_FIXED if have == "fixed" else WriteOp.DECIMAL_BYTES
        case Date() if logical == "date":
            return WriteOp.INT
        case Time() if logical.startswith("time-"):
            return WriteOp.INT
        case Timestamp() | TimestampLtz() if "timestamp-" in logical:
            return WriteOp.INT
    return None
