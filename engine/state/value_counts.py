"""ValueCounts: how often each slot has each value. What aggregates stand on that need more than totals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from engine.state.key_index import KeyIndex
from engine.state.multi_index import MultiIndex
from engine.state.slot_sets import DistinctSlots, UseCounts
from engine.state.word_index import WordIndex, grown

_SLOT_BITS = 32
_VALUE = (1 << _SLOT_BITS) - 1


@dataclass(frozen=True, eq=False)
class Change:
    """Entries whose count was added to, each once; those of them that became present, and those that ceased to be."""

    touched: np.ndarray
    appeared: np.ndarray
    gone: np.ndarray


class ValueCounts:
    """(slot, value) pairs to signed counts; a pair is present while its count is above 0, and forgotten at 0.

    Values are held once each, however many slots have them; values of several columns are structs. An entry is the dense number of a pair.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.values = KeyIndex([field.type for field in kind] if pa.types.is_struct(kind) else [kind])
        self._uses = UseCounts()
        self._pairs = WordIndex()
        self._counts = np.zeros(0, np.int64)
        self._of_slot = MultiIndex()
        self._distinct = DistinctSlots()

    def __len__(self) -> int:
        return len(self._pairs)

    def add(self, slots: np.ndarray, values: pa.Array, weights: np.ndarray) -> Change:
        """Add to counts and say what that changed; the caller reads the entries, then has the touched ones forgotten."""
        value_ids = self.values.lookup_or_insert(values.flatten() if pa.types.is_struct(self.kind) else [values])
        known = len(self._pairs)
        entries = self._pairs.lookup_or_insert((slots << _SLOT_BITS) | value_ids)
        touched = self._distinct.of(entries, self._pairs.capacity)
        if self._counts.size < self._pairs.capacity:
            self._counts = grown(self._counts, self._pairs.capacity)
        before = self._counts[touched]
        if len(self._pairs) > known:
            fresh = self._of_slot.link(self.slots_of(touched), touched)
            self._uses.retain(self.value_ids(fresh), self.values.capacity)
        np.add.at(self._counts, entries, weights if weights.size else 1)
        after = self._counts[touched]
        return Change(touched, touched[(before <= 0) & (after > 0)], touched[(before > 0) & (after <= 0)])

    def forget(self, entries: np.ndarray) -> None:
        """Drop those of these distinct entries whose count is 0."""
        entries = entries[self._counts[entries] == 0]
        if not entries.size:
            return
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
        return pa.StructArray.from_arrays(columns, fields=list(self.kind)) if pa.types.is_struct(self.kind) else columns[0]

    def columns_of(self, entries: np.ndarray) -> list[pa.Array]:
        """Return the columns of the value of each entry."""
        return self.values.keys(self.value_ids(entries))

    def entries(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return (position in ``slots``, entry) for all entries of slots."""
        return self._of_slot.expand(slots)

    def counts(self, entries: np.ndarray) -> np.ndarray:
        """Return the count of each entry; never 0."""
        return self._counts[entries]

    def merge(self, into: np.ndarray, other: ValueCounts, slots: np.ndarray) -> Change:
        """Add the counts of another's slots to the slots ``into``; returns as ``add``."""
        positions, entries = other.entries(slots)
        return self.add(into[positions], other.values_of(entries), other.counts(entries))

    def columns(self, slots: np.ndarray) -> list[pa.Array]:
        """Return one column: per slot a list of (value, count)."""
        positions, entries = self.entries(slots)
        offsets = np.zeros(slots.size + 1, np.int32)
        np.cumsum(np.bincount(positions, minlength=slots.size), out=offsets[1:])
        pairs = pa.StructArray.from_arrays([self.values_of(entries), pa.array(self.counts(entries))], names=["value", "count"])
        return [pa.ListArray.from_arrays(pa.array(offsets), pairs)]

    def read(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> tuple[np.ndarray, pa.Array, np.ndarray]:
        """Return what to ``add`` for such a column."""
        lists = columns[0]
        pairs = lists.flatten()
        return np.repeat(slots, lists.value_lengths().to_numpy()), pairs.field("value"), pairs.field("count").to_numpy()
