"""What a program gives as VARIANT: JSON in any spelling, alone or within other types."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import Array, DataType, Map, Row, Variant, holds, to_arrow
from penstock.engine.expressions.json.canonical_text import NotCanonical, canonical_texts, why_none
from penstock.engine.expressions.nested.lists import Lists, lists_of


def canonical_parts(column: pa.Array, kind: DataType) -> pa.Array:
    """Return a column of a type whose texts of VARIANT are JSON as the values that are stored: kernels read
    no other texts. Raise ``NotCanonical`` for a text that is no JSON.
    """
    if not holds(kind, Variant):
        return column
    match kind:
        case Array(element):
            lists = lists_of(column)
            return Lists(canonical_parts(lists.flat, element), lists.lengths, lists.missing).column()
        case Map(_, value):
            lists = lists_of(column)
            keys, values = (pc.struct_field(lists.flat, index) for index in range(2))
            entries = pa.StructArray.from_arrays([keys, canonical_parts(values, value)], ["key", "value"])
            return Lists(entries, lists.lengths, lists.missing).maps()
        case Row(fields):
            parts = [canonical_parts(pc.struct_field(column, i), part) for i, (_, part) in enumerate(fields)]
            mask = pc.is_null(column) if column.null_count else None
            return pa.StructArray.from_arrays(parts, fields=list(to_arrow(kind)), mask=mask)
    values, wrong = canonical_texts(column)
    if wrong.any():
        raise NotCanonical(why_none(column[int(wrong.argmax())].as_py()))
    return values
