"""SQL types, a closed set of frozen classes, and their forms in SQL, Arrow and Spark."""

from __future__ import annotations

from dataclasses import field

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass

# What 128 bits can store, in Arrow as in Spark.
MAX_DECIMAL_PRECISION = 38


@dataclass(frozen=True)
class DataType:
    """Base of all SQL types; compare with ``==``, print with ``str``."""

    def __str__(self) -> str:
        return type(self).__name__.upper()


@dataclass(frozen=True)
class Null(DataType):
    """The type of an untyped NULL literal."""


@dataclass(frozen=True)
class Boolean(DataType):
    """BOOLEAN."""


@dataclass(frozen=True)
class TinyInt(DataType):
    """TINYINT, 8 bits."""


@dataclass(frozen=True)
class SmallInt(DataType):
    """SMALLINT, 16 bits."""


@dataclass(frozen=True)
class Int(DataType):
    """INT, 32 bits."""


@dataclass(frozen=True)
class BigInt(DataType):
    """BIGINT, 64 bits."""


@dataclass(frozen=True)
class Float(DataType):
    """FLOAT, 32 bits."""


@dataclass(frozen=True)
class Double(DataType):
    """DOUBLE, 64 bits."""


@dataclass(frozen=True)
class Decimal(DataType):
    """DECIMAL(precision, scale)."""

    precision: int = 10
    scale: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= MAX_DECIMAL_PRECISION or not 0 <= self.scale <= self.precision:
            raise PenstockError(
                "SQL-1201",
                f"DECIMAL({self.precision},{self.scale}) is not a type: 1 <= precision <= 38, 0 <= "
                "scale <= precision",
            )

    def __str__(self) -> str:
        return f"DECIMAL({self.precision}, {self.scale})"


@dataclass(frozen=True)
class String(DataType):
    """STRING; VARCHAR(n) and CHAR(n) are read as STRING."""


@dataclass(frozen=True)
class Binary(DataType):
    """BINARY / BYTES."""


@dataclass(frozen=True)
class Date(DataType):
    """DATE, days since 1970-01-01."""


@dataclass(frozen=True)
class Time(DataType):
    """TIME(p), microseconds since midnight. ``precision`` (0..6) is that of a cast or a table's column. It is
    not compared: values of all precisions are alike, and the type of an expression does not promise it.
    """

    precision: int = field(default=6, compare=False)

    def __str__(self) -> str:
        return "TIME" if self.precision == 6 else f"TIME({self.precision})"


@dataclass(frozen=True)
class Timestamp(DataType):
    """TIMESTAMP(p) without zone, stored in microseconds; ``precision`` (0..6) is for display."""

    precision: int = 6

    def __str__(self) -> str:
        return f"TIMESTAMP({self.precision})"


@dataclass(frozen=True)
class TimestampLtz(DataType):
    """TIMESTAMP_LTZ(p), an instant in microseconds UTC, shown in the session zone."""

    precision: int = 6

    def __str__(self) -> str:
        return f"TIMESTAMP_LTZ({self.precision})"


@dataclass(frozen=True)
class DayTimeInterval(DataType):
    """INTERVAL DAY TO SECOND, microseconds."""

    def __str__(self) -> str:
        return "INTERVAL DAY TO SECOND"


@dataclass(frozen=True)
class YearMonthInterval(DataType):
    """INTERVAL YEAR TO MONTH, months."""

    def __str__(self) -> str:
        return "INTERVAL YEAR TO MONTH"


@dataclass(frozen=True)
class Array(DataType):
    """ARRAY<element>."""

    element: DataType

    def __str__(self) -> str:
        return f"ARRAY<{self.element}>"


@dataclass(frozen=True)
class Map(DataType):
    """MAP<key, value>."""

    key: DataType
    value: DataType

    def __str__(self) -> str:
        return f"MAP<{self.key}, {self.value}>"


