"""SQL types as PostgreSQL's: the OID, size and modifier of a column, and the type of an OID."""

from __future__ import annotations

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    TINYINT,
    YEAR_MONTH_INTERVAL,
    Array,
    DataType,
    Decimal,
    Map,
    Row,
    Timestamp,
    TimestampLtz,
    Variant,
)


@dataclass(frozen=True)
class WireType:
    """A type of PostgreSQL: its OID, that of its array, its name, the bytes of a value (-1: it varies)."""

    oid: int
    array_oid: int
    name: str
    size: int


BOOL = WireType(16, 1000, "bool", 1)
BYTEA = WireType(17, 1001, "bytea", -1)
INT8 = WireType(20, 1016, "int8", 8)
INT2 = WireType(21, 1005, "int2", 2)
INT4 = WireType(23, 1007, "int4", 4)
TEXT = WireType(25, 1009, "text", -1)
JSON = WireType(114, 199, "json", -1)
FLOAT4 = WireType(700, 1021, "float4", 4)
FLOAT8 = WireType(701, 1022, "float8", 8)
DATE_TYPE = WireType(1082, 1182, "date", 4)
TIME_TYPE = WireType(1083, 1183, "time", 8)
TIMESTAMP_TYPE = WireType(1114, 1115, "timestamp", 8)
TIMESTAMPTZ = WireType(1184, 1185, "timestamptz", 8)
INTERVAL = WireType(1186, 1187, "interval", 16)
NUMERIC = WireType(1700, 1231, "numeric", -1)

_PLAIN_TYPES = (BOOL, BYTEA, INT8, INT2, INT4, TEXT, JSON, FLOAT4, FLOAT8, NUMERIC)
WIRE_TYPES = (*_PLAIN_TYPES, DATE_TYPE, TIME_TYPE, TIMESTAMP_TYPE, TIMESTAMPTZ, INTERVAL)
"""Every type that a column may have; each has an array."""

_WIRE: dict[DataType, WireType] = {
    BOOLEAN: BOOL,
    # PostgreSQL has no integer of 8 bits
    TINYINT: INT2,
    SMALLINT: INT2,
    INT: INT4,
    BIGINT: INT8,
    FLOAT: FLOAT4,
    DOUBLE: FLOAT8,
    BINARY: BYTEA,
    DATE: DATE_TYPE,
    TIME: TIME_TYPE,
    DAY_TIME_INTERVAL: INTERVAL,
    YEAR_MONTH_INTERVAL: INTERVAL,
}
_NUMERIC_MODIFIER = 4  # PostgreSQL's header size, which its modifiers of numeric include


def element_of(kind: DataType) -> DataType | None:
    """Return the element type of an array that is one in PostgreSQL too; None for all other types."""
    # arrays of arrays may be ragged here and not there: they are JSON, as maps and rows are
    return kind.element if isinstance(kind, Array) and not isinstance(kind.element, Array) else None


def wire_type(kind: DataType) -> WireType:
    """Return PostgreSQL's type of a SQL type. That of an array has the OID of the array."""
    if (element := element_of(kind)) is not None:
        of = wire_type(element)
        return WireType(of.array_oid, 0, f"_{of.name}", -1)
    if (simple := _WIRE.get(kind)) is not None:
        return simple
    match kind:
        case Decimal():
            return NUMERIC
        case Timestamp():
            return TIMESTAMP_TYPE
        case TimestampLtz():
            return TIMESTAMPTZ
        case Map() | Row() | Array() | Variant():
            return JSON
    # STRING, NULL, and types of other systems, whose values are NULL
    return TEXT


def modifier(kind: DataType) -> int:
    """Return the type modifier of a column: precision and scale of numeric, the digits of a timestamp."""
    match kind:
        case Decimal(precision, scale):
            return (precision << 16 | scale) + _NUMERIC_MODIFIER
        case Timestamp(precision) | TimestampLtz(precision):
            return -1 if precision == 6 else precision
    return -1


_SQL: dict[int, DataType] = {
    BOOL.oid: BOOLEAN,
    BYTEA.oid: BINARY,
    INT8.oid: BIGINT,
    INT2.oid: SMALLINT,
    INT4.oid: INT,
    FLOAT4.oid: FLOAT,
    FLOAT8.oid: DOUBLE,
    DATE_TYPE.oid: DATE,
    TIME_TYPE.oid: TIME,
    TIMESTAMP_TYPE.oid: TIMESTAMP,
    TIMESTAMPTZ.oid: TIMESTAMP_LTZ,
    INTERVAL.oid: DAY_TIME_INTERVAL,
    NUMERIC.oid: Decimal(38, 18),
    # oid
    26: BIGINT,
    # text, varchar, char(n), name, json, jsonb, uuid: texts here
    **dict.fromkeys((TEXT.oid, 1043, 1042, 19, JSON.oid, 3802, 2950), STRING),
}
_ARRAYS = {wire.array_oid: wire.oid for wire in WIRE_TYPES} | {1015: 1043, 1028: 26}
UNDECIDED = frozenset({0, 705, NUMERIC.oid, 25, 1043, INT2.oid, INT4.oid, INT8.oid, FLOAT8.oid})
"""OIDs that drivers choose by the value at hand, or leave open: the place of a parameter decides its type."""


def sql_type(oid: int) -> DataType | None:
    """Return the SQL type of a parameter's OID; None for an unknown one, which is read as text."""
    if (element := _ARRAYS.get(oid)) is not None:
        return Array(_SQL[element])
    return _SQL.get(oid)
