"""State evolution: entries of a declared state, in the types that its declaration has now."""

from __future__ import annotations

import pyarrow as pa

from penstock.engine.checkpoint.snapshot_format import plain_type
from penstock.engine.checkpoint.state_migration import fits
from penstock.engine.state.state_snapshot import OPTIONAL


def evolved(table: pa.Table, wanted: pa.Schema) -> pa.Table | str:
    """Return a snapshot's entries in the columns of ``wanted``, or why they do not fit.

    A row type may have gained fields anywhere, which are NULL in the entries; numbers may have become wider.
    A field may not have gone, since its values would be lost.
    """
    columns, names = [], []
    for field in wanted:
        if field.name in OPTIONAL:
            continue
        if field.name not in table.column_names:
            return f"column {field.name} is missing"
        column = table.column(field.name)
        made = _converted(column.combine_chunks(), field.type)
        if isinstance(made, str):
            return made
        columns.append(made)
        names.append(field.name)
    gone = [name for name in table.column_names if name not in names and name not in OPTIONAL]
    if gone:
        return f"column {gone[0]} is not declared any more"
    # optional columns as they were: a state reads those it knows
    kept = [name for name in table.column_names if name in OPTIONAL]
    return pa.table([*columns, *(table.column(name) for name in kept)], names=[*names, *kept])


def _converted(array: pa.Array | pa.ChunkedArray, wanted: pa.DataType) -> pa.Array | str:
    """Return values in another type, or why they have no place in it."""
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], array.type)
    old = array.type
    if plain_type(old) == plain_type(wanted):
        return array
    if pa.types.is_struct(old) and pa.types.is_struct(wanted):
        return _with_fields(array, wanted)
    # ARRAY<ROW<..>> and MAP<.., ROW<..>>: the offsets stay, the values are converted
    if pa.types.is_list(old) and pa.types.is_list(wanted):
        values = _converted(array.values, wanted.value_type)
        return values if isinstance(values, str) else _list(array, values, wanted)
    if fits(plain_type(old), plain_type(wanted)):
        return array.cast(wanted)
    return f"values of type {old} are no {wanted}"


def _with_fields(array: pa.StructArray, wanted: pa.DataType) -> pa.Array | str:
    names = [field.name for field in wanted]
    gone = next((field.name for field in array.type if field.name not in names), None)
    if gone is not None:
        return f"field {gone} is not declared any more"
    children = []
    for field in wanted:
        position = array.type.get_field_index(field.name)
        # an added field: NULL in all stored values
        if position < 0:
            children.append(pa.nulls(len(array), field.type))
            continue
        # field() keeps the child's own NULLs; the offset of a slice is applied by flatten
        made = _converted(array.flatten()[position], field.type)
        if isinstance(made, str):
            return made
        children.append(made)
    return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())


def _list(array: pa.ListArray, values: pa.Array, wanted: pa.DataType) -> pa.Array:
    valid = array.buffers()[0]
    buffers = [valid, array.buffers()[1]]
    return pa.Array.from_buffers(
        wanted, len(array), buffers, array.null_count if valid else 0, array.offset, children=[values]
    )