@dataclass(frozen=True)
class Row(DataType):
    """ROW<name type, ..>, also written STRUCT<..>."""

    fields: tuple[tuple[str, DataType], ...]

    def __str__(self) -> str:
        return "ROW<" + ", ".join(f"{name} {kind}" for name, kind in self.fields) + ">"


@dataclass(frozen=True)
class Variant(DataType):
    """VARIANT, a value of JSON whose type is known by row only. It is stored as its one canonical text."""


@dataclass(frozen=True)
class Foreign(DataType):
    """A type of another system that has no like here, by its name there. No expression reads a column of
    it: it is only ever NULL.
    """

    name: str

    def __str__(self) -> str:
        return self.name


NULL, BOOLEAN, TINYINT, SMALLINT, INT, BIGINT = Null(), Boolean(), TinyInt(), SmallInt(), Int(), BigInt()
FLOAT, DOUBLE, STRING, BINARY, DATE, TIME = Float(), Double(), String(), Binary(), Date(), Time()
TIMESTAMP, TIMESTAMP_LTZ, VARIANT = Timestamp(), TimestampLtz(), Variant()
DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL = DayTimeInterval(), YearMonthInterval()

# From narrow to wide: coercion takes the later of two.
INTEGERS: tuple[DataType, ...] = (TINYINT, SMALLINT, INT, BIGINT)

# Arrow layouts of the types without parameters.
_SIMPLE_ARROW: dict[DataType, pa.DataType] = {
    NULL: pa.null(),
    BOOLEAN: pa.bool_(),
    TINYINT: pa.int8(),
    SMALLINT: pa.int16(),
    INT: pa.int32(),
    BIGINT: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    STRING: pa.string(),
    BINARY: pa.binary(),
    DATE: pa.date32(),
    # All times are microseconds, so that no operator has to convert units.
    TIME: pa.time64("us"),
    DAY_TIME_INTERVAL: pa.duration("us"),
    # A number of months.
    YEAR_MONTH_INTERVAL: pa.int32(),
    # JSON without blanks, fields in order: equal texts are equal values.
    VARIANT: pa.string(),
}


def is_integer(kind: DataType) -> bool:
    """Return whether a type is one of the four integer types."""
    return kind in INTEGERS


def is_numeric(kind: DataType) -> bool:
    """Return whether arithmetic is defined on a type."""
    return is_integer(kind) or isinstance(kind, Float | Double | Decimal)


def holds(kind: DataType, part: type[DataType]) -> bool:
    """Return whether a type, or a type within it, is of a class."""
    match kind:
        case Array(element):
            return holds(element, part)
        case Map(key, value):
            return holds(key, part) or holds(value, part)
        case Row(fields):
            return any(holds(field, part) for _, field in fields)
    return isinstance(kind, part)


def is_timestamp(kind: DataType) -> bool:
    """Return whether a type may be an event-time attribute."""
    return isinstance(kind, Timestamp | TimestampLtz)


def to_arrow(kind: DataType) -> pa.DataType:
    """Return the Arrow type that holds values of a SQL type: the one layout all batches use."""
    # Frozen dataclasses are equal by value, so a type is its own key.
    if (simple := _SIMPLE_ARROW.get(kind)) is not None:
        return simple
    match kind:
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        # The precision changes no layout: TIMESTAMP(3) and TIMESTAMP(6) are both microseconds.
        case Timestamp():
            return pa.timestamp("us")
        # An instant is stored in UTC whatever the session's zone is; only reading and printing know the zone.
        case TimestampLtz():
            return pa.timestamp("us", tz="UTC")
        case Array(element):
            return pa.list_(to_arrow(element))
        case Map(key, value):
            return pa.map_(to_arrow(key), to_arrow(value))
        # Never read, so every value is NULL.
        case Foreign():
            return pa.null()
        case Row(fields):
            return pa.struct([pa.field(name, to_arrow(field)) for name, field in fields])
    raise PenstockError("SQL-1202", f"type {kind} has no Arrow layout")


