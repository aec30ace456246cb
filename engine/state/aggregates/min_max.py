"""MIN, MAX and ANY_VALUE: one value by slot under inserts, counts of all values under retraction."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import truths
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.aggregates import min_max as kernel
from penstock.engine.kernels.index.tagged_index import gather_strings
from penstock.engine.state.aggregates.accumulator import TablePart
from penstock.engine.state.aggregates.value_counts import Change, CountedPart
from penstock.engine.state.frozen_arrays import Columns, FrozenColumns
from penstock.engine.state.index.word_index import grown


class LeastValue(TablePart):
    """The least (or ``greatest``) fixed-width value. Table: the words of the best row (complemented for
    the greatest), then 1 if there is one.
    """

    def __init__(self, kind: pa.DataType, greatest: bool) -> None:
        self._kind = kind
        # The complement reverses the order of words: MAX is MIN of the complements.
        self._flip = np.int64(-1 if greatest else 0)
        # A wide decimal is two words. The last column says whether there is a value.
        super().__init__(3 if col.is_wide(kind) else 2)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        if pa.types.is_floating(self._kind):
            numbers = col.floats(values)
            kernel.best_floats(slots, numbers, numbers.view(np.int64), self._flip, self.table)
        elif col.is_wide(self._kind):
            kernel.least_rows(slots, col.order_words(values) ^ self._flip, self.table)
        else:
            kernel.best_words(slots, col.words(values), self._flip, self.table)

    def merge(self, into: np.ndarray, other: LeastValue, slots: np.ndarray) -> None:
        # A slot without a value would compete with zeros.
        state = other.table[slots]
        some = state[:, -1] != 0
        kernel.least_rows(into[some], np.ascontiguousarray(state[some, :-1]), self.table)

    def holds(self, slots: np.ndarray, values: pa.Array) -> np.ndarray:
        """Return whether each value is its slot's best one."""
        # Compared as words: equal values have equal words.
        return (self.table[slots, :-1] == col.order_words(values) ^ self._flip).all(axis=1)

    def best(self, state: np.ndarray) -> pa.Array:
        """Return MIN or MAX."""
        some = state[-1] != 0
        return col.array_of_order_words(
            # The complement twice is the word itself.
            state[:-1].T ^ self._flip,
            col.NO_BYTES if some.all() else some.view(np.uint8),
            self._kind,
        )


# Of an arena, in bytes.
_FIRST_BYTES = 1024


