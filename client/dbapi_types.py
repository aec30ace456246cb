"""The type objects and constructors of PEP 249.

A type object equals every ``type_code`` of its group: ``cursor.description[0][1] == penstock.NUMBER``. A type
code is an Arrow type, so programs that want more than the group read it directly.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable

import pyarrow as pa
from pyarrow import types


class TypeObject:
    """A group of column types, equal to each type code in it."""

    def __init__(self, name: str, *members: Callable[[pa.DataType], bool]) -> None:
        self._name = name
        self._members = members

    def __eq__(self, other: object) -> bool:
        # Arrow gives way to this comparison for what is no Arrow type, so either side may come first
        if isinstance(other, pa.DataType):
            return any(member(other) for member in self._members)
        return self is other

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"penstock.{self._name}"


STRING = TypeObject("STRING", types.is_string, types.is_large_string)
BINARY = TypeObject("BINARY", types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
NUMBER = TypeObject(
    "NUMBER", types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_duration
)
DATETIME = TypeObject("DATETIME", types.is_timestamp, types.is_date, types.is_time)
ROWID = TypeObject("ROWID")
"""Equal to no type: rows have no identity of their own."""

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """Return the local date of so many seconds since 1970-01-01 00:00 UTC."""
    return datetime.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> datetime.time:
    """Return the local time of day of so many seconds since 1970-01-01 00:00 UTC."""
    return datetime.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """Return the local time, without a zone, of so many seconds since 1970-01-01 00:00 UTC."""
    return datetime.datetime.fromtimestamp(ticks)
