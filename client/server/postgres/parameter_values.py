"""Values of parameters as clients send them, as text or binary: single values, so plain Python."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, InvalidOperation
from decimal import Decimal as PyDecimal
from zoneinfo import ZoneInfo

from penstock.catalog.errors import PenstockError
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
    TINYINT,
    Array,
    DataType,
    Decimal,
    Timestamp,
    TimestampLtz,
    is_integer,
)
from penstock.client.server.postgres.binary_format import EPOCH_DAYS
from penstock.client.server.postgres.wire_types import sql_type

_EPOCH_DATE = date(1970, 1, 1) + timedelta(EPOCH_DAYS)
_EPOCH = datetime(_EPOCH_DATE.year, 1, 1)
_TRUTHS = {**dict.fromkeys(("t", "true", "y", "yes", "on", "1"), True)} | dict.fromkeys(
    ("f", "false", "n", "no", "off", "0"), False
)
_INTERVAL_PART = re.compile(
    r"([+-]?\d+(?:\.\d+)?)\s*(microsecond|millisecond|second|sec|minute|min|hour|day|week|s|d|m|h)s?\b"
)
_UNITS = {
    "microsecond": "microseconds", "millisecond": "milliseconds", "second": "seconds", "sec": "seconds",
    "s": "seconds", "minute": "minutes", "min": "minutes", "m": "minutes", "hour": "hours", "h": "hours",
    "day": "days", "d": "days", "week": "weeks",
}  # fmt: skip
_CLOCK = re.compile(r"([+-]?)(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?$")
_EXACT = Context(prec=1000)  # digits: more than any DECIMAL has
_NUMERIC_NAN, _NUMERIC_NEGATIVE = 0xC000, 0x4000


def parameter_value(raw: bytes | None, kind: DataType, oid: int, *, binary: bool, zone: str) -> object:
    """Return the value of a parameter; ``oid`` is the type the client has declared, ``kind`` what the
    statement asks for. Raises CLI-6223 for bytes that are no value of it.
    """
    if raw is None:
        return None
    declared = sql_type(oid)
    try:
        # binary: as it was declared, which decides how the bytes are read
        if binary:
            return _binary(raw, declared or kind, zone)
        text = raw.decode()
        # text: whatever a client declares, the text is that of the type the statement asks for
        return _text(text, kind, zone)
    except (ValueError, InvalidOperation, OverflowError, struct.error, IndexError) as error:
        shown = repr(raw[:40])[2:-1]
        raise PenstockError(
            "CLI-6223",
            f"a parameter is no {kind}: {shown}",
            hint="send the value in PostgreSQL's text format, or declare the type that it has",
            sqlstate="22P03" if binary else "22P02",
        ) from error


def _text(text: str, kind: DataType, zone: str) -> object:
    match kind:
        case Decimal():
            return PyDecimal(text.strip())
        case Timestamp():
            return datetime.fromisoformat(text.strip()).replace(tzinfo=None)
        case TimestampLtz():
            return _instant(datetime.fromisoformat(text.strip()), zone)
        case Array(element):
            return [None if part is None else _text(part, element, zone) for part in array_parts(text)]
    read = _TEXTS.get(kind)
    return text if read is None else read(text.strip())


def _truth(text: str) -> bool:
    if (value := _TRUTHS.get(text.lower())) is None:
        raise ValueError(text)
    return value


def _bytes(text: str) -> bytes:
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])
    # the escape format: \\ and three octal digits
    return re.sub(
        rb"\\(\\|[0-3][0-7]{2})",
        lambda found: b"\\" if found[1] == b"\\" else bytes([int(found[1], 8)]),
        text.encode(),
    )


def interval(text: str) -> timedelta:
    """Return an interval of PostgreSQL's text: ``1 day 02:03:04.5``, ``5 seconds``."""
    rest, total = text.strip(), timedelta()
    if (clock := _CLOCK.search(rest)) is not None:
        whole = timedelta(hours=int(clock[2]), minutes=int(clock[3]), seconds=float(clock[4] or 0))
        total += -whole if clock[1] == "-" else whole
        rest = rest[: clock.start()]
    for found in _INTERVAL_PART.finditer(rest):
        total += timedelta(**{_UNITS[found[2]]: float(found[1])})
    if _INTERVAL_PART.sub("", rest).strip() or not text.strip():
        raise ValueError(text)
    return total


