"""JSON objects of declared fields, read by Arrow's reader of lines where nothing in them is out of the
ordinary.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_OBJECT = r"^[ \t\r\n]*\{"
_SECOND = r"\}[ \t\r\n]*\{"


def rows_of_lines(texts: pa.Array, kind: pa.StructType) -> pa.StructArray | None:
    """Return each text as a row of this type, NULL where the text is; ``None`` where some text is not plainly
    one object with values that fit.

    Each text begins as an object, and in none a second one can begin: as many objects as texts means one
    object in each.
    """
    if not kind.num_fields or not _plain(kind) or not len(texts):
        return None
    missing = pc.is_null(texts)
    lines = pc.if_else(missing, "{}", texts) if texts.null_count else texts
    if (
        not pc.all(pc.match_substring_regex(lines, _OBJECT)).as_py()
        or pc.any(pc.match_substring_regex(lines, _SECOND)).as_py()
    ):
        return None
    joined = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines), "\n")
    found = _read(joined[0].as_buffer(), kind)
    if found is None or found.num_rows != len(texts):
        return None
    columns = [column.combine_chunks() for column in found.columns]
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=missing)


def _read(data: pa.Buffer, kind: pa.StructType) -> pa.Table | None:
    import pyarrow.json as pajson

    reading = pajson.ReadOptions(use_threads=False, block_size=data.size + 1)
    parsing = pajson.ParseOptions(explicit_schema=pa.schema(list(kind)), unexpected_field_behavior="ignore")
    try:
        return pajson.read_json(pa.BufferReader(data), reading, parsing)
    except pa.ArrowInvalid:
        return None


def _plain(kind: pa.DataType) -> bool:
    """Whether Arrow reads the type from JSON as it is meant."""
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        return len(set(names)) == len(names) and all(_plain(field.type) for field in kind)
    if pa.types.is_list(kind):
        return _plain(kind.value_type)
    return (
        pa.types.is_boolean(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_string(kind)
    )
