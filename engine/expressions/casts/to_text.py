"""CAST to STRING, as Spark prints values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    Boolean,
    DataType,
    Date,
    DayTimeInterval,
    Decimal,
    Double,
    Float,
    Time,
    TimestampLtz,
    YearMonthInterval,
    is_timestamp,
)
from penstock.engine.expressions.datetime.date_arithmetic import to_local
from penstock.engine.expressions.datum import nulls_of, values_of
from penstock.engine.expressions.evaluation_errors import bad_argument

Printer = Callable[[pa.Array], pa.Array]

_TEXT = pa.string()
# with a larger scale Arrow may print a small decimal as 1E-7
_NEVER_IN_E_NOTATION = 6


def to_text(source: DataType, zone: str) -> Printer:
    """Return a function from values of a type to their texts."""
    if isinstance(source, Float | Double):
        return _floats
    if isinstance(source, Decimal) and source.scale > _NEVER_IN_E_NOTATION:
        return lambda column: _plain_decimals(column, source.scale)
    if isinstance(source, TimestampLtz):
        return lambda column: without_zeros(to_local(column, zone).cast(_TEXT))
    if is_timestamp(source) or isinstance(source, Time):
        return lambda column: without_zeros(column.cast(_TEXT))
    if isinstance(source, DayTimeInterval):
        return _day_time
    if isinstance(source, YearMonthInterval):
        return _year_month
    if isinstance(source, Boolean | Date):
        return lambda column: column.cast(_TEXT)
    return _others


def _others(column: pa.Array) -> pa.Array:
    """Print integers and decimals, pass text through, and read bytes as UTF-8. Raise Fault RUN-2004 for
    invalid UTF-8.
    """
    try:
        return column.cast(_TEXT)
    except pa.ArrowInvalid:
        raise bad_argument("these bytes are no text in UTF-8") from None


def without_zeros(texts: pa.Array) -> pa.Array:
    """Return times without trailing zeros in the fraction, and without the point if no fraction remains."""
    return pc.utf8_rtrim(pc.utf8_rtrim(texts, characters="0"), characters=".")


def _plain_decimals(column: pa.Array, scale: int) -> pa.Array:
    """Print all digits of a decimal, never with an exponent."""
    # the same bytes with scale 0: an integer, which never has an exponent
    whole = pa.Array.from_buffers(
        pa.decimal128(column.type.precision, 0),
        len(column),
        column.buffers(),
        column.null_count,
        column.offset,
    )
    # at least one digit before the point: 0.0000001
    digits = pc.utf8_lpad(pc.cast(pc.abs(whole), _TEXT), scale + 1, "0")
    text = pc.binary_join_element_wise(
        pc.utf8_slice_codeunits(digits, 0, -scale), pc.utf8_slice_codeunits(digits, -scale, None), "."
    )
    negative = pc.less(whole, pa.scalar(0, whole.type))
    return pc.if_else(negative, pc.binary_join_element_wise("-", text, ""), text)


def _floats(column: pa.Array) -> pa.Array:
    """Print floats as Java does: plain digits from 0.001 to below ten million, otherwise with an exponent
    (``1.5E7``).
    """
    values = values_of(column)
    text = column.cast(_TEXT)
    with np.errstate(all="ignore"):
        size = np.abs(values)
        special = ~np.isfinite(values)
        # Java's limits for digits without an exponent
        plain = ((size >= 1e-3) & (size < 1e7)) | (size == 0)
    # NaN and infinities have Java's names.
    if special.any():
        named = np.where(np.isnan(values), "NaN", np.where(values > 0, "Infinity", "-Infinity"))
        text = pc.if_else(pa.array(special & ~_missing(column)), pa.array(named.astype(object), _TEXT), text)
    # Arrow prints 5, Java 5.0.
    whole = pc.and_(pa.array(plain), pc.invert(pc.match_substring(text, ".")))
    text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)
    # Only the few very large and very small numbers take the slower way by regular expression.
    far = ~plain & ~special & ~_missing(column)
    if not far.any():
        return text
    mask = pa.array(far)
    return pc.replace_with_mask(text, mask, _scientific(text.filter(mask)))


def _missing(column: pa.Array) -> np.ndarray:
    missing = nulls_of(column)
    return np.zeros(len(column), bool) if missing is None else missing


def _scientific(texts: pa.Array) -> pa.Array:
    """Turn ``12345678.9``, ``0.00012`` and ``1e+20`` into ``1.23456789E7``, ``1.2E-4`` and ``1.0E20``."""
    parts = pc.extract_regex(
        texts, r"^(?P<sign>-?)(?P<whole>[0-9]+)\.?(?P<decimals>[0-9]*)(?:e(?P<power>[+-]?[0-9]+))?$"
    )
    sign, whole, decimals = (pc.struct_field(parts, name) for name in ("sign", "whole", "decimals"))
    power_text = pc.replace_substring(pc.struct_field(parts, "power"), "+", "")
    power = values_of(pc.cast(pc.if_else(pc.equal(power_text, ""), "0", power_text), pa.int64()))
    digits = pc.binary_join_element_wise(whole, decimals, "")
    significant = pc.utf8_ltrim(digits, characters="0")
    # 0.00012 has four leading zeros in 000012
    leading = values_of(pc.binary_length(digits)) - values_of(pc.binary_length(significant))
    # The point moves behind the first digit that is not zero.
    exponent = power + values_of(pc.binary_length(whole)) - 1 - leading
    tail = pc.utf8_rtrim(pc.utf8_slice_codeunits(significant, 1, None), characters="0")
    # 1.0E20, never 1E20
    tail = pc.if_else(pc.equal(tail, ""), "0", tail)
    head = pc.utf8_slice_codeunits(significant, 0, 1)
    return pc.binary_join_element_wise(sign, head, ".", tail, "E", pc.cast(pa.array(exponent), _TEXT), "")


def _two(numbers: np.ndarray) -> pa.Array:
    return pc.utf8_lpad(pa.array(numbers).cast(_TEXT), 2, "0")


def _signed(negative: np.ndarray) -> pa.Array:
    return pc.if_else(pa.array(negative), pa.scalar("-"), pa.scalar(""))


def _day_time(column: pa.Array) -> pa.Array:
    """``INTERVAL '1 02:03:04.5' DAY TO SECOND``."""
    values = values_of(column)
    size = np.abs(values)
    # the magnitude is split; the sign is written once, before the days
    seconds, micros = np.divmod(size, 1_000_000)
    minutes, second = np.divmod(seconds, 60)
    hours, minute = np.divmod(minutes, 60)
    days, hour = np.divmod(hours, 24)
    fraction = pc.utf8_rtrim(pc.utf8_lpad(pa.array(micros).cast(_TEXT), 6, "0"), characters="0")
    fraction = pc.if_else(pc.equal(fraction, ""), "", pc.binary_join_element_wise(".", fraction, ""))
    clock = pc.binary_join_element_wise(_two(hour), _two(minute), _two(second), ":")
    text = pc.binary_join_element_wise(
        "INTERVAL '",
        _signed(values < 0),
        pa.array(days).cast(_TEXT),
        " ",
        clock,
        fraction,
        "' DAY TO SECOND",
        "",
    )
    return _with_nulls(text, column)


def _year_month(column: pa.Array) -> pa.Array:
    """``INTERVAL '1-2' YEAR TO MONTH``."""
    values = values_of(column)
    years, months = np.divmod(np.abs(values), 12)
    body = pc.binary_join_element_wise(pa.array(years).cast(_TEXT), pa.array(months).cast(_TEXT), "-")
    text = pc.binary_join_element_wise("INTERVAL '", _signed(values < 0), body, "' YEAR TO MONTH", "")
    return _with_nulls(text, column)


def _with_nulls(text: pa.Array, column: pa.Array) -> pa.Array:
    missing = nulls_of(column)
    return text if missing is None else pc.if_else(pa.array(missing), pa.scalar(None, _TEXT), text)
