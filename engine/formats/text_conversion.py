"""Texts as values of the types that Arrow's csv and json readers do not parse themselves; one rule for both
formats.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import (
    Binary,
    DataType,
    DayTimeInterval,
    String,
    Timestamp,
    TimestampLtz,
    Variant,
    YearMonthInterval,
    to_arrow,
)
from penstock.engine.expressions.casts import from_text as casts_from_text
from penstock.engine.expressions.json.canonical_text import canonical_texts, why_none

# around a value; Unicode counts the separators \x1c to \x1f as blanks too
_BLANKS = " \t\n\v\f\r"
_CONTROL = r"[\x00-\x08\x0e-\x1f\x7f]"
_ZONE = r":[0-9.]+(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"


def from_text(texts: pa.Array, kind: DataType) -> pa.Array:
    """Cast a text column to a SQL type; accepts the spellings that CAST accepts. ArrowInvalid when a value
    does not fit.

    A TIMESTAMP_LTZ without zone is UTC. A TIMESTAMP with a zone is refused, because the zone would be lost.
    Surrounding blanks are part of a STRING and of BYTES, and of no other value; other control characters are
    an error there.
    """
    if isinstance(kind, String | Binary):
        return texts.cast(to_arrow(kind))
    if isinstance(kind, Variant):
        return variants(texts)
    try:
        # first by Arrow, except integers, for which it accepts hexadecimal
        if not pa.types.is_integer(to_arrow(kind)):
            return _plainly(texts, kind)
    except pa.ArrowInvalid:
        # a count of microseconds or months has one spelling only
        if isinstance(kind, DayTimeInterval | YearMonthInterval):
            raise
    # then by the rule of CAST, value by value
    if isinstance(kind, Timestamp) and pc.any(pc.match_substring_regex(texts, _ZONE)).as_py():
        raise pa.ArrowInvalid("a TIMESTAMP has no zone, TIMESTAMP_LTZ has")
    # CAST ignores these at the ends of a text, as Spark does; in a file they are damage, such as zeros where
    # a disk was full
    if pc.any(pc.match_substring_regex(texts, _CONTROL)).as_py():
        raise pa.ArrowInvalid("a control character is no part of a value")
    values = casts_from_text.from_text(kind, "UTC")(texts)
    # the kernel of TRY_CAST returns NULL for a value that does not fit
    if values.null_count > texts.null_count:
        raise pa.ArrowInvalid(f"not a valid {kind}")
    return values.cast(to_arrow(kind))


def variants(texts: pa.Array) -> pa.Array:
    """Return JSON texts as values of VARIANT. ArrowInvalid for a text that is none."""
    values, wrong = canonical_texts(texts)
    if wrong.any():
        raise pa.ArrowInvalid(why_none(texts[int(wrong.argmax())].as_py()))
    return values


def checked(column: pa.Array, raw: bytes) -> pa.Array:
    """Return a column that Arrow parsed from raw text. ArrowInvalid where Arrow is more lenient than SQL:
    hexadecimal, digits beyond a precision.
    """
    if pa.types.is_decimal(column.type):
        column.validate(full=True)
    elif pa.types.is_integer(column.type) and _may_be_hexadecimal(raw):
        raise pa.ArrowInvalid("there may be hexadecimal numbers")
    return column


def _may_be_hexadecimal(raw: bytes) -> bool:
    """Return whether any value contains a 0 followed by an x."""
    # 0x or 0X: the bit 0x20 turns an upper letter into a lower one
    # a test over the whole block: a text column with 0x in it only costs the slower parse
    view = np.frombuffer(raw, np.uint8)
    return bool(np.any((view[:-1] == ord("0")) & ((view[1:] | 0x20) == ord("x"))))


def _plainly(texts: pa.Array, kind: DataType) -> pa.Array:
    """Parse texts in the common spellings, in one Arrow call."""
    arrow = to_arrow(kind)
    if isinstance(kind, TimestampLtz):
        return _instants(pc.utf8_trim(texts, _BLANKS), arrow)
    if pa.types.is_time(arrow):
        return _times(pc.utf8_trim(texts, _BLANKS))
    if pa.types.is_duration(arrow):
        return texts.cast(pa.int64()).cast(arrow)
    return pc.utf8_trim(texts, _BLANKS).cast(arrow)


def _instants(texts: pa.Array, arrow: pa.DataType) -> pa.Array:
    # Arrow parses either zoned or unzoned texts in one call: both, and then whichever is there
    zoned = pc.fill_null(pc.match_substring_regex(texts, _ZONE), False)
    with_zone = pc.if_else(zoned, texts, None).cast(arrow)
    without = pc.assume_timezone(pc.if_else(zoned, None, texts).cast(pa.timestamp("us")), "UTC")
    return pc.coalesce(with_zone, without)


def _times(texts: pa.Array) -> pa.Array:
    moments = pc.binary_join_element_wise("1970-01-01", texts, " ").cast(pa.timestamp("us"))
    return moments.cast(pa.int64()).cast(pa.time64("us"))


def to_text(values: pa.Array) -> pa.Array:
    """Return a column of plain values as texts the readers read back; NULL stays NULL."""
    kind = values.type
    if pa.types.is_string(kind):
        return values
    # raises ArrowInvalid for bytes that are not UTF-8
    if pa.types.is_binary(kind):
        return values.cast(pa.string())
    if pa.types.is_duration(kind):
        return values.cast(pa.int64()).cast(pa.string())
    if pa.types.is_floating(kind):
        return _floats(values)
    return values.cast(pa.string())


def _floats(values: pa.Array) -> pa.Array:
    """Spell NaN and infinities as every reader of csv knows them."""
    texts = values.cast(pa.string())
    for ours, theirs in (("nan", "NaN"), ("-nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
        texts = pc.if_else(pc.equal(texts, ours), theirs, texts)
    return texts


def uuid_texts(raw: pa.Array) -> pa.Array:
    """UUIDs of 16 bytes as their usual 36 characters."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    size = len(raw)
    filled = raw.fill_null(bytes(16)) if raw.null_count else raw
    octets = np.frombuffer(filled.buffers()[1], np.uint8)[
        filled.offset * 16 : (filled.offset + size) * 16
    ].reshape(size, 16)
    # (rows, 16, 2): the two hexadecimal digits of each byte
    pairs = np.stack([digits[octets >> 4], digits[octets & 15]], axis=2).reshape(size, 32)
    texts = np.full((size, 36), ord("-"), np.uint8)
    # 8-4-4-4-12 digits; the dashes between them are there already
    for into, begin, end in ((0, 0, 8), (9, 8, 12), (14, 12, 16), (19, 16, 20), (24, 20, 32)):
        texts[:, into : into + end - begin] = pairs[:, begin:end]
    offsets = np.arange(size + 1, dtype=np.int32) * 36
    column = pa.StringArray.from_buffers(size, pa.py_buffer(offsets), pa.py_buffer(texts.tobytes()))
    return pc.if_else(pc.is_null(raw), None, column) if raw.null_count else column