_TEXTS: dict[DataType, Callable[[str], object]] = {
    BOOLEAN: _truth,
    **dict.fromkeys((TINYINT, SMALLINT, INT, BIGINT), int),
    FLOAT: float,
    DOUBLE: float,
    DATE: date.fromisoformat,
    TIME: time.fromisoformat,
    DAY_TIME_INTERVAL: interval,
    BINARY: _bytes,
}


def _instant(value: datetime, zone: str) -> datetime:
    # without an offset: a wall clock of the session's zone
    local = value if value.tzinfo is not None else value.replace(tzinfo=ZoneInfo(zone))
    return local.astimezone(UTC)


def array_parts(text: str) -> list[str | None]:
    """Return the elements of ``{a,"b c",NULL}``. Raises ValueError for nested arrays and malformed text."""
    if not (text.startswith("{") and text.endswith("}")):
        raise ValueError(text)
    parts: list[str | None] = []
    at, end = 1, len(text) - 1
    while at < end:
        if text[at] == '"':
            # quoted: a backslash escapes one character
            found = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL).match(text, at)
            if found is None:
                raise ValueError(text)
            parts.append(re.sub(r"\\(.)", r"\1", found[1], flags=re.DOTALL))
            at = found.end()
        else:
            comma = text.find(",", at)
            stop = end if comma < 0 else comma
            word = text[at:stop].strip()
            if "{" in word or '"' in word or not word:
                raise ValueError(text)
            parts.append(None if word.upper() == "NULL" else word)
            at = stop
        if at < end and text[at] != ",":
            raise ValueError(text)
        at += 1
    return parts


def _binary(raw: bytes, kind: DataType, zone: str) -> object:
    if is_integer(kind):
        # of any of the three sizes
        if len(raw) not in (2, 4, 8):
            raise ValueError(kind)
        return int.from_bytes(raw, "big", signed=True)
    match kind:
        case Array():
            return _binary_array(raw, zone)
        case Decimal():
            return binary_numeric(raw)
        case Timestamp():
            return _EPOCH + timedelta(microseconds=struct.unpack(">q", raw)[0])
        case TimestampLtz():
            return (_EPOCH + timedelta(microseconds=struct.unpack(">q", raw)[0])).replace(tzinfo=UTC)
    read = _BINARIES.get(kind)
    return raw.decode() if read is None else read(raw)


def _binary_array(raw: bytes, zone: str) -> list[object]:
    dimensions, _, oid = struct.unpack_from(">iiI", raw)
    if dimensions == 0:
        return []
    if dimensions != 1:
        raise ValueError("an array of several dimensions")
    (count,) = struct.unpack_from(">i", raw, 12)
    kind, at, values = sql_type(oid) or STRING, 20, []
    if not 0 <= count <= len(raw):
        raise ValueError(count)
    for _ in range(count):
        (length,) = struct.unpack_from(">i", raw, at)
        at += 4
        values.append(None if length < 0 else _binary(raw[at : at + length], kind, zone))
        at += max(length, 0)
    return values


def binary_numeric(raw: bytes) -> PyDecimal:
    """Return a numeric of digits of base 10,000."""
    count, weight, sign, scale = struct.unpack_from(">HhHH", raw)
    if sign == _NUMERIC_NAN:
        raise ValueError("NaN")
    digits = struct.unpack_from(f">{count}H", raw, 8)
    number = 0
    for digit in digits:
        number = number * 10_000 + digit
    exponent = 4 * (weight + 1 - count)
    # digits of the last group that are behind the scale are zeros
    value = PyDecimal((0, tuple(map(int, str(number))), exponent))
    with_scale = value.quantize(PyDecimal((0, (1,), -scale)), context=_EXACT)
    return -with_scale if sign == _NUMERIC_NEGATIVE else with_scale


def _interval(raw: bytes) -> timedelta:
    microseconds, days, months = struct.unpack(">qii", raw)
    if months:
        raise ValueError("an interval of months")
    return timedelta(days=days, microseconds=microseconds)


def _time(raw: bytes) -> time:
    return (datetime.min + timedelta(microseconds=struct.unpack(">q", raw)[0])).time()


_BINARIES: dict[DataType, Callable[[bytes], object]] = {
    BOOLEAN: lambda raw: raw != b"\0",
    FLOAT: lambda raw: struct.unpack(">f", raw)[0],
    DOUBLE: lambda raw: struct.unpack(">f" if len(raw) == 4 else ">d", raw)[0],
    BINARY: bytes,
    DATE: lambda raw: _EPOCH_DATE + timedelta(struct.unpack(">i", raw)[0]),
    TIME: _time,
    DAY_TIME_INTERVAL: _interval,
}
