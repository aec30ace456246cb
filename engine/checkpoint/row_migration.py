"""Columns of state as another schema wants them: integers widened, decimals of more digits, added columns
NULL. Values stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa

from penstock.engine.checkpoint.snapshot_format import plain_type
from penstock.engine.state.state_snapshot import OPTIONAL

_ROW_COLUMN = re.compile(r"c(\d+)")


def migrated(table: pa.Table, wanted: pa.Schema, places: Sequence[int]) -> pa.Table | None:
    """Return a state's entries in the columns of ``wanted``; ``None`` when they do not fit.

    ``places``: for each column of the rows it holds (c0, c1, ..) where it stood, -1: it was not there. What a
    state adds to its rows follows them.
    """
    wanted = pa.schema([wanted.field(name) for name in wanted.names if name not in _optional(wanted)])
    sources = _sources(table.schema, wanted, places)
    if sources is None:
        return None
    columns = []
    for field, source in zip(wanted, sources, strict=True):
        if source is None:
            columns.append(pa.chunked_array([pa.nulls(table.num_rows, field.type)]))
            continue
        column = table.column(source)
        old, new = plain_type(column.type), plain_type(field.type)
        if not fits(old, new):
            return None
        columns.append(column if old == new else column.cast(field.type))
    found = pa.table(columns, names=wanted.names)
    for name in _optional(table.schema):
        found = found.append_column(name, table.column(name))
    return found


def _sources(old: pa.Schema, wanted: pa.Schema, places: Sequence[int]) -> list[str | None] | None:
    """Return the name each wanted column had, None: it was not there. No column may be left over but the
    optional ones.
    """
    held = sum(bool(_ROW_COLUMN.fullmatch(name)) for name in wanted.names)
    extra = held - len(places)
    if held and extra < 0:
        return None
    kept = sum(place >= 0 for place in places)
    all_places = [*places, *range(kept, kept + extra)]
    named: list[str | None] = []
    for name in wanted.names:
        row = _ROW_COLUMN.fullmatch(name)
        place = all_places[int(row[1])] if row and int(row[1]) < len(all_places) else None
        named.append((None if place == -1 else f"c{place}") if row else name)
    used = {name for name in named if name is not None}
    return named if used == {*old.names}.difference(_optional(old)) else None


def _optional(schema: pa.Schema) -> list[str]:
    """Return the optional columns of a state: those at its end. One of such a name before others is the
    state's own.
    """
    names = list(schema.names)
    first = len(names)
    while first and names[first - 1] in OPTIONAL:
        first -= 1
    return names[first:]


def fits(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether every value of a type is the same value of another: equal, a wider integer, a decimal
    of more digits; also inside lists.
    """
    if old == new:
        return True
    if pa.types.is_signed_integer(old) and pa.types.is_signed_integer(new):
        return old.bit_width < new.bit_width
    if pa.types.is_decimal128(old) and pa.types.is_decimal128(new):
        return old.scale == new.scale and old.precision < new.precision
    if pa.types.is_list(old) and pa.types.is_list(new):
        return fits(old.value_type, new.value_type)
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        return [field.name for field in old] == [field.name for field in new] and all(
            fits(a.type, b.type) for a, b in zip(old, new, strict=True)
        )
    return False
