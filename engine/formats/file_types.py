"""Types of self-describing files read as declared types: one table of rules for the stream, for DuckDB and
for Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import PenstockError
from penstock.catalog.types import (
    Array,
    Binary,
    Boolean,
    DataType,
    Date,
    DayTimeInterval,
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
    from_arrow,
    holds,
    is_integer,
    to_arrow,
)
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.expressions.datum import nulls_of
from penstock.engine.expressions.nested.lists import Lists, codes_of, firsts, lists_of
from penstock.engine.formats.json_nested import holds_map
from penstock.engine.formats.text_conversion import uuid_texts, variants
from penstock.engine.formats.variant_columns import decoded, is_encoded
from penstock.engine.kernels.arrow_views import words

# decimal digits of the greatest integer of so many bits
_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
# integers of fewer bits are exact in the significand
_EXACT_BITS = {"FLOAT": 24, "DOUBLE": 53}
_NS_PER_US = 1000
_US_PER = {"ms": 1000, "s": 1_000_000}


class Fit(IntEnum):
    """How a file's type is read as a declared one. A greater value asks more of a reader."""

    SAME = 0
    """The values are the declared type's as they are."""

    WIDER = 1
    """Every value is exactly one of the declared type."""

    TESTED = 2
    """Each value is tested or converted by a rule of ours; backends that read files themselves have other
    rules.
    """


def fit(have: pa.DataType, declared: DataType) -> Fit | None:
    """Return the fit of a file's type to a declared type, ``None`` where it is refused: values are never
    rounded, kinds never mixed.
    """
    # dictionary and extension types are ways to store; the values decide
    have, wrapped = _bare(have)
    fitting = Fit.WIDER if pa.types.is_null(have) else _fit(have, declared)
    # other readers see the storage of an extension type, so only ours converts it
    return max(fitting, Fit.TESTED) if wrapped and fitting is not None else fitting


def sql_type(have: pa.DataType) -> DataType:
    """Return the SQL type of a file's type. SQL-1203 when there is none."""
    return from_arrow(_bare(have)[0])


def type_name(have: pa.DataType) -> str:
    """Return the SQL type of a file's type, or Arrow's name when there is none."""
    try:
        return str(sql_type(have))
    except PenstockError:
        return str(have)


def matching(names: Sequence[str], wanted: str) -> list[int]:
    """Return the indexes of the columns with a declared name; case is ignored."""
    folded = wanted.lower()
    return [index for index, name in enumerate(names) if name.lower() == folded]


def read_as(column: pa.Array, declared: DataType) -> pa.Array:
    """Return a file's column as a declared type it fits; ArrowInvalid when a value does not."""
    target = to_arrow(declared)
    # the usual case: nothing to do
    if column.type == target and not is_checked(declared):
        return column
    # a UUID is a text of 36 characters or its 16 bytes
    if isinstance(column, pa.ExtensionArray):
        texts = isinstance(declared, String) and isinstance(column.type, pa.UuidType)
        return uuid_texts(column.storage) if texts else read_as(column.storage, declared)
    # the values decide, so the dictionary is decoded first
    if isinstance(column, pa.DictionaryArray):
        return read_as(column.cast(column.type.value_type), declared)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), target)
    return _converted(column, declared, target)


def is_checked(declared: DataType) -> bool:
    """Return whether values of a type are looked at whatever a file's type is: a MAP may have a key twice,
    and a VARIANT is a text that may be no JSON.
    """
    return holds_map(declared) or holds(declared, Variant)


def _bare(have: pa.DataType) -> tuple[pa.DataType, bool]:
    """Return the type of the values without dictionary encoding, and whether it was wrapped in an extension
    type.
    """
    wrapped = False
    while isinstance(have, pa.BaseExtensionType) or pa.types.is_dictionary(have):
        wrapped |= isinstance(have, pa.BaseExtensionType)
        if isinstance(have, pa.UuidType):
            return pa.string(), True  # as text; as BYTES its storage fits as well
        have = have.value_type if pa.types.is_dictionary(have) else have.storage_type
    return have, wrapped


def _fit(have: pa.DataType, declared: DataType) -> Fit | None:
    match declared:
        case Null():
            return None  # a column of nothing but NULL is of any type
        case Boolean():
            return Fit.SAME if pa.types.is_boolean(have) else None
        # months as an integer of 32 bits
        case YearMonthInterval():
            return _integer_fit(have, 31) if pa.types.is_integer(have) else None
        case Float() | Double():
            return _floating_fit(have, declared)
        case Decimal():
            return _decimal_fit(have, declared)
        case String() | Binary():
            return _bytes_fit(have, declared)
        case Array() | Map() | Row():
            return _nested_fit(have, declared)
        # JSON as text, or the encoding of Parquet
        case Variant():
            return Fit.TESTED if is_encoded(have) or _bytes_fit(have, String()) is not None else None
    if is_integer(declared):
        return _integer_fit(have, to_arrow(declared).bit_width - 1)
    return _time_fit(have, declared)


