"""Column types: those that SQLAlchemy does not have, and the SQLAlchemy type of each SQL type."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal as PythonDecimal
from typing import Any

from sqlalchemy import literal_column, types
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.sql import operators
from sqlalchemy.sql.sqltypes import Indexable
from sqlalchemy.sql.type_api import NativeForEmulated, TypeEngine, to_instance

from penstock.catalog import types as sql_types

# the value of a parameter or of a result, before and after
Convert = Callable[[Any], Any]
# which operators a type has: SQLAlchemy 2.0 does not ask for them, 2.1 does
_INDEXED: Any = getattr(types.JSON, "operator_classes", None)
_DATETIME: Any = getattr(types.DateTime, "operator_classes", None)
_INTEGER: Any = getattr(types.Integer, "operator_classes", None)


class TINYINT(types.Integer):
    """TINYINT, 8 bits."""

    __visit_name__ = "TINYINT"


class TIMESTAMP(types.TIMESTAMP):
    """TIMESTAMP(p), or TIMESTAMP_LTZ(p) with ``timezone=True``."""

    def __init__(self, timezone: bool = False, precision: int = 6) -> None:
        super().__init__(timezone=timezone)
        self.precision = precision


class INTERVAL(NativeForEmulated, types.TypeEngine[timedelta]):
    """INTERVAL DAY TO SECOND, a ``timedelta``."""

    __visit_name__ = "INTERVAL"
    native = True
    operator_classes = _DATETIME
    python_type = timedelta

    @classmethod
    def adapt_emulated_to_native(cls, impl: Any, **kw: Any) -> INTERVAL:
        """Return the type that ``sqlalchemy.Interval`` is here."""
        return cls()

    @property
    def _type_affinity(self) -> type[types.Interval]:
        return types.Interval

    def as_generic(self, allow_nulltype: bool = False) -> types.Interval:
        """Return the type for other databases."""
        return types.Interval(native=True)

    def literal_processor(self, dialect: Dialect) -> Convert:
        """Return the function that writes a literal."""

        def literal(value: timedelta) -> str:
            microseconds = value // timedelta(microseconds=1)
            sign = "-" if microseconds < 0 else ""
            seconds, fraction = divmod(abs(microseconds), 1_000_000)
            return f"INTERVAL '{sign}{seconds}.{fraction:06d}' SECOND"

        return literal


class YEAR_MONTH(types.TypeEngine[int]):
    """INTERVAL YEAR TO MONTH, a number of months."""

    __visit_name__ = "YEAR_MONTH"
    operator_classes = _INTEGER
    python_type = int


class NestedValue(str):
    """A nested value as JSON, the text that is bound; ``value`` is the value itself."""

    value: Any

    def __new__(cls, value: Any) -> NestedValue:
        """Return the text of a value."""
        text = super().__new__(cls, json.dumps(value, default=_json_value))
        text.value = value
        return text


def _json_value(value: Any) -> Any:
    """Return the text that ``from_json`` reads, for a value that JSON has no form of."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, PythonDecimal):
        return str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    raise TypeError(f"a value of Python type {type(value).__name__} in a nested value has no SQL type")


class Nested(types.TypeEngine[Any]):
    """The base of ARRAY, MAP and ROW. A value is bound as JSON, that ``from_json`` reads."""

    # the values are lists and dicts
    hashable = False

    def bind_processor(self, dialect: Dialect) -> Convert:
        """Return the function that writes a value as JSON."""
        return lambda value: None if value is None else NestedValue(value)

    def literal_processor(self, dialect: Dialect) -> Convert:
        """Return the function that writes a value as a literal of JSON."""
        return lambda value: _quoted(NestedValue(value))

    def result_processor(self, dialect: Dialect, coltype: object) -> Convert | None:
        """Return the function that makes dicts of maps; None for a type without maps."""
        return _with_dicts(self)


class ARRAY(Nested, types.ARRAY[Any]):
    """ARRAY<element>, a list. The first element is ``column[1]``."""


class MAP(Nested, Indexable, types.TypeEngine[dict[Any, Any]]):
    """MAP<key, value>, a dict. The value of a key is ``column[key]``."""

    __visit_name__ = "MAP"
    python_type = dict
    operator_classes = _INDEXED

    def __init__(self, key_type: Any, value_type: Any) -> None:
        self.key_type: TypeEngine[Any] = to_instance(key_type)
        self.value_type: TypeEngine[Any] = to_instance(value_type)

    class Comparator(Indexable.Comparator[Any]):
        """The operators of a map."""

        __slots__ = ()

        def _setup_getitem(self, index: Any) -> tuple[Any, Any, TypeEngine[Any]]:
            assert isinstance(self.type, MAP)
            return operators.getitem, index, self.type.value_type

    comparator_factory = Comparator


