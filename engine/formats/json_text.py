"""Columns as JSON texts, a column at a time: each value becomes its JSON token."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.formats.text_conversion import to_text

_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_CONTROLS = [chr(code) for code in range(0x20)]


def json_lines(rows: pa.RecordBatch) -> pa.Array:
    """Return one JSON object a row, each with its line end."""
    return _members(rows.schema.names, rows.columns, rows.num_rows, "}\n")


def json_string(text: str) -> str:
    """Return one text as a JSON string."""
    return _quoted(pa.array([text]))[0].as_py()


def json_tokens(values: pa.Array) -> pa.Array:
    """Return the JSON token of each value; NULL is ``null``."""
    kind = values.type
    # VARIANT: JSON already
    if isinstance(kind, pa.JsonType):
        return pc.fill_null(values.storage, "null")
    if pa.types.is_struct(kind):
        tokens = _objects(values)
    elif pa.types.is_map(kind):
        tokens = _maps(values)
    elif pa.types.is_list(kind):
        # the elements of all lists in one call, joined list by list
        inner = pa.ListArray.from_arrays(values.offsets, json_tokens(values.values))
        tokens = pc.binary_join_element_wise("[", pc.binary_join(inner, ","), "]", "")
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        tokens = values.cast(pa.string())
    # NaN and Infinity have no form in JSON: they are written as bare words
    elif pa.types.is_floating(kind):
        tokens = to_text(values)
    else:
        tokens = _quoted(to_text(values))
    # a struct or list that is NULL has parts all the same
    if values.null_count:
        tokens = pc.if_else(pc.is_valid(values), tokens, None)
    return pc.fill_null(tokens, "null")


def _quoted(texts: pa.Array) -> pa.Array:
    texts = pc.replace_substring(pc.replace_substring(texts, "\\", "\\\\"), '"', '\\"')
    # 32 passes over the column only where a control character occurs at all
    if pc.any(pc.match_substring_regex(texts, r"[\x00-\x1f]")).as_py():
        for control in _CONTROLS:
            texts = pc.replace_substring(texts, control, _ESCAPES.get(control, f"\\u{ord(control):04x}"))
    return pc.binary_join_element_wise('"', texts, '"', "")


def _objects(values: pa.Array) -> pa.Array:
    columns = [pc.struct_field(values, index) for index in range(values.type.num_fields)]
    return _members([field.name for field in values.type], columns, len(values), "}")


def _members(names: Sequence[str], columns: Sequence[pa.Array], rows: int, end: str) -> pa.Array:
    """Return an object a row. A VARIANT that is NULL is left out: ``null`` is a value of it."""
    # constants and columns in turn: {"a": <a>,"b": <b>}
    parts: list[pa.Array | str] = []
    begins_left_out = False
    for index, (name, column) in enumerate(zip(names, columns, strict=True)):
        begin = ("{" if index == 0 else ",") + json_string(name) + ":"
        if isinstance(column.type, pa.JsonType) and column.null_count:
            begins_left_out |= index == 0
            member = pc.binary_join_element_wise(begin, column.storage, "")
            parts.append(pc.fill_null(member, "{" if index == 0 else ""))
        else:
            parts += [begin, json_tokens(column)]
    if not parts:
        return pa.array(["{" + end] * rows)
    objects = pc.binary_join_element_wise(*parts, end, "")
    return pc.replace_substring_regex(objects, r"^\{,", "{") if begins_left_out else objects


def _maps(values: pa.Array) -> pa.Array:
    # names of a JSON object are texts: {"1":"a"} for MAP[1, 'a']
    keys = json_tokens(values.keys)
    if not (pa.types.is_string(values.type.key_type)):
        keys = _quoted(keys)
    entries = pc.binary_join_element_wise(keys, json_tokens(values.items), ":")
    inner = pa.ListArray.from_arrays(values.offsets, entries)
    return pc.binary_join_element_wise("{", pc.binary_join(inner, ","), "}", "")
