"""ValueCounts: how often each slot has each value, for aggregates that need more than totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.engine.kernels.partition import counting_sort
from penstock.engine.state.frozen_arrays import Columns, FrozenColumns, FrozenViews
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.multi_index import MultiIndex
from penstock.engine.state.index.slot_sets import DistinctSlots, UseCounts
from penstock.engine.state.index.word_index import WordIndex, grown, slots_at_barrier
from penstock.engine.state.mapped_arrays import Mapped

# A pair's word: slot << 32 | value number.
_SLOT_BITS = 32
_VALUE = (1 << _SLOT_BITS) - 1


@dataclass(frozen=True, eq=False)
class Change:
    """Entries whose count was added to, each once; those of them that became present, and those that
    ceased to be.
    """

    touched: np.ndarray
    appeared: np.ndarray
    gone: np.ndarray

    @staticmethod
    def of(touched: np.ndarray, before: np.ndarray, after: np.ndarray) -> Change:
        """Return the change of entries by their counts before and after: a pair is present while its count
        is above 0.
        """
        return Change(touched, touched[(before <= 0) & (after > 0)], touched[(before > 0) & (after <= 0)])


class SlotValues(Mapped):
    """(slot, value) pairs to one or ``width`` signed counts, int64 [entry] or [entry, width]; a pair is
    forgotten once all are 0.

    Each value is stored once, however many slots have it; values of several columns are structs. An entry is
    the dense number of a pair.
    """

    MAPPED = ("_counts",)

    def __init__(self, kind: pa.DataType, width: int | None = None) -> None:
        self.kind = kind
        self.values = KeyIndex([field.type for field in kind] if pa.types.is_struct(kind) else [kind])
        self._uses = UseCounts()
        self._pairs = WordIndex()
        # By entry.
        self._counts = np.zeros(0 if width is None else (0, width), np.int64)
        self._of_slot = MultiIndex()
        self._distinct = DistinctSlots()
        # Of pairs and counts by entry.
        self._views = FrozenViews()

    def __len__(self) -> int:
        return len(self._pairs)

    def _enter(self, slots: np.ndarray, values: pa.Array) -> tuple[np.ndarray, np.ndarray]:
        """Return the entry of each pair, new ones with counts of 0, and each of the entries once."""
        value_ids = self.values.lookup_or_insert(
            values.flatten() if pa.types.is_struct(self.kind) else [values]
        )
        known = len(self._pairs)
        # The values' numbers are dense, so both halves fit.
        entries = self._pairs.lookup_or_insert((slots << _SLOT_BITS) | value_ids)
        if len(self._counts) < self._pairs.capacity:
            self._counts = grown(self._counts, self._pairs.capacity)
        if len(self._pairs) > known:
            fresh = self._pairs.fresh
            self._of_slot.link(self.slots_of(fresh), fresh)
            # A value is removed with its last pair.
            self._uses.retain(self.value_ids(fresh), self.values.capacity)
        touched = self._distinct.of(entries, self._pairs.capacity)
        # Entries that were given to other pairs were saved when they were forgotten.
        self._views.save(touched)
        return entries, touched

    def forget(self, entries: np.ndarray) -> None:
        """Drop those of these distinct entries whose counts are all 0."""
        # Counts may be below 0: a retraction that came before its row is remembered.
        counts = self._counts[entries]
        entries = entries[counts == 0 if counts.ndim == 1 else ~counts.any(axis=1)]
        if not entries.size:
            return
        # Everything that reads the pair's word comes before the pair is removed.
        unused = self._uses.release(self.value_ids(entries))
        self._of_slot.unlink(entries)
        self._pairs.remove(entries)
        self.values.remove(unused)

    def clear(self, slots: np.ndarray) -> None:
        """Drop all entries of distinct slots."""
        self.drop(self._of_slot.expand(slots)[1])

    def drop(self, entries: np.ndarray) -> None:
        """Forget distinct entries whatever their count."""
        self._views.save(entries)
        self._counts[entries] = 0
        self.forget(entries)

    def slots_of(self, entries: np.ndarray) -> np.ndarray:
        """Return the slot of each entry."""
        return self._pairs.keys[entries] >> _SLOT_BITS

    def value_ids(self, entries: np.ndarray) -> np.ndarray:
        """Return the number of each entry's value in ``values``."""
        return self._pairs.keys[entries] & _VALUE

    def values_of(self, entries: np.ndarray) -> pa.Array:
        """Return the value of each entry."""
        return self._as_one(self.columns_of(entries))

    def _as_one(self, columns: list[pa.Array]) -> pa.Array:
        return (
            pa.StructArray.from_arrays(columns, fields=list(self.kind))
            if pa.types.is_struct(self.kind)
            else columns[0]
        )

    def columns_of(self, entries: np.ndarray) -> list[pa.Array]:
        """Return the columns of the value of each entry."""
        return self.values.keys(self.value_ids(entries))

    def widths_of(self, entries: np.ndarray) -> np.ndarray:
        """Return about how many bytes the value of each entry is; of a struct its first field."""
        return self.values.widths(self.value_ids(entries))

    def entries(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (position in ``slots``, entry) for all entries of slots."""
        return self._of_slot.expand(slots)

    def counts(self, entries: np.ndarray) -> np.ndarray:
        """Return the counts of each entry; never all 0."""
        return self._counts[entries]

    def freeze(self, count: int) -> FrozenColumns:
        """Return the values of slots below ``count`` as they are now: one column, per slot a list of (value,
        counts). Pairs, counts and values are copied later.
        """
        live_among, frozen_values = slots_at_barrier(self._pairs), self.values.freeze()
        frozen = self._views.freeze([self._pairs.keys, self._counts], self._pairs.allocated)

        def of(slots: np.ndarray | None) -> Columns:
            pairs, counts = frozen.copies(None)
            entries, values = live_among(None), frozen_values(None)
            owners = pairs[entries] >> _SLOT_BITS
            if slots is not None:
                asked = np.zeros(count, np.bool_)
                asked[slots] = True
                entries, owners = entries[asked[owners]], owners[asked[owners]]
            # slot by slot
            order, starts = counting_sort(owners, count)
            entries = entries[order]

            def columns(at: np.ndarray) -> list[pa.Array]:
                its = at if slots is None else slots[at]
                lengths = starts[its + 1] - starts[its]
                ends = np.cumsum(lengths)
                chosen = np.repeat(starts[its + 1] - ends, lengths) + np.arange(lengths.sum())
                some = entries[chosen]
                return [self._lists(ends, values(pairs[some] & _VALUE), counts[some])]

            return columns

        return of

    def _lists(self, ends: np.ndarray, values: list[pa.Array], counts: np.ndarray) -> pa.Array:
        """Return lists of values with their counts, for a checkpoint; ``ends``: of each list among them."""
        if ends.size and int(ends[-1]) > LIMITS.array_bytes:
            raise TooLarge(int(ends[-1]))
        each = counts[:, np.newaxis] if counts.ndim == 1 else counts
        columns = [array_of(np.ascontiguousarray(column)) for column in each.T]
        return pa.ListArray.from_arrays(
            pa.array(np.append(0, ends).astype(np.int32)),
            pa.StructArray.from_arrays(
                [self._as_one(values), *columns], names=["value", *self._count_names(len(columns))]
            ),
        )

    def _count_names(self, width: int) -> list[str]:
        """Return the names of the counts in a checkpoint."""
        return ["count"] if self._counts.ndim == 1 else [f"count{k}" for k in range(width)]


class ValueCounts(SlotValues):
    """(slot, value) pairs to signed counts; a pair is present while its count is above 0, and forgotten at
    0.
    """

    def add(self, slots: np.ndarray, values: pa.Array, weights: np.ndarray) -> Change:
        """Add to counts and return the change. The caller reads its entries, then has the touched ones
        forgotten.
        """
        entries, touched = self._enter(slots, values)
        before = self._counts[touched]
        # ``add.at``, since a pair may come more than once in a batch.
        np.add.at(self._counts, entries, weights if weights.size else 1)
        return Change.of(touched, before, self._counts[touched])

    def merge(self, into: np.ndarray, other: ValueCounts, slots: np.ndarray) -> Change:
        """Add the counts of another's slots to the slots ``into``; returns as ``add``."""
        # By value: the numbers of the other's values mean nothing here.
        positions, entries = other.entries(slots)
        return self.add(into[positions], other.values_of(entries), other.counts(entries))

    def read(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> tuple[np.ndarray, pa.Array, np.ndarray]:
        """Return what to ``add`` for such a column."""
        lists = columns[0]
        pairs = lists.flatten()
        return (
            np.repeat(slots, numbers_of(lists.value_lengths())),
            pairs.field("value"),
            numbers_of(pairs.field("count")),
        )


class CountedPart:
    """Counts values and applies each change of them. The subclass derives its state from the counts, and
    derives it again when they are restored.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self._counts = ValueCounts(kind)

    def reserve(self, capacity: int) -> None:
        """Do nothing: counts grow by themselves."""

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        self.settle(self._counts.add(slots, values, weights))

    def merge(self, into: np.ndarray, other: Any, slots: np.ndarray) -> None:
        self.settle(self._counts.merge(into, other._counts, slots))

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        self.settle(self._counts.add(*self._counts.read(slots, columns)))

    def save(self, slots: np.ndarray) -> None:
        """Do nothing: counts save themselves."""

    def freeze(self, count: int) -> FrozenColumns:
        return self._counts.freeze(count)

    def clear(self, slots: np.ndarray) -> None:
        self._counts.clear(slots)

    def settle(self, change: Change) -> None:
        """Apply a change of the counts, and forget touched pairs whose count is 0."""
        self._counts.forget(change.touched)