class ROW(Nested, Indexable, types.TypeEngine[dict[str, Any]]):
    """ROW<name type, ..>, a dict. A field is ``column["name"]``."""

    __visit_name__ = "ROW"
    python_type = dict
    operator_classes = _INDEXED

    def __init__(self, *fields: tuple[str, Any]) -> None:
        self.fields: tuple[tuple[str, TypeEngine[Any]], ...] = tuple(
            (name, to_instance(kind)) for name, kind in fields
        )

    def adapt(self, cls: type[Any], **kw: Any) -> Any:
        """Return the type with the same fields, which its constructor takes one by one."""
        return cls(*self.fields)

    def __repr__(self) -> str:
        return f"ROW({', '.join(map(repr, self.fields))})"

    class Comparator(Indexable.Comparator[Any]):
        """The operators of a row."""

        __slots__ = ()

        def _setup_getitem(self, index: Any) -> tuple[Any, Any, TypeEngine[Any]]:
            assert isinstance(self.type, ROW)
            kinds = dict(self.type.fields)
            if index not in kinds:
                raise KeyError(f"there is no field {index!r}: there is {', '.join(kinds)}")
            return operators.getitem, literal_column(quoted_name(index)), kinds[index]

    comparator_factory = Comparator


def quoted_name(name: str) -> str:
    """Return a name between backticks."""
    return "`" + name.replace("`", "``") + "`"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _with_dicts(kind: TypeEngine[Any]) -> Convert | None:
    """Return the function that turns the client's maps, lists of pairs, into dicts at every depth."""
    match kind:
        case types.ARRAY():
            return _each(_with_dicts(kind.item_type), kind.dimensions or 1)
        case MAP():
            values = _with_dicts(kind.value_type) or _unchanged
            return lambda pairs: None if pairs is None else {key: values(value) for key, value in pairs}
        case ROW():
            fields = {name: convert for name, field in kind.fields if (convert := _with_dicts(field))}
            if not fields:
                return None
            return lambda row: (
                None
                if row is None
                else {name: fields.get(name, _unchanged)(value) for name, value in row.items()}
            )
    return None


def _each(convert: Convert | None, dimensions: int) -> Convert | None:
    if convert is None or dimensions == 0:
        return convert
    inner = _each(convert, dimensions - 1) or _unchanged
    return lambda items: None if items is None else [inner(item) for item in items]


def _unchanged(value: Any) -> Any:
    return value


_SIMPLE: dict[sql_types.DataType, TypeEngine[Any]] = {
    sql_types.NULL: types.NullType(),
    sql_types.BOOLEAN: types.BOOLEAN(),
    sql_types.TINYINT: TINYINT(),
    sql_types.SMALLINT: types.SMALLINT(),
    sql_types.INT: types.INTEGER(),
    sql_types.BIGINT: types.BIGINT(),
    sql_types.FLOAT: types.REAL(),
    sql_types.DOUBLE: types.DOUBLE(),
    sql_types.STRING: types.String(),
    # the text of the JSON, which no driver parses
    sql_types.VARIANT: types.String(),
    sql_types.BINARY: types.LargeBinary(),
    sql_types.DATE: types.DATE(),
    sql_types.TIME: types.TIME(),
    sql_types.DAY_TIME_INTERVAL: INTERVAL(),
    sql_types.YEAR_MONTH_INTERVAL: YEAR_MONTH(),
}


def column_type(kind: sql_types.DataType) -> TypeEngine[Any]:
    """Return the SQLAlchemy type of a SQL type."""
    match kind:
        case sql_types.Decimal(precision, scale):
            return types.DECIMAL(precision, scale)
        case sql_types.Timestamp(precision):
            return TIMESTAMP(precision=precision)
        case sql_types.TimestampLtz(precision):
            return TIMESTAMP(timezone=True, precision=precision)
        case sql_types.Array(element):
            return ARRAY(column_type(element))
        case sql_types.Map(key, value):
            return MAP(column_type(key), column_type(value))
        case sql_types.Row(fields):
            return ROW(*((name, column_type(field)) for name, field in fields))
    # a type of another system is only ever NULL
    return _SIMPLE.get(kind, types.NullType())
