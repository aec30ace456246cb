"""Values of the Python program as typed literals: parameters, and constants of the Table API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal as PyDecimal
from typing import Any
from uuid import UUID

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_LTZ,
    DataType,
    Decimal,
)
from penstock.planner.binder.expressions.literals import decimal_literal, integer_type
from penstock.planner.expressions.nodes import Caller, Expression, Literal

_ACCEPTED = (
    "pass None, bool, int, float, Decimal, str, bytes, date, time, datetime, timedelta, UUID, list or dict"
)


def host_value(value: Any, call: Caller, span: Span | None) -> Expression:
    """Return a Python value as a typed literal. A list is an ARRAY; a dict is a ROW where its keys are
    strings, else a MAP. Raises SQL-1014 for a Python type without an SQL type.
    """
    value = _plain(value)
    match value:
        case list() | tuple():
            return call("array", [host_value(item, call, span) for item in value], span)
        case dict() if not value:
            raise PenstockError(
                "SQL-1014", "an empty dict has no SQL type", span=span, hint="pass None, or a dict with a key"
            )
        case dict():
            # named_struct('a', 1, 'b', 2), map(1, 'x', 2, 'y')
            function = "named_struct" if all(isinstance(key, str) for key in value) else "map"
            pairs = [host_value(part, call, span) for item in value.items() for part in item]
            return call(function, pairs, span)
    return _literal(value, span)


def host_literal(value: Any) -> Literal | None:
    """Return a Python value as a typed literal, None for a value that is none: a list or a dict."""
    value = _plain(value)
    return None if isinstance(value, list | tuple | dict) else _literal(value, None)


def _literal(value: Any, span: Span | None) -> Literal:
    if isinstance(value, PyDecimal) and value.is_finite():
        return decimal_literal(str(value), span)
    kind = _python_type(value)
    if kind is None:
        message = f"a value of Python type {type(value).__name__} has no SQL type"
        if isinstance(value, PyDecimal | int):
            message = f"the {type(value).__name__} {str(value)[:60]} fits no SQL type"
        raise PenstockError("SQL-1014", message, span=span, hint=_ACCEPTED)
    # an int beyond 64 bits
    if isinstance(value, int) and isinstance(kind, Decimal):
        value = PyDecimal(value)
    # an instant is stored in UTC
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC)
    if isinstance(value, time) and value.tzinfo is not None:
        hint = "pass value.replace(tzinfo=None), or a datetime"
        raise PenstockError("SQL-1014", "a time with a zone has no SQL type", span=span, hint=hint)
    return Literal(kind, value is None, value=value, span=span)


def _plain(value: Any) -> Any:
    """Return a value of a library, or of a subclass, as the plain Python value it stands for."""
    # a scalar of numpy; tolist of an array gives a list
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    # a missing value of pandas
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    # a pandas Timestamp or Timedelta
    for method in ("to_pydatetime", "to_pytimedelta"):
        if isinstance(value, datetime | timedelta) and hasattr(value, method):
            return getattr(value, method)()
    match value:
        case UUID():
            return str(value)
        case bytearray() | memoryview():
            return bytes(value)
        # a member of a StrEnum
        case str() if type(value) is not str:
            return str.__str__(value)
        case Mapping() if not isinstance(value, dict):
            return dict(value)
    return value


def _python_type(value: Any) -> DataType | None:
    match value:
        case None:
            return NULL
        # before int: bool is an int in Python
        case bool():
            return BOOLEAN
        case int():
            return integer_type(value)
        # a datetime without a zone is a TIMESTAMP, with one it is an instant
        case datetime():
            return TIMESTAMP if value.tzinfo is None else TIMESTAMP_LTZ
    simple = {float: DOUBLE, str: STRING, bytes: BINARY, date: DATE, time: TIME, timedelta: DAY_TIME_INTERVAL}
    return simple.get(type(value))
