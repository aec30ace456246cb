"""The text by which a csv sample seems to write NULL: without it, columns of texts would be numbers or times.
It is proposed, never applied: NA is also a country.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.filesystem import LIKELY_NULL_LITERALS
from penstock.catalog.schema import Field
from penstock.catalog.types import BIGINT, DATE, DOUBLE, STRING, TIMESTAMP, DataType
from penstock.engine.formats.text_conversion import from_text

_KINDS = (BIGINT, DOUBLE, DATE, TIMESTAMP)
# columns that a message names; the others are counted
_SHOWN = 3


def likely_null_literals(fields: Sequence[Field], texts: pa.Table) -> dict[str, tuple[str, ...]]:
    """Return for each literal the STRING columns that would have another type if it were read as NULL."""
    found: dict[str, list[str]] = {}
    for field, column in zip(fields, texts.columns, strict=True):
        literal = _null_literal(column) if field.type == STRING else None
        if literal is not None:
            found.setdefault(literal, []).append(field.name)
    return {literal: tuple(names) for literal, names in found.items()}


def null_literal_advice(found: Mapping[str, Sequence[str]]) -> str | None:
    """Return a sentence on the literal of most columns, ``None`` where there is none."""
    if not found:
        return None
    # the first of equals, in the order of the columns
    literal = max(found, key=lambda text: len(found[text]))
    names = found[literal]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    are = "is" if len(names) == 1 else "are"
    return (
        f"{', '.join(names[:_SHOWN])}{more} {are} STRING because of the text {literal}: "
        f"'csv.null-literal' = '{literal}' reads it as NULL"
    )


def _null_literal(column: pa.ChunkedArray) -> str | None:
    """Return the one literal that keeps a column of texts from another type."""
    marked = pc.is_in(column, pa.array(LIKELY_NULL_LITERALS, pa.string()))
    literals = pc.unique(column.filter(marked))
    if len(literals) != 1:
        return None
    others = column.filter(pc.invert(marked)).drop_null().combine_chunks()
    # the first value tells most columns of words apart, before all values are read
    if len(others) and any(_reads_as(others[:1], kind) and _reads_as(others, kind) for kind in _KINDS):
        return str(literals[0].as_py())
    return None


def _reads_as(texts: pa.Array, kind: DataType) -> bool:
    try:
        from_text(texts, kind)
    except pa.ArrowInvalid:
        return False
    return True