_FROM_ARROW: dict[pa.DataType, DataType] = {
    # int32 is INT on the way back, string is STRING: months and VARIANT have the same layouts.
    **{arrow: sql for sql, arrow in _SIMPLE_ARROW.items() if sql not in (YEAR_MONTH_INTERVAL, VARIANT)},
    # SQL has no unsigned types: the next wider signed one has all values.
    pa.uint8(): SMALLINT,
    pa.uint16(): INT,
    pa.uint32(): BIGINT,
    # 2**64 - 1 has twenty digits.
    pa.uint64(): Decimal(20, 0),
    # No SQL type of 16 bits: the next wider float has all values.
    pa.float16(): FLOAT,
    # The same text or bytes in another encoding of offsets.
    pa.large_string(): STRING,
    pa.string_view(): STRING,
    pa.large_binary(): BINARY,
    pa.binary_view(): BINARY,
    # Milliseconds of midnight: the same days.
    pa.date64(): DATE,
}
_LISTS = (
    pa.types.is_list,
    pa.types.is_large_list,
    pa.types.is_fixed_size_list,
    pa.types.is_list_view,
    pa.types.is_large_list_view,
)


def from_arrow(arrow: pa.DataType) -> DataType:
    """Return the SQL type for an Arrow type; values must be cast to ``to_arrow`` of it before use."""
    if (simple := _FROM_ARROW.get(arrow)) is not None:
        return simple
    # Any unit: values are cast to microseconds.
    if pa.types.is_timestamp(arrow):
        return TIMESTAMP_LTZ if arrow.tz else TIMESTAMP
    if pa.types.is_duration(arrow):
        return DAY_TIME_INTERVAL
    if pa.types.is_time(arrow):
        return TIME
    if pa.types.is_decimal(arrow):
        return Decimal(arrow.precision, arrow.scale)
    # Encodings are no types: the values count.
    if pa.types.is_dictionary(arrow):
        return from_arrow(arrow.value_type)
    if pa.types.is_map(arrow):
        return Map(from_arrow(arrow.key_type), from_arrow(arrow.item_type))
    if any(is_list(arrow) for is_list in _LISTS):
        return Array(from_arrow(arrow.value_type))
    if pa.types.is_struct(arrow):
        return Row(tuple((field.name, from_arrow(field.type)) for field in arrow))
    # SQL has no BINARY(n): the length is not part of the type.
    if pa.types.is_fixed_size_binary(arrow):
        return BINARY
    hint = "cast the column before registering the table"
    raise PenstockError("SQL-1203", f"Arrow type {arrow} has no SQL type", hint=hint)


# Types whose Spark spelling is not str() of them.
_SPARK_NAMES: dict[DataType, str] = {
    NULL: "VOID",
    TINYINT: "TINYINT",
    TIME: "TIME(6)",
    DAY_TIME_INTERVAL: "INTERVAL DAY TO SECOND",
    YEAR_MONTH_INTERVAL: "INTERVAL YEAR TO MONTH",
}


def to_spark(kind: DataType) -> str:
    """Return the Spark SQL spelling of a type, as used in DDL and CAST."""
    match kind:
        # Spark's TIMESTAMP is an instant: the wall clock of Flink's TIMESTAMP is its TIMESTAMP_NTZ.
        case Timestamp():
            return "TIMESTAMP_NTZ"
        case TimestampLtz():
            return "TIMESTAMP"
        case Array(element):
            return f"ARRAY<{to_spark(element)}>"
        case Map(key, value):
            return f"MAP<{to_spark(key)}, {to_spark(value)}>"
        # A colon between name and type is Spark's form; a backtick in a name is doubled.
        case Row(fields):
            return (
                "STRUCT<"
                + ", ".join(f"`{name.replace('`', '``')}`: {to_spark(field)}" for name, field in fields)
                + ">"
            )
    return _SPARK_NAMES.get(kind, str(kind))
