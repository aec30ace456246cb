"""CAST from STRING. Arrow parses the whole column first. Only when Arrow rejects it are the texts trimmed and
parsed by regular expression.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    Binary,
    Boolean,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    Time,
    Timestamp,
    TimestampLtz,
    is_integer,
    to_arrow,
)
from penstock.engine.api.arrow_numpy import truths
from penstock.engine.expressions.datetime.date_arithmetic import LOCAL, to_instant
from penstock.engine.expressions.datetime.datetime_patterns import local_times
from penstock.engine.expressions.datum import array_of, values_of
from penstock.engine.expressions.evaluation_errors import bad_argument
from penstock.engine.expressions.numeric import decimals

Reader = Callable[[pa.Array], pa.Array]

# Trimmed before parsing: blanks and control characters.
_BLANKS = "".join(map(chr, range(33))) + "\x7f"
# spellings of Spark's CAST: 1.5e3, .5, 1.5d, inf, +nan is none
_INTEGER = r"^[+-]?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_DOUBLE = r"^([+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?|(?i:[+-]?(inf|infinity)|nan))$"
# words of a BOOLEAN, in any case
_TRUE = ("t", "true", "y", "yes", "1")
_FALSE = ("f", "false", "n", "no", "0")
# 2024, 2024-1, 2024-01-31, 2024-01-31T..: what a DATE has no part for is ignored
_DATE = r"^(?P<sign>[+-]?)(?P<y>[0-9]{4,7})(-(?P<mo>[0-9]{1,2})(-(?P<d>[0-9]{1,2})([T ].*)?)?)?$"
# 8, 8:05, 8:05:59, 8:05:59.123
_CLOCK = r"(?P<h>[0-9]{1,2})(:(?P<mi>[0-9]{1,2})(:(?P<s>[0-9]{1,2})(\.(?P<f>[0-9]*))?)?)?"
_ZONE = (
    r" "
    r"*(?P<zone>Z|[+-][0-9]{1,2}(:?[0-9]{2}(:?[0-9]{2})?)?|(UTC|GMT|UT)([+-][0-9]{1,2}(:[0-9]{1,2}(:[0-9]{2})?)?)?|[A-Z][A-Za-z_]+/[A-Za-z_/+-]+)?"
)
_TIMESTAMP = (
    rf"^(?P<sign>[+-]?)(?P<y>[0-9]{{4,6}})(-(?P<mo>[0-9]{{1,2}})(-(?P<d>[0-9]{{1,2}})([T "
    rf"]({_CLOCK})?{_ZONE})?)?)?$"
)
_TIME = rf"^{_CLOCK}$"


def from_text(target: DataType, zone: str) -> Reader:
    """Return a function from texts to values of a type. A text that cannot be parsed becomes NULL."""
    if isinstance(target, Boolean):
        return _booleans
    if is_integer(target):
        return _fast(to_arrow(target), _integers, refuse="x")
    if isinstance(target, Float | Double):
        return _fast(to_arrow(target), _floats)
    if isinstance(target, Decimal):
        return _fast(to_arrow(target), lambda texts, _: _decimals(texts, target))
    if isinstance(target, Date):
        return _fast(to_arrow(target), _dates)
    if isinstance(target, Timestamp):
        return _fast(LOCAL, lambda texts, _: _timestamps(texts, None))
    if isinstance(target, TimestampLtz):
        return lambda texts: _instants(texts, zone)
    if isinstance(target, Time):
        return lambda texts: _times(texts, pa.time64("us"))
    if isinstance(target, Binary):
        return lambda texts: texts.cast(pa.binary())
    raise bad_argument(f"STRING cannot be cast to {target}")


def _fast(
    kind: pa.DataType, careful: Callable[[pa.Array, pa.DataType], pa.Array], refuse: str | None = None
) -> Reader:
    """Return a reader that tries Arrow's parser on the whole column, then ``careful``. Columns with the
    lower-case letter ``refuse`` skip Arrow: it reads hexadecimal, SQL does not.
    """

    def read(texts: pa.Array) -> pa.Array:
        # one parse of the whole column: the usual case
        if refuse is None or not _has_letter(texts, refuse):
            try:
                return texts.cast(kind)
            except pa.ArrowInvalid:
                return careful(texts, kind)
        return careful(texts, kind)

    return read


def _has_letter(texts: pa.Array, letter: str) -> bool:
    """Return whether any text has a letter in either case. It scans the bytes of the column."""
    _, offsets, data = texts.buffers()
    if data is None:
        return False
    # a slice has its bytes between its first and last offset
    first, last = np.frombuffer(offsets, np.int32)[[texts.offset, texts.offset + len(texts)]]
    return bool((np.frombuffer(data, np.uint8)[first:last] | 0x20 == ord(letter)).any())


def _trimmed(texts: pa.Array) -> pa.Array:
    return pc.utf8_trim(texts, characters=_BLANKS)


def _matching(texts: pa.Array, pattern: str) -> pa.Array:
    """Return the texts that match the pattern, NULL for the others."""
    return pc.if_else(pc.match_substring_regex(texts, pattern), texts, pa.scalar(None, pa.string()))


def _booleans(texts: pa.Array) -> pa.Array:
    words = pc.utf8_lower(_trimmed(texts))
    yes, no = pc.is_in(words, value_set=pa.array(_TRUE)), pc.is_in(words, value_set=pa.array(_FALSE))
    # any other word is NULL
    return pc.if_else(pc.or_(yes, no), yes, pa.scalar(None, pa.bool_()))


def _integers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    digits = _matching(_trimmed(texts), _INTEGER)
    try:
        return digits.cast(kind)
    except pa.ArrowInvalid:
        return _long_integers(digits, kind)


def _long_integers(digits: pa.Array, kind: pa.DataType) -> pa.Array:
    """Parse integers with a plus sign or more digits than the type holds; out of range becomes NULL."""
    # '+007' is 7: leading zeros do not count as digits.
    short = pc.replace_substring_regex(digits, r"^([+-]?)0+([0-9])", r"\1\2")
    # 20 letters: a sign and 19 digits, as many as BIGINT has
    fits = pc.if_else(pc.less_equal(pc.binary_length(short), 20), short, pa.scalar(None, pa.string()))
    wide = fits.cast(pa.decimal128(20, 0))
    bounds = np.iinfo(kind.to_pandas_dtype())
    low, high = pa.scalar(int(bounds.min), wide.type), pa.scalar(int(bounds.max), wide.type)
    inside = pc.and_(pc.greater_equal(wide, low), pc.less_equal(wide, high))
    return pc.if_else(inside, wide, pa.scalar(None, wide.type)).cast(kind)


def _floats(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    numbers = _matching(_trimmed(texts), _DOUBLE)
    # '1.5d' and '1.5f' are numbers of Java.
    plain = pc.replace_substring_regex(numbers, r"([0-9.])[dDfF]$", r"\1")
    return plain.cast(kind)


def _decimals(texts: pa.Array, target: Decimal) -> pa.Array:
    """Parse numbers with at most 38 digits before the point. Digits after the 38th decimal place are cut."""
    numbers = _matching(_trimmed(texts), _NUMBER)
    # Arrow refuses more digits than the scale; those beyond do not reach any DECIMAL
    cut = pc.replace_substring_regex(numbers, r"(\.[0-9]{38})[0-9]+", r"\1")
    try:
        return decimals.rescaled(cut.cast(pa.decimal256(76, 38)), target)
    except pa.ArrowInvalid:
        # Some text has an exponent beyond DECIMAL(76, 38): too large is NULL, too small is 0.
        doubles = pc.abs(cut.cast(pa.float64()))
        usable = pc.and_(pc.less(doubles, 1e38), pc.or_(pc.greater(doubles, 1e-20), pc.equal(doubles, 0.0)))
        small = pc.if_else(pc.less_equal(doubles, 1e-20), pa.scalar("0"), pa.scalar(None, pa.string()))
        short = pc.replace_substring_regex(cut, r"(\.[0-9]{18})[0-9]+", r"\1")
        return decimals.rescaled(pc.if_else(usable, short, small).cast(pa.decimal256(76, 38)), target)


def _fields(texts: pa.Array, pattern: str) -> tuple[dict[str, pa.Array], np.ndarray]:
    # one struct of named groups a row, NULL where the text does not match
    groups = pc.extract_regex(texts, _named(pattern))
    fields = {field.name: pc.struct_field(groups, field.name) for field in groups.type}
    return fields, truths(pc.is_null(groups))


def _named(pattern: str) -> str:
    """Return a pattern whose unnamed groups do not capture. Arrow only extracts named groups."""
    out: list[str] = []
    for position, letter in enumerate(pattern):
        out.append(letter)
        if letter == "(" and pattern[position + 1] != "?" and pattern[position - 1 : position] != "\\":
            out.append("?:")
    return "".join(out)


def _number(fields: dict[str, pa.Array], name: str, default: str) -> np.ndarray:
    column = pc.fill_null(fields[name], default)
    filled = pc.if_else(pc.equal(column, ""), default, column)
    return values_of(filled.cast(pa.int64()))


def _micros(fields: dict[str, pa.Array]) -> np.ndarray:
    # .5 is 500,000 microseconds; digits after the sixth are cut
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(fields["f"], ""), 6, "0"), 0, 6)
    return values_of(digits.cast(pa.int64()))


def _years(fields: dict[str, pa.Array]) -> np.ndarray:
    # -0044-03-15: years before the common era
    negative = np.asarray(pc.fill_null(pc.equal(fields["sign"], "-"), False))
    years = _number(fields, "y", "1970")
    return np.where(negative, -years, years)


def _dates(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    fields, missing = _fields(_trimmed(texts), _DATE)
    times, real = local_times(
        _years(fields), _number(fields, "mo", "1"), _number(fields, "d", "1"), 0, 0, 0, 0, len(texts)
    )
    # ``real``: 30 February matches the pattern and is no date
    return array_of(times // 86_400_000_000, missing | ~real, kind)


def _clock(fields: dict[str, pa.Array]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return _number(fields, "h", "0"), _number(fields, "mi", "0"), _number(fields, "s", "0")


def _timestamps(texts: pa.Array, zone: str | None) -> pa.Array:
    """Return local times. With ``zone`` ``None`` the zone written in a text is ignored. Otherwise it is
    applied, and ``zone`` is the default.
    """
    fields, missing = _fields(_trimmed(texts), _TIMESTAMP)
    hour, minute, second = _clock(fields)
    times, real = local_times(
        _years(fields),
        _number(fields, "mo", "1"),
        _number(fields, "d", "1"),
        hour,
        minute,
        second,
        _micros(fields),
        len(texts),
    )
    local = array_of(times, missing | ~real, LOCAL)
    return local if zone is None else _in_zones(local, pc.fill_null(fields["zone"], ""), zone)


def _instants(texts: pa.Array, zone: str) -> pa.Array:
    try:
        # Texts without a zone only: Arrow refuses a zone for a local time.
        return to_instant(texts.cast(LOCAL), zone)
    except pa.ArrowInvalid:
        return _timestamps(texts, zone)


def _in_zones(local: pa.Array, names: pa.Array, session_zone: str) -> pa.Array:
    """Return the instants of local times, each in the zone of its text; the default is the session zone. It
    runs one step per distinct zone.
    """
    result = to_instant(local, session_zone)
    # a column has few distinct zones
    for name in pc.unique(names).to_pylist():
        if not name:
            continue
        here = pc.equal(names, name)
        part = local.filter(here)
        # An offset is subtracted; a region goes through its calendar.
        offset = _offset_us(name)
        instants = (
            to_instant(part, name)
            if offset is None
            else array_of(values_of(part) - offset, truths(pc.is_null(part)), result.type)
        )
        result = pc.replace_with_mask(result, here, instants)
    return result


def _offset_us(name: str) -> int | None:
    """Return an offset such as ``Z``, ``+01:30`` or ``UTC-5`` in microseconds east of UTC. ``None`` for a
    region.
    """
    # Z, UTC and GMT alone mean no offset; UTC-5 has one
    offset_text = name.removeprefix("Z")
    for prefix in ("UTC", "GMT", "UT"):
        offset_text = offset_text.removeprefix(prefix)
    if not offset_text:
        return 0
    if offset_text[0] not in "+-":
        return None
    body = offset_text[1:]
    parts = (
        # 1:30, 01, 0130, 013000
        body.split(":")
        if ":" in body or len(body) <= 2
        else [body[i : i + 2] for i in range(0, len(body), 2)]
    )
    seconds = sum(int(part) * factor for part, factor in zip(parts, (3600, 60, 1), strict=False))
    return (-seconds if offset_text[0] == "-" else seconds) * 1_000_000


def _times(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    fields, missing = _fields(_trimmed(texts), _TIME)
    hour, minute, second = _clock(fields)
    real = (hour < 24) & (minute < 60) & (second < 60)
    return array_of(((hour * 60 + minute) * 60 + second) * 1_000_000 + _micros(fields), missing | ~real, kind)