class BestString(TablePart):
    """The least (or ``greatest``) string, by bytes. Table: its start in the arena, its length plus 1 (0:
    none).

    A state of it is good until the next ``add``, which may move the strings.
    """

    def __init__(self, kind: pa.DataType, greatest: bool) -> None:
        self._kind = kind
        self._greatest = greatest
        # The bytes of the best strings, one after another, superseded ones among them; ``_used[0]`` of it are
        # in use.
        self._arena = np.zeros(_FIRST_BYTES, np.uint8)
        self._used = np.zeros(1, np.int64)
        super().__init__(2)

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        assert values is not None
        offsets, data = col.string_parts(values)
        done, in_place = 0, not self._views.some
        # The kernel stops where the arena is full; it resumes at that row in a larger arena.
        while True:
            done = kernel.best_strings(
                slots, offsets, data, self._greatest, done, in_place, self.table, self._arena, self._used
            )
            if done == slots.size:
                return
            self._reserve(int(offsets[done + 1] - offsets[done]))

    def _reserve(self, length: int) -> None:
        """Compact the arena, and double it unless that freed half of it."""
        # Only the best strings are copied; superseded ones are dropped.
        live = np.flatnonzero(self.table[:, 1])
        offsets, data = _gather(self.state(live), self._arena)
        size = self._arena.size
        # At least half of the arena is free afterwards, so compactions stay few.
        while size < 2 * data.size + length:
            size *= 2
        # A new arena and a new table: a snapshot may still read the others.
        self._arena = grown(data, size)
        self.copy_table()
        self.table[live, 0] = offsets[:-1]
        self._used[0] = data.size

    def clear(self, slots: np.ndarray) -> None:
        super().clear(slots)
        # No string left: the arena starts again, another one where a snapshot may read this.
        if not self.table[:, 1].any():
            self._used[0] = 0
            if self._views.some:
                self._arena = np.zeros(_FIRST_BYTES, np.uint8)

    def merge(self, into: np.ndarray, other: BestString, slots: np.ndarray) -> None:
        some = other.table[slots, 1] != 0
        self.add(into[some], other.best(other.state(slots[some])), col.NO_WORDS)

    def holds(self, slots: np.ndarray, values: pa.Array) -> np.ndarray:
        """Return whether each value is its slot's best one."""
        return truths(pc.equal(self.best(self.state(slots)), values))

    def best(self, state: np.ndarray) -> pa.Array:
        """Return MIN or MAX."""
        return self._best(state, self._arena)

    def _best(self, state: np.ndarray, arena: np.ndarray) -> pa.Array:
        offsets, data = _gather(state, arena)
        some = state[1] != 0
        return col.array_of_strings(
            offsets, data, col.NO_BYTES if some.all() else some.view(np.uint8), self._kind
        )

    def freeze(self, count: int) -> FrozenColumns:
        arena, frozen = self._arena, self._views.freeze([self.table], count)

        def of(slots: np.ndarray | None) -> Columns:
            (table,) = frozen.copies(slots)
            # On disk the strings themselves: places in the arena mean nothing to another task.
            return lambda at: [self._best(np.ascontiguousarray(table[at].T), arena)]

        return of

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        values = columns[0]
        some = values.is_valid()
        self.add(slots[truths(some)], values.filter(some), col.NO_WORDS)


def _gather(state: np.ndarray, arena: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return offsets and bytes of the strings of a state."""
    # 0 is "none": its length is 0.
    starts, lengths = state[0], np.maximum(state[1] - 1, 0)
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    data = np.empty(int(offsets[-1]), np.uint8)
    gather_strings(starts, lengths, arena, data)
    return offsets, data


class RetractableBest(CountedPart):
    """MIN or MAX under retraction: the best value, and how often each slot has each value, to find the
    next best among the slot's own.
    """

    def __init__(self, kind: pa.DataType, greatest: bool) -> None:
        super().__init__(kind)
        self._best = best_part(kind, greatest)

    def reserve(self, capacity: int) -> None:
        self._best.reserve(capacity)

    def clear(self, slots: np.ndarray) -> None:
        self._best.clear(slots)
        super().clear(slots)

    def best(self, slots: np.ndarray) -> pa.Array:
        """Return MIN or MAX."""
        return self._best.best(self._best.state(slots))

    def settle(self, change: Change) -> None:
        counts = self._counts
        # First the new values: where one of them is the best now, the loss of the old best needs no scan.
        self._offer(change.appeared)
        slots = counts.slots_of(change.gone)
        lost = (
            # Values that are gone but were not the best change nothing.
            np.unique(slots[self._best.holds(slots, counts.values_of(change.gone))]) if slots.size else slots
        )
        super().settle(change)
        # The best value of these slots is gone: find the next best among the values still counted.
        if lost.size:
            self._best.clear(lost)
            _, entries = counts.entries(lost)
            self._offer(entries[counts.counts(entries) > 0])

    def _offer(self, entries: np.ndarray) -> None:
        if entries.size:
            self._best.add(self._counts.slots_of(entries), self._counts.values_of(entries), col.NO_WORDS)


def best_part(kind: pa.DataType, greatest: bool) -> LeastValue | BestString:
    """Return the cheap part for the least (or greatest) value of a type."""
    return BestString(kind, greatest) if col.is_bytes(kind) else LeastValue(kind, greatest)
