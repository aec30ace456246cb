"""Arrow columns as columns of text, for screens and files, by Arrow kernels."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_US_PER_SECOND = 1_000_000


def text_column(column: pa.Array, zone: str | None = None) -> pa.Array:
    """Return the values as strings, NULL staying NULL. ``zone``: the session's time zone, in which
    instants are shown; None shows UTC with a Z.
    """
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_floating(kind):
        return _float_text(column)
    if pa.types.is_timestamp(kind):
        return _timestamp_text(column, zone)
    if pa.types.is_time(kind):
        return _without_trailing_zeros(pc.cast(column, pa.string()))
    if pa.types.is_duration(kind):
        return _duration_text(column)
    if pa.types.is_binary(kind):
        return _binary_text(column)
    if pa.types.is_nested(kind):
        # In JSON a NULL is the word null; outside a list, a map or a row it stays NULL.
        text = json_column(column)
        return (
            pc.if_else(pc.is_valid(column), text, pa.scalar(None, pa.string())) if column.null_count else text
        )
    # Integers, DECIMAL, BOOLEAN and DATE: Arrow's text is that of SQL.
    return pc.cast(column, pa.string())


def json_column(column: pa.Array) -> pa.Array:
    """Return the values as JSON texts, NULL as ``null``. Not-a-number and infinities become strings; so do
    dates, times and bytes.
    """
    kind = column.type
    if pa.types.is_list(kind):
        text = _json_list(column)
    elif pa.types.is_map(kind):
        text = _json_map(column)
    elif pa.types.is_struct(kind):
        text = _json_struct(column)
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        text = pc.cast(column, pa.string())
    elif pa.types.is_floating(kind):
        # JSON has neither NaN nor Infinity: these become strings, numbers do not.
        finite = pc.is_finite(column)
        text = _float_text(column)
        text = pc.if_else(pc.fill_null(finite, True), text, json_string(text))
    elif pa.types.is_null(kind):
        text = pc.cast(column, pa.string())
    else:
        text = json_string(text_column(column))
    return pc.fill_null(text, "null")


def json_string(text: pa.Array) -> pa.Array:
    """Return strings quoted and escaped as JSON demands."""
    # The backslash first, or the backslashes of other escapes would be doubled.
    escaped = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    # Control characters are rare: one search saves 32 replacements.
    if pc.any(pc.match_substring_regex(escaped, r"[\x00-\x1f]")).as_py():
        for character, escape in _JSON_ESCAPES:
            escaped = pc.replace_substring(escaped, character, escape)
    return pc.binary_join_element_wise('"', escaped, '"', "")


# Those with a short escape; the other control characters are \u00XX.
_JSON_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_JSON_ESCAPES = [(chr(code), _JSON_SHORT.get(chr(code), f"\\u{code:04x}")) for code in range(0x20)]


def visible(text: pa.Array) -> pa.Array:
    """Return strings that cannot move a terminal's cursor. Line ends and tabs become two-letter escapes,
    other control characters one sign.
    """
    # 80 to 9F are control characters too: some terminals obey 9B as they obey ESC [.
    if not pc.any(pc.match_substring_regex(text, r"[\x00-\x1f\x7f-\x9f]")).as_py():
        return text
    for character, escape in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t")):
        text = pc.replace_substring(text, character, escape)
    return pc.replace_substring_regex(text, r"[\x00-\x1f\x7f-\x9f]", "\N{REPLACEMENT CHARACTER}")


def _float_text(column: pa.Array) -> pa.Array:
    text = pc.cast(column, pa.string())
    # Arrow writes 1.0 as 1, and nan and inf where SQL has NaN and Infinity
    text = pc.replace_substring_regex(text, r"^(-?\d+)$", r"\1.0")
    text = pc.replace_substring_regex(text, r"^-?nan$", "NaN")
    return pc.replace_substring_regex(text, r"^(-?)inf$", r"\1Infinity")


def _timestamp_text(column: pa.Array, zone: str | None) -> pa.Array:
    if column.type.tz is not None and zone is not None and zone != "UTC":
        # An instant is UTC in Arrow; as the wall clock of the session's zone it has no Z.
        column = pc.local_timestamp(pc.cast(column, pa.timestamp(column.type.unit, zone)))
    return _without_trailing_zeros(pc.cast(column, pa.string()))


def _without_trailing_zeros(text: pa.Array) -> pa.Array:
    # 12:00:00.120000Z becomes 12:00:00.12Z; 12:00:00.000Z becomes 12:00:00.Z and then 12:00:00Z.
    text = pc.replace_substring_regex(text, r"(\.\d*?)0+(Z?)$", r"\1\2")
    return pc.replace_substring_regex(text, r"\.(Z?)$", r"\1")


def _duration_text(column: pa.Array) -> pa.Array:
    """Return day-time intervals as ``[-]D HH:MM:SS[.ffffff]``."""
    whole = pc.cast(pc.cast(column, pa.duration("us")), pa.int64())
    # One sign before the whole: days and clock are those of the absolute value.
    sign = pc.if_else(pc.less(whole, 0), "-", "")
    whole = pc.abs(whole)
    day_us = 86_400 * _US_PER_SECOND
    days = pc.divide(whole, day_us)
    clock = pc.cast(pc.subtract(whole, pc.multiply(days, day_us)), pa.time64("us"))
    return pc.binary_join_element_wise(
        sign, pc.cast(days, pa.string()), " ", _without_trailing_zeros(pc.cast(clock, pa.string())), ""
    )


def _binary_text(column: pa.Array) -> pa.Array:
    """Return bytes in hexadecimal, with ``0x`` before them."""
    # Offsets of 64 bits: they are doubled below, and those of 32 bits could overflow.
    column = pc.cast(pa.concat_arrays([column]), pa.large_binary())
    _, offsets_buffer, data = column.buffers()
    # the whole buffer is converted at once: each byte becomes two digits, so offsets double
    offsets = np.frombuffer(offsets_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
    spelled = pa.py_buffer((data.to_pybytes() if data else b"").hex().encode())
    whole = pa.LargeStringArray.from_buffers(len(column), pa.py_buffer(offsets * 2), spelled)
    text = pc.binary_join_element_wise("0x", pc.cast(whole, pa.string()), "")
    # The texts were made without the column's validity.
    return pc.if_else(pc.is_valid(column), text, pa.scalar(None, pa.string()))


def _json_list(column: pa.Array) -> pa.Array:
    # Offsets are those of this slice, values those of the whole array: only the slice's are converted.
    offsets = column.offsets
    return _joined(
        column,
        json_column(column.values.slice(offsets[0].as_py(), offsets[-1].as_py() - offsets[0].as_py())),
        "[",
        "]",
    )


def _json_map(column: pa.Array) -> pa.Array:
    start, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
    # Keys of a JSON object are strings, also those of MAP<INT, ..>.
    keys = json_string(text_column(column.keys.slice(start, end - start)))
    items = json_column(column.items.slice(start, end - start))
    return _joined(column, pc.binary_join_element_wise(keys, items, ": "), "{", "}")


def _joined(column: pa.Array, texts: pa.Array, left: str, right: str) -> pa.Array:
    """Return per list or map the texts of its items (those of all lists, in order) between two brackets."""
    # The texts begin with the first item of the slice, so the offsets begin at 0.
    offsets = pc.subtract(column.offsets, column.offsets[0])
    lists = pa.ListArray.from_arrays(pc.cast(offsets, pa.int32()), texts)
    text = pc.binary_join_element_wise(left, pc.binary_join(lists, ", "), right, "")
    return pc.if_else(pc.is_valid(column), text, pa.scalar(None, pa.string()))


def _json_struct(column: pa.Array) -> pa.Array:
    parts: list[object] = ["{"]
    for index, field in enumerate(column.type):
        name = json_string(pa.array([field.name]))[0].as_py()
        parts += [("" if index == 0 else ", ") + name + ": ", json_column(column.field(index))]
    text = pc.binary_join_element_wise(*parts, "}", "")
    # The fields of a NULL row may have any values.
    return pc.if_else(pc.is_valid(column), text, pa.scalar(None, pa.string()))
