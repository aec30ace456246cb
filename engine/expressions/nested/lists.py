"""Lists: array columns as flat elements with list lengths. The kernels of arrays and maps compute on them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api import arrow_numpy
from penstock.engine.api.cached_property import cached_property
from penstock.engine.expressions.datum import Datum, nulls_of, repeated
from penstock.engine.expressions.evaluation_errors import check_sizes, over_capacity
from penstock.engine.kernels.arrow_views import words
from penstock.engine.kernels.nested_text import canonical_text, comparable, entries, lengths_of, starts_of


@dataclass(frozen=True)
class Lists:
    """A column of lists. ``flat`` has the elements of all lists in order. ``lengths`` (int64) has the length
    of each list, ``missing`` the mask of NULLs.
    """

    flat: pa.Array
    lengths: np.ndarray
    missing: np.ndarray | None = None

    @cached_property
    def starts(self) -> np.ndarray:
        """The offset of each list's first element, and at the end the number of elements."""
        return starts_of(self.lengths)

    @cached_property
    def parents(self) -> np.ndarray:
        """The list index of each element."""
        return np.repeat(np.arange(self.lengths.size), self.lengths)

    @cached_property
    def nth(self) -> np.ndarray:
        """The index of each element in its list, from 0."""
        return np.arange(len(self.flat)) - self.starts[self.parents]

    def column(self) -> pa.ListArray:
        """Return the column."""
        mask = None if self.missing is None else arrow_numpy.array_of(self.missing)
        return pa.ListArray.from_arrays(self._offsets(), self.flat, mask=mask)

    def _offsets(self) -> pa.Array:
        # offsets of a list column have 32 bits
        if int(self.starts[-1]) > np.iinfo(np.int32).max:
            raise over_capacity()
        return arrow_numpy.array_of(self.starts.astype(np.int32))

    def maps(self) -> pa.MapArray:
        """Return lists of (key, value) as maps."""
        mask = None if self.missing is None else arrow_numpy.array_of(self.missing)
        keys, values = (member(self.flat, i) for i in range(2))
        return pa.MapArray.from_arrays(self._offsets(), keys, values, mask=mask)

    def filter(self, keep: np.ndarray) -> Lists:
        """Return the lists with only the elements whose mask is true."""
        # nothing to drop: no copy
        if keep.all():
            return self
        # how many elements of each list remain
        lengths = np.bincount(self.parents[keep], minlength=self.lengths.size)
        return Lists(self.flat.filter(arrow_numpy.array_of(keep)), lengths, self.missing)

    def ordered(self, order: np.ndarray) -> Lists:
        """Return the lists with their elements permuted by ``order``. A permutation must not move an element
        to another list.
        """
        return Lists(self.flat.take(arrow_numpy.array_of(order)), self.lengths, self.missing)

    def any(self, mask: np.ndarray) -> np.ndarray:
        """Return per list whether the mask is true for some element."""
        result = np.zeros(self.lengths.size, np.bool_)
        result[self.parents[mask]] = True
        return result


def lists_of(column: pa.Array) -> Lists:
    """Return a column of arrays or maps as lists; maps are lists of key and value. Slices are supported."""
    is_map = pa.types.is_map(column.type)
    if len(column) and not column.null_count and (is_map or pa.types.is_list(column.type)):
        # without a call of Arrow, each of which takes as long as all of this: batches may be small
        offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, column.offset * 4)
        begin, count = int(offsets[0]), int(offsets[-1]) - int(offsets[0])
        flat = column.values.slice(begin, count)
        if is_map:
            # not the map's keys and items: those forget where a slice of entries begins
            flat = pa.StructArray.from_arrays([flat.field(0), flat.field(1)], ["key", "value"])
        return Lists(flat, np.diff(offsets).astype(np.int64))
    if is_map:
        column = entries(column)
    # flatten() leaves out the elements below NULL lists, so the lengths of those are 0
    return Lists(column.flatten(), lengths_of(column), nulls_of(column))