def _integer_fit(have: pa.DataType, bits: int) -> Fit | None:
    """The fit of numbers to integers of so many bits, the sign bit excluded."""
    # 3.0 is an integer, 3.5 is refused: each value is tested
    if not pa.types.is_integer(have):
        return Fit.TESTED if pa.types.is_floating(have) or pa.types.is_decimal(have) else None
    # uint32 has 32 bits of value and does not fit INT, which has 31
    mine = have.bit_width - pa.types.is_signed_integer(have)
    if mine > bits:
        return Fit.TESTED
    return Fit.SAME if mine == bits else Fit.WIDER


def _floating_fit(have: pa.DataType, declared: DataType) -> Fit | None:
    if pa.types.is_integer(have):
        return Fit.WIDER if have.bit_width <= _EXACT_BITS[str(declared)] else Fit.TESTED
    # a DOUBLE in a FLOAT would be rounded
    if not pa.types.is_floating(have) or have.bit_width > to_arrow(declared).bit_width:
        return None
    if pa.types.is_float16(have):
        return Fit.TESTED  # Spark does not know it
    return Fit.SAME if have == to_arrow(declared) else Fit.WIDER


def _decimal_fit(have: pa.DataType, declared: Decimal) -> Fit | None:
    whole_digits = declared.precision - declared.scale
    if pa.types.is_integer(have):
        # 2^64 - 1 has 20 digits, one more than int64
        digits = 20 if have == pa.uint64() else _DIGITS[have.bit_width]
        return Fit.WIDER if digits <= whole_digits else Fit.TESTED
    if not pa.types.is_decimal(have):
        return None
    if have == to_arrow(declared):
        return Fit.SAME
    # digits before and after the point must both fit; negative scales are left to our conversion
    fits = (
        pa.types.is_decimal128(have)
        and 0 <= have.scale <= declared.scale
        and have.precision - have.scale <= whole_digits
    )
    return Fit.WIDER if fits else Fit.TESTED


def _bytes_fit(have: pa.DataType, declared: DataType) -> Fit | None:
    texts = pa.types.is_string(have) or pa.types.is_large_string(have) or pa.types.is_string_view(have)
    raw = pa.types.is_binary(have) or pa.types.is_large_binary(have) or pa.types.is_binary_view(have)
    # bytes as text are tested for UTF-8
    if isinstance(declared, String):
        return Fit.SAME if texts else Fit.TESTED if raw or pa.types.is_fixed_size_binary(have) else None
    return Fit.SAME if raw else Fit.TESTED if texts or pa.types.is_fixed_size_binary(have) else None


def _time_fit(have: pa.DataType, declared: DataType) -> Fit | None:
    match declared:
        case Date() if pa.types.is_date(have):
            return Fit.SAME if pa.types.is_date32(have) else Fit.TESTED
        # only a timestamp at midnight is a DATE: tested value by value
        case Date() if pa.types.is_timestamp(have) and have.tz is None:
            return Fit.TESTED
        # midnight of the day
        case Timestamp() if pa.types.is_date32(have):
            return Fit.WIDER
        case Timestamp() | TimestampLtz() if pa.types.is_timestamp(have):
            # ns: digits beyond microseconds are cut. A zone on one side only: both are equal at UTC.
            unzoned = have.tz is None
            return (
                Fit.TESTED
                if have.unit == "ns" or unzoned != isinstance(declared, Timestamp)
                else Fit.SAME
                if have.unit == "us"
                else Fit.WIDER
            )
        case Time() if pa.types.is_time(have):
            return Fit.SAME if have == pa.time64("us") else Fit.TESTED
        # an int64 is a count of microseconds
        case DayTimeInterval() if pa.types.is_duration(have) or have == pa.int64():
            return Fit.SAME if have == pa.duration("us") else Fit.TESTED
    return None


