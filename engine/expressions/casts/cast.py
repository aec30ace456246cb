"""CAST and TRY_CAST. Both use the same conversions, which return NULL for a value that does not fit. CAST
then faults on such a NULL.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    STRING,
    Array,
    Boolean,
    DataType,
    Date,
    Decimal,
    Double,
    Float,
    Map,
    Null,
    Row,
    String,
    Time,
    Timestamp,
    TimestampLtz,
    Variant,
    YearMonthInterval,
    holds,
    is_integer,
    is_numeric,
    to_arrow,
)
from penstock.engine.expressions.casts.from_text import from_text
from penstock.engine.expressions.casts.nested import nested_cast, nested_text
from penstock.engine.expressions.casts.to_text import to_text
from penstock.engine.expressions.casts.variant import from_variant, to_variant
from penstock.engine.expressions.datetime.date_arithmetic import INSTANT, LOCAL, to_instant, to_local
from penstock.engine.expressions.datum import Datum, Kernel, aligned, array_of, nulls_of, values_of
from penstock.engine.expressions.evaluation_errors import bad_argument, bad_cast, out_of_range
from penstock.engine.expressions.numeric import decimals

Conversion = Callable[[pa.Array], pa.Array]


def cast_kernel(source: DataType, target: DataType, safe: bool, zone: str = "UTC") -> Kernel | None:
    """Return the kernel of a cast, or ``None`` when the values do not change. ``safe`` (TRY_CAST) returns
    NULL where CAST raises Fault RUN-2003 or RUN-2002.
    """
    if to_arrow(source) == to_arrow(target) and not _changes(source, target):
        return None
    # conversions return NULL for a misfit; only the wrapper below knows whether that is an error
    convert = _conversion(source, target, zone, safe)
    # the null of JSON is NULL, and no misfit: the conversion itself raises
    if safe or isinstance(source, Variant):
        return lambda datum: convert(*aligned(datum))
    from_string = isinstance(source, String)

    def strict(datum: Datum) -> pa.Array:
        (column,) = aligned(datum)
        result = convert(column)
        # The conversion made a NULL: report the first such value.
        if result.null_count > column.null_count:
            bad = column.filter(pc.and_(pc.is_valid(column), pc.is_null(result)))[0].as_py()
            raise bad_cast(bad, target) if from_string else out_of_range(target, bad)
        return result

    return strict


def _changes(source: DataType, target: DataType) -> bool:
    """Return whether a cast with equal Arrow types changes the meaning. INTERVAL YEAR TO MONTH has the same
    Arrow type as INT, VARIANT the same as STRING.
    """
    if source != target and (holds(source, Variant) or holds(target, Variant)):
        return True
    return isinstance(source, YearMonthInterval) != isinstance(target, YearMonthInterval)


def _conversion(source: DataType, target: DataType, zone: str, safe: bool) -> Conversion:
    """Return the conversion, chosen by the target type first. ``penstock.catalog.coercion.can_cast`` has
    accepted the pair.
    """
    arrow = to_arrow(target)
    # CAST(NULL AS type)
    if isinstance(source, Null):
        return lambda column: pa.nulls(len(column), arrow)
    if isinstance(source, Variant):
        # TRY for parts of it: the conversion itself knows what is a misfit
        return from_variant(target, safe, lambda mine, theirs: cast_kernel(mine, theirs, True, zone))
    if isinstance(target, Variant):
        return to_variant(source, zone)
    # To text; from text; between numbers; to BOOLEAN; to dates and times; nested types part by part.
    if isinstance(target, String):
        return _text_of(source, zone)
    if isinstance(source, String):
        return from_text(target, zone)
    if is_numeric(target):
        return _to_number(source, target)
    if isinstance(target, Boolean) and is_numeric(source):
        zero = pa.scalar(0, to_arrow(source))
        return lambda column: pc.not_equal(column, zero)
    if isinstance(target, Date | Time | Timestamp | TimestampLtz):
        return _to_moment(source, target, zone)
    parts = nested_cast(source, target, lambda mine, theirs: cast_kernel(mine, theirs, safe, zone))
    if parts is not None:
        return parts
    raise bad_argument(f"{source} cannot be cast to {target}")


def _text_of(source: DataType, zone: str) -> Conversion:
    if isinstance(source, Variant):
        return from_variant(STRING, True, lambda mine, theirs: cast_kernel(mine, theirs, True, zone))
    if isinstance(source, Array | Map | Row):
        return nested_text(source, lambda part: _text_of(part, zone))
    return (
        (lambda column: column)
        if isinstance(source, String)
        else (lambda column: column.cast(pa.string()))
        if isinstance(source, Null)
        else to_text(source, zone)
    )


def _to_number(source: DataType, target: DataType) -> Conversion:
    arrow = to_arrow(target)
    # TRUE is 1, FALSE is 0
    if isinstance(source, Boolean):
        if isinstance(target, Decimal):
            return lambda column: decimals.rescaled(column.cast(pa.int8()).cast(pa.decimal128(3, 0)), target)
        return lambda column: column.cast(pa.int8()).cast(arrow)
    # CAST(ts AS BIGINT) counts seconds.
    if isinstance(source, TimestampLtz):
        return _seconds(target)
    # any numeric type to FLOAT or DOUBLE: the nearest value, infinity when too large
    if isinstance(target, Float | Double) and isinstance(source, Decimal):
        return lambda column: _decimals_to_floats(column).cast(arrow, safe=False)
    if isinstance(target, Float | Double):
        return lambda column: pc.cast(column, arrow, safe=False)
    if isinstance(target, Decimal):
        return _to_decimal(source, target)
    # to integers: the fraction is cut; NaN and numbers out of range become NULL
    if isinstance(source, Float | Double):
        return lambda column: _floats_to_integers(column, arrow)
    if isinstance(source, Decimal):
        return lambda column: _decimals_to_integers(column, arrow)
    if is_integer(source):
        return lambda column: _narrowed(column, arrow)
    raise bad_argument(f"{source} cannot be cast to {target}")


def _seconds(target: DataType) -> Conversion:
    """Return the conversion of an instant to seconds since 1970: whole for integers, with fraction for floats
    and decimals.
    """
    if is_integer(target):
        arrow = to_arrow(target)
        return lambda column: _narrowed(
            array_of(values_of(column) // 1_000_000, nulls_of(column), pa.int64()), arrow
        )
    if isinstance(target, Decimal):
        return lambda column: decimals.rescaled(_relabelled_micros(column), target)
    return lambda column: array_of(values_of(column) / 1e6, nulls_of(column), pa.float64()).cast(
        to_arrow(target)
    )


def _relabelled_micros(column: pa.Array) -> pa.Array:
    # microseconds as whole numbers, read again with six digits after the point: no division
    wide = column.view(pa.int64()).cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(
        pa.decimal128(25, 6), len(wide), wide.buffers(), wide.null_count, wide.offset
    )


def _to_decimal(source: DataType, target: Decimal) -> Conversion:
    if is_integer(source):
        return lambda column: decimals.integers_as(column, target)
    if isinstance(source, Float | Double):
        return lambda column: _floats_to_decimals(column, target)
    return lambda column: decimals.rescaled(column, target)


def _floats_to_decimals(column: pa.Array, target: Decimal) -> pa.Array:
    """Convert by the digits that a DOUBLE prints with, as Java does, not by its binary value. Values below
    1e-20 become zero.
    """
    column = column.cast(pa.float64())
    values = values_of(column)
    with np.errstate(all="ignore"):
        # DECIMAL has at most 38 digits.
        inside = np.isfinite(values) & (np.abs(values) < 1e38)
        tiny = np.abs(values) < 1e-20
    missing = nulls_of(column)
    rounded = pc.if_else(pa.array(tiny), pa.scalar(0.0, column.type), column)
    # What is outside must not reach the text's parser: it would fault for the whole column.
    known = pc.if_else(
        pa.array(inside if missing is None else inside & ~missing), rounded, pa.scalar(None, column.type)
    )
    # decimal256: 38 digits on each side of the point
    return decimals.rescaled(known.cast(pa.string()).cast(pa.decimal256(76, 38)), target)


# A DOUBLE holds every integer of 15 digits, and powers of ten to 1e22, exactly: one division rounds right.
_EXACT_DIGITS = 15
_EXACT_SCALE = 22


def _decimals_to_floats(column: pa.Array) -> pa.Array:
    """Return the nearest float of each decimal. Arrow's own cast is sometimes off by a digit."""
    precision, scale = column.type.precision, column.type.scale
    if precision <= _EXACT_DIGITS and scale <= _EXACT_SCALE:
        # a decimal128 is two words of 64 bits; with 15 digits the low one has the value
        pairs = np.frombuffer(column.buffers()[1], "<i8", count=2 * len(column), offset=16 * column.offset)
        return array_of(pairs[::2] / 10.0**scale, nulls_of(column), pa.float64())
    return column.cast(pa.string()).cast(pa.float64())


