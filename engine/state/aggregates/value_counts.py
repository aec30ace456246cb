"""ValueCounts: how often each slot has each value, for aggregates that need more than totals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.multi_index import MultiIndex
from penstock.engine.state.index.slot_sets import DistinctSlots, UseCounts
from penstock.engine.state.index.word_index import WordIndex, grown
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
        return entries, self._distinct.of(entries, self._pairs.capacity)

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
        columns = self.columns_of(entries)
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

    def _lists(
        self, slots: np.ndarray, entries: np.ndarray, positions: np.ndarray, counts: dict[str, np.ndarray]
    ) -> pa.Array:
        """Return per slot a list of its values with their counts by name, for a checkpoint."""
        offsets = np.zeros(slots.size + 1, np.int32)
        # Entries come slot by slot: list i has the pairs of slot i.
        np.cumsum(np.bincount(positions, minlength=slots.size), out=offsets[1:])
        columns = [array_of(column) for column in counts.values()]
        return pa.ListArray.from_arrays(
            pa.array(offsets),
            pa.StructArray.from_arrays([self.values_of(entries), *columns], names=["value", *counts]),
        )


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

    def columns(self, slots: np.ndarray) -> list[pa.Array]:
        """Return one column: per slot a list of (value, count)."""
        positions, entries = self.entries(slots)
        return [self._lists(slots, entries, positions, {"count": self.counts(entries)})]

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

    def columns(self, slots: np.ndarray) -> list[pa.Array]:
        return self._counts.columns(slots)

    def clear(self, slots: np.ndarray) -> None:
        self._counts.clear(slots)

    def settle(self, change: Change) -> None:
        """Apply a change of the counts, and forget touched pairs whose count is 0."""
        self._counts.forget(change.touched)