def member(rows: pa.StructArray, index: int) -> pa.Array:
    """Return a field of rows, NULL where the row is."""
    return pc.struct_field(rows, index) if rows.null_count else rows.field(index)


def picked(flat: pa.Array, positions: np.ndarray, missing: np.ndarray | None) -> pa.Array:
    """Return the elements at positions, NULL where ``missing``."""
    return flat.take(
        arrow_numpy.array_of(np.where(missing, 0, positions) if missing is not None else positions, missing)
    )


def codes_of(values: pa.Array) -> np.ndarray:
    """Return a code per value, equal for equal values. NULL equals NULL, NaN equals NaN, -0.0 equals 0.0."""
    # equal values have equal canonical texts
    if pa.types.is_nested(values.type):
        values = canonical_text(values)
    elif pa.types.is_null(values.type):
        return np.zeros(len(values), np.int64)
    return words(comparable(values).dictionary_encode(null_encoding="encode").indices)


def firsts(starts: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the mask of elements that are the first of their code in their list."""
    from penstock.engine.kernels.functions import list_sets  # numba is loaded where it is needed

    keep = np.empty(codes.size, np.uint8)
    list_sets.firsts(starts, codes, _table(starts), keep)
    return keep.view(np.bool_)


def members(lists: Lists, codes: np.ndarray, others: Lists, other_codes: np.ndarray) -> np.ndarray:
    """Return the mask of elements whose code is one of the other list of their row."""
    from penstock.engine.kernels.functions import list_sets

    found = np.empty(codes.size, np.uint8)
    list_sets.members(lists.starts, codes, others.starts, other_codes, _table(others.starts), found)
    return found.view(np.bool_)


def _table(starts: np.ndarray) -> np.ndarray:
    """Return the hash table of one list: two words a place, less than half of them taken."""
    longest = int(np.diff(starts).max(initial=0))
    return np.zeros(2 << (2 * longest).bit_length(), np.int64)


def common_codes(*values: pa.Array) -> list[np.ndarray]:
    """Return the codes of several columns of one type. Equal values have equal codes across columns."""
    # whole numbers and times are their own codes
    if all(
        (pa.types.is_integer(column.type) or pa.types.is_temporal(column.type)) and not column.null_count
        for column in values
    ):
        return [words(column) for column in values]
    codes = codes_of(pa.concat_arrays(list(values)))
    # one dictionary for all columns, then apart again
    return np.split(codes, np.cumsum([len(column) for column in values])[:-1])


def interleaved(parts: list[Lists]) -> Lists:
    """Return lists concatenated row by row; NULL where one is NULL. Raise Fault RUN-2006 for too many
    elements.
    """
    lengths = np.sum([part.lengths for part in parts], axis=0)
    check_sizes("concat", lengths, "elements")
    flat = pa.concat_arrays([part.flat for part in parts])
    parents = np.concatenate([part.parents for part in parts])
    missing = None
    for part in parts:
        if part.missing is not None:
            missing = part.missing if missing is None else missing | part.missing
    # A stable sort by row leaves the parts of a row in the order of the arguments.
    joined = Lists(flat.take(arrow_numpy.array_of(np.argsort(parents, kind="stable"))), lengths, None)
    if missing is None:
        return joined
    complete = joined.filter(~missing[joined.parents])
    return Lists(complete.flat, complete.lengths, missing)


def elements_like(lists: Lists, elements: pa.Array, value: Datum) -> np.ndarray:
    """Return the mask of elements equal to their row's value. ``elements`` has one value per element of the
    lists. A constant of a simple type is compared without repeating it.
    """
    # Nested values and floats (NaN, -0.0) are compared by code, as Arrow's equality differs.
    simple = not pa.types.is_nested(elements.type) and not pa.types.is_floating(elements.type)
    if isinstance(value, pa.Scalar):
        if simple and value.is_valid:
            return arrow_numpy.is_true(pc.equal(elements, value))
        value = repeated(value, lists.lengths.size)
    mine, theirs = common_codes(elements, value)
    return mine == theirs[lists.parents]
