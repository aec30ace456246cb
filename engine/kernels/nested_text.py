"""Canonical texts of nested values: two texts are equal exactly when the values are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of, truths
from penstock.engine.kernels import arrow_views as col


def canonical_text(column: pa.Array) -> pa.Array:
    """Return one text per value, NULL as ``null``. -0.0 equals 0.0, every NaN is the same. Fields are written
    by position, map entries sorted by key.
    """
    kind = column.type
    if pa.types.is_null(kind):
        return pa.repeat(pa.scalar("null"), len(column))
    text = _text(column, kind)
    # What is stored under a NULL is not its text.
    return pc.if_else(column.is_valid(), text, "null") if column.null_count else text


def comparable(column: pa.Array) -> pa.Array:
    """Return a flat column whose values Arrow finds equal where they are: it tells -0.0 from 0.0, and the NaN
    of an operation from that of a CAST. Floats become words.
    """
    if not pa.types.is_floating(column.type):
        return column
    return array_of(col.words(column), ~truths(column.is_valid()) if column.null_count else None)


def _text(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_struct(kind):
        return _fields(column, kind)
    if pa.types.is_map(kind):
        # Entries in the order of their keys: two maps are equal whatever the order they were built in.
        return _items(_by_key(entries(column)))
    if pa.types.is_list(kind):
        return _items(column)
    if col.is_bytes(kind):
        # Quotes and backslashes are escaped: without that, two different lists could have one text.
        escaped = pc.replace_substring(
            pc.replace_substring(column.view(pa.string()), "\\", "\\\\"), '"', '\\"'
        )
        return pc.binary_join_element_wise('"', escaped, '"', "")
    # More than 18 digits: Arrow's own text of the decimal.
    if col.is_wide(kind):
        return column.cast(pa.string())
    # Words are canonical: -0.0 is 0.0, every NaN the same.
    return array_of(col.words(column)).cast(pa.string())


def _fields(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if not kind.num_fields:
        return pa.repeat(pa.scalar("()"), len(column))
    parts = [canonical_text(pc.struct_field(column, i)) for i in range(kind.num_fields)]
    return pc.binary_join_element_wise("(", pc.binary_join_element_wise(*parts, ","), ")", "")


def _items(column: pa.Array) -> pa.Array:
    lists = pa.ListArray.from_arrays(
        # ``flatten`` leaves out the items behind NULL lists, as lengths of 0 do.
        pa.array(starts_of(lengths_of(column)), pa.int32()),
        canonical_text(column.flatten()),
    )
    return pc.binary_join_element_wise("[", pc.binary_join(lists, ","), "]", "")


def _by_key(column: pa.ListArray) -> pa.ListArray:
    """Return lists of entries, each sorted by the texts of its keys."""
    flat, starts = column.flatten(), starts_of(lengths_of(column))
    if len(flat) > 1:
        keys = canonical_text(pc.struct_field(flat, 0))
        # The list of each entry.
        parents = np.repeat(np.arange(starts.size - 1), np.diff(starts))
        # Most maps are sorted already: one comparison of neighbours saves the sort.
        rising = truths(pc.less_equal(keys.slice(0, len(keys) - 1), keys.slice(1)))
        if not (rising | (parents[1:] != parents[:-1])).all():
            parents_and_keys = pa.record_batch([array_of(parents), keys], names=["parent", "key"])
            flat = flat.take(
                pc.sort_indices(parents_and_keys, sort_keys=[("parent", "ascending"), ("key", "ascending")])
            )
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), flat)


def entries(column: pa.MapArray) -> pa.ListArray:
    """Return maps as lists of structs (key, value)."""
    kind = column.type
    return column.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))


def lengths_of(column: pa.Array) -> np.ndarray:
    """Return the number of elements of each list, int64, 0 for NULL."""
    return col.words(pc.fill_null(pc.list_value_length(column), 0))


def starts_of(lengths: np.ndarray) -> np.ndarray:
    """Return the offsets of consecutive lists of these lengths: one more than lists."""
    starts = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