def _nested_fit(have: pa.DataType, declared: DataType) -> Fit | None:
    parts: list[Fit | None] = []
    match declared:
        case Array(element) if _is_list(have):
            parts = [fit(have.value_type, element)]
        case Map(key, value) if pa.types.is_map(have):
            parts = [fit(have.key_type, key), fit(have.item_type, value)]
        case Row(fields) if pa.types.is_struct(have):
            positions = row_positions(have, declared)
            # fields by name; a field that the file lacks refuses the row
            parts = [
                None if position is None else fit(have.field(position).type, kind)
                for position, (_, kind) in zip(positions, fields, strict=True)
            ]
        case _:
            return None
    # one part that is refused refuses the whole type
    if None in parts:
        return None
    return (
        max([one for one in parts if one is not None], default=Fit.WIDER)
        if not _is_rebuilt(have, declared)
        else Fit.TESTED
    )


def _is_rebuilt(have: pa.DataType, declared: DataType) -> bool:
    """Whether converting the parts is not enough. Keys of maps are tested, and fields of rows are matched by
    name where others match by order.
    """
    return isinstance(declared, Map) or (
        isinstance(declared, Row) and [field.name for field in have] != [name for name, _ in declared.fields]
    )


def row_positions(have: pa.StructType, declared: Row) -> list[int | None]:
    """Return the indexes of the declared fields in a file's rows; ``None`` for a field that is missing or
    ambiguous.
    """
    names = [field.name for field in have]
    candidates = [matching(names, name) for name, _ in declared.fields]
    return [positions[0] if len(positions) == 1 else None for positions in candidates]


def _is_list(have: pa.DataType) -> bool:
    kinds = (
        pa.types.is_list,
        pa.types.is_large_list,
        pa.types.is_fixed_size_list,
        pa.types.is_list_view,
        pa.types.is_large_list_view,
    )
    return any(is_kind(have) for is_kind in kinds)


def _converted(column: pa.Array, declared: DataType, target: pa.DataType) -> pa.Array:
    have = column.type
    match declared:
        case Variant():
            return decoded(column) if is_encoded(have) else variants(column.cast(target))
        case Array(element):
            # element type by element type, with the lists' lengths and NULLs unchanged
            lists = lists_of(column)
            return Lists(read_as(lists.flat, element), lists.lengths, lists.missing).column()
        case Map(key, value):
            return _maps(lists_of(column), key, value)
        case Row(fields):
            positions = row_positions(have, declared)
            parts = [
                read_as(pc.struct_field(column, position), kind)
                for position, (_, kind) in zip(positions, fields, strict=True)
            ]
            return pa.StructArray.from_arrays(
                parts, fields=list(target), mask=pc.is_null(column) if column.null_count else None
            )
        # all are counted in microseconds here
        case Timestamp() | TimestampLtz() | DayTimeInterval() | Time():
            return _micros(column, target)
        # a timestamp is a DATE at midnight only
        case Date() if pa.types.is_timestamp(have):
            days = column.cast(target)
            if pc.any(pc.not_equal(days.cast(have), column)).as_py():
                raise pa.ArrowInvalid("a timestamp that is not midnight is no DATE")
            return days
        case Decimal() if pa.types.is_integer(have):
            # Arrow's cast requires digits for every value of the integer type, so the detour is wide
            return column.cast(pa.decimal256(58, target.scale)).cast(target)
        case String() | Binary() if pa.types.is_fixed_size_binary(have):
            return column.cast(pa.binary()).cast(target)
    return column.cast(target)


def _maps(lists: Lists, key: DataType, value: DataType) -> pa.Array:
    keys, values = (pc.struct_field(lists.flat, index) for index in range(2))
    keys, values = read_as(keys, key), read_as(values, value)
    # a key that occurs again in its map
    if not firsts(lists.starts, codes_of(keys)).all():
        raise pa.ArrowInvalid("a MAP has a key twice")
    return Lists(
        pa.StructArray.from_arrays([keys, values], ["key", "value"]), lists.lengths, lists.missing
    ).maps()


def _micros(column: pa.Array, target: pa.DataType) -> pa.Array:
    """Times and durations in microseconds; finer digits are truncated towards the past. A TIMESTAMP and an
    instant are equal at UTC.
    """
    have = column.type
    # a day is midnight
    if pa.types.is_date(have):
        return column.cast(target)
    # the raw counts of whatever unit; time32 has 32 bits
    counts = column.view(pa.int32() if have.bit_width == 32 else pa.int64()).cast(pa.int64())
    if pa.types.is_int64(have) or have.unit == "us":
        return counts.view(target)
    # floor division truncates towards the past, also before 1970
    if have.unit == "ns":
        return array_of(words(counts) // _NS_PER_US, nulls_of(counts)).view(target)
    # checked: a time in seconds may be beyond what microseconds can count
    return pc.multiply_checked(counts, _US_PER[have.unit]).view(target)