def _floats_to_integers(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Truncate towards zero. NaN and values that do not fit become NULL."""
    values = values_of(column)
    bounds = np.iinfo(arrow.to_pandas_dtype())
    with np.errstate(all="ignore"):
        whole = np.trunc(values)
        # 2^63 - 1 becomes 2^63 as a float, so for BIGINT the comparison itself excludes it.
        inside = (whole >= float(bounds.min)) & (
            whole < float(bounds.max) + (1.0 if bounds.bits < 64 else 0.0)
        )
        integers = np.where(inside, whole, 0).astype(bounds.dtype)
    missing = nulls_of(column)
    return array_of(
        integers, (~inside if missing is None else ~inside | missing) if not inside.all() else missing, arrow
    )


def _decimals_to_integers(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    # cut first, then compared: 127.9 fits TINYINT
    whole = pc.round(decimals.widened(column), 0, "towards_zero").cast(pa.decimal256(76, 0))
    bounds = np.iinfo(arrow.to_pandas_dtype())
    low, high = pa.scalar(int(bounds.min), whole.type), pa.scalar(int(bounds.max), whole.type)
    inside = pc.and_(pc.greater_equal(whole, low), pc.less_equal(whole, high))
    return pc.if_else(inside, whole, pa.scalar(None, whole.type)).cast(arrow)


def _narrowed(column: pa.Array, arrow: pa.DataType) -> pa.Array:
    """Return integers of another width. Values that do not fit become NULL."""
    # A wider type holds every value.
    if arrow.bit_width >= column.type.bit_width:
        return column.cast(arrow)
    bounds = np.iinfo(arrow.to_pandas_dtype())
    values = values_of(column)
    outside = (values < bounds.min) | (values > bounds.max)
    missing = nulls_of(column)
    if outside.any():
        missing = outside if missing is None else missing | outside
    return array_of(values.astype(bounds.dtype), missing, arrow)


def _to_moment(source: DataType, target: DataType, zone: str) -> Conversion:
    # CAST(n AS TIMESTAMP_LTZ): seconds since 1970
    if is_numeric(source) and isinstance(target, TimestampLtz):
        return _from_seconds(source)
    # an instant has a date and a time of day only in the session zone
    if isinstance(target, Date):
        return lambda column: pc.cast(
            column if column.type.tz is None else to_local(column, zone), pa.date32(), safe=False
        )
    if isinstance(target, Time):
        return lambda column: pc.cast(
            column if column.type.tz is None else to_local(column, zone), pa.time64("us"), safe=False
        )
    if isinstance(target, TimestampLtz):
        return lambda column: (
            # a TIMESTAMP or DATE is a wall-clock time of the session zone
            column.view(INSTANT) if column.type == INSTANT else to_instant(column.cast(LOCAL), zone)
        )
    return lambda column: column.cast(LOCAL) if pa.types.is_date(column.type) else to_local(column, zone)


def _from_seconds(source: DataType) -> Conversion:
    if is_integer(source):
        return lambda column: pc.multiply_checked(
            column.cast(pa.int64()), pa.scalar(1_000_000, pa.int64())
        ).view(INSTANT)

    if isinstance(source, Decimal):
        return lambda column: _decimals_to_integers(decimals.in_millionths(column), pa.int64()).view(INSTANT)

    def convert(column: pa.Array) -> pa.Array:
        # NaN and infinities have no instant: NULL, which strict casts report
        micros = values_of(column.cast(pa.float64())) * 1e6
        inside = np.isfinite(micros) & (np.abs(micros) < 2.0**63)
        missing = nulls_of(column)
        return array_of(
            np.where(inside, micros, 0).astype(np.int64),
            ~inside if missing is None else ~inside | missing,
            INSTANT,
        )

    return convert
