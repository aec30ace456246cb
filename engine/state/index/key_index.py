"""KeyIndex: key columns to dense slots. One fixed-width column goes to a DirectIndex, one string column to a
StringIndex.

Several columns become rows of words. A string or nested value goes through an index of its own: its slot is
the word, counted so that it can be freed. Fixed-width columns contribute their words. Bits mark which of
those are NULL: in the high half of the first slot's word, or in words of their own where there is no room.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.key_groups import groups_of_hashes
from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.stable_hash import stable_hash
from penstock.engine.state.frozen_arrays import Columns, FrozenColumns, FrozenViews
from penstock.engine.state.index.direct_index import DirectIndex
from penstock.engine.state.index.nested_index import NestedIndex
from penstock.engine.state.index.slot_sets import UseCounts
from penstock.engine.state.index.tagged_index import RowIndex, StringIndex
from penstock.engine.state.index.word_index import SlotsInSteps, Words, slots_at_barrier

# Of an int64 word, for sizes.
_WORD_BYTES = 8


# Of a word that has a slot: an index assigns fewer slots than 2**32.
_SLOT_BITS = 32
_SLOT = (1 << _SLOT_BITS) - 1
# NULL bits above them; the sign stays 0, for a word of -1 is no slot.
_NULL_BITS_MOST = 31


class KeyIndex:
    """Rows of key columns to slots; NULL equals NULL, NaN equals NaN, -0.0 equals 0.0, inside of nested
    values too.

    Slots are dense small integers below ``capacity``, reused after ``remove``; arrays indexed by slot must
    have ``capacity`` elements, which only ``lookup_or_insert`` raises. No columns: one key, slot 0.
    """

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = list(types)
        self.clear()

    def clear(self) -> None:
        """Forget all keys and free their memory."""
        types = self._types
        self._index: _WordKeys | _StringKeys | _RowKeys
        # A string or binary column has its own table; a fixed-width one, or none, is a word; everything else
        # is a row of words.
        if len(types) == 1 and col.is_bytes(types[0]):
            self._index = _StringKeys(types[0])
        elif not types or (
            len(types) == 1 and not col.is_wide(types[0]) and not pa.types.is_nested(types[0])
        ):
            self._index = _WordKeys(types[0] if types else None)
        else:
            self._index = _RowKeys(types)

    def __len__(self) -> int:
        return len(self._index.slots)

    @property
    def capacity(self) -> int:
        """The bound of the slots assigned until the index grows."""
        return self._index.slots.capacity

    def expect(self, batches: Sequence[Sequence[pa.Array]]) -> None:
        """Tell an empty index which keys come next, the columns of each batch; changes no answer. For an
        index that is emptied often.
        """
        if isinstance(self._index, _WordKeys):
            self._index.expect(batches)

    def lookup_or_insert(self, columns: Sequence[pa.Array], num_rows: int | None = None) -> np.ndarray:
        """Return the slot of each row (int64), new keys getting a free one. ``num_rows`` is needed when
        there are no columns.
        """
        return self._index.lookup_or_insert(columns, len(columns[0]) if num_rows is None else num_rows)

    def insert_all(self, batches: Sequence[Sequence[pa.Array]]) -> SlotsInSteps:
        """Look up or insert the rows of many batches, in steps; return the slot of each row. Nothing may be
        asked of the index before the last step.
        """
        if isinstance(self._index, _WordKeys):
            return (yield from self._index.insert_all(batches))
        slots = [np.zeros(0, np.int64)]
        for columns in batches:
            slots.append(self.lookup_or_insert(columns))
            yield
        return np.concatenate(slots)

    def lookup(self, columns: Sequence[pa.Array], num_rows: int | None = None) -> np.ndarray:
        """Return the slot of each row, -1 where it is no key."""
        return self._index.lookup(columns, len(columns[0]) if num_rows is None else num_rows)

    def remove(self, slots: np.ndarray) -> None:
        """Free distinct live slots and forget their keys; the caller clears what it stores by slot."""
        if slots.size:
            self._index.remove(slots)

    def keys(self, slots: np.ndarray) -> list[pa.Array]:
        """Return the key columns of slots."""
        return self._index.keys(slots)

    def freeze(self) -> FrozenColumns:
        """Return the key columns of slots as they are now, to be copied later."""
        return self._index.freeze()

    def widths(self, slots: np.ndarray) -> np.ndarray:
        """Return about how many bytes the first key column of each slot is, without making it."""
        return self._index.widths(slots)

    def live_slots(self) -> np.ndarray:
        """Return the slots of all keys, ascending."""
        return self._index.slots.live_slots()

    @property
    def allocated(self) -> int:
        """The bound of the slots assigned so far."""
        return self._index.slots.allocated

    def slots_at_barrier(self) -> Callable[[np.ndarray | None], np.ndarray]:
        """Return what returns, later and in any thread, those of ascending slots that are live now; all of
        them for ``None``.
        """
        return slots_at_barrier(self._index.slots)

    def key_groups(self, slots: np.ndarray, max_parallelism: int) -> np.ndarray:
        """Return the key group of each slot's key, uint16; group 0 when there are no key columns."""
        if not self._types:
            return np.zeros(slots.size, np.uint16)
        return groups_of_hashes(stable_hash(self.keys(slots)), max_parallelism)


class _WordKeys:
    """One fixed-width column, or none at all."""

    def __init__(self, kind: pa.DataType | None) -> None:
        self._kind = kind
        self.slots = DirectIndex()
        self._views = FrozenViews()

    def _words(self, columns: Sequence[pa.Array], num_rows: int) -> tuple[np.ndarray, np.ndarray]:
        if self._kind is None:
            # Without columns all rows are one key: word 0.
            return np.zeros(num_rows, np.int64), col.NO_BYTES
        return col.words(columns[0]), col.validity(columns[0])

    def expect(self, batches: Sequence[Sequence[pa.Array]]) -> None:
        if self._kind is not None:
            self.slots.expect([col.words(columns[0]) for columns in batches])

    def insert_all(self, batches: Sequence[Sequence[pa.Array]]) -> SlotsInSteps:
        pieces: list[Words] = []
        for columns in batches:
            pieces.append(self._words(columns, len(columns[0])))
            yield
        return (yield from self.slots.insert_all(pieces))

    def lookup_or_insert(self, columns: Sequence[pa.Array], num_rows: int) -> np.ndarray:
        return self.slots.lookup_or_insert(*self._words(columns, num_rows))

    def lookup(self, columns: Sequence[pa.Array], num_rows: int) -> np.ndarray:
        return self.slots.lookup(*self._words(columns, num_rows))

    def remove(self, slots: np.ndarray) -> None:
        self._views.save(slots)
        self.slots.remove(slots)

    def freeze(self) -> FrozenColumns:
        null = self.slots.null_slot
        frozen = self._views.freeze([self.slots.keys], self.slots.allocated)

        def of(slots: np.ndarray | None) -> Columns:
            (words,) = frozen.copies(slots)
            return lambda at: self._columns(words[at], at if slots is None else slots[at], null)

        return of

    def keys(self, slots: np.ndarray) -> list[pa.Array]:
        return self._columns(self.slots.keys[slots], slots, self.slots.null_slot)

    def _columns(self, words: np.ndarray, slots: np.ndarray, null: int) -> list[pa.Array]:
        if self._kind is None:
            return []
        # The NULL key has a slot but no word.
        valid = (slots != null).view(np.uint8) if null >= 0 else col.NO_BYTES
        return [col.array_of_words(words, valid, self._kind)]

    def widths(self, slots: np.ndarray) -> np.ndarray:
        return np.full(slots.size, _WORD_BYTES)


class _StringKeys:
    """One string column."""

    def __init__(self, kind: pa.DataType) -> None:
        self.slots = StringIndex(kind)

    def lookup_or_insert(self, columns: Sequence[pa.Array], num_rows: int) -> np.ndarray:
        return self.slots.lookup_or_insert(columns[0])

    def lookup(self, columns: Sequence[pa.Array], num_rows: int) -> np.ndarray:
        return self.slots.lookup(columns[0])

    def remove(self, slots: np.ndarray) -> None:
        self.slots.remove(slots)

    def freeze(self) -> FrozenColumns:
        frozen = self.slots.freeze()

        def of(slots: np.ndarray | None) -> Columns:
            strings = frozen(slots)
            return lambda at: [strings(at)]

        return of

    def keys(self, slots: np.ndarray) -> list[pa.Array]:
        return [self.slots.keys(slots)]

    def widths(self, slots: np.ndarray) -> np.ndarray:
        return self.slots.widths(slots)


class _Interned:
    # Slots of ``values`` are the words of the row keys.
    """One string or nested column of several: its distinct values and how many keys use each."""

    def __init__(self, kind: pa.DataType) -> None:
        self.values = StringIndex(kind) if col.is_bytes(kind) else NestedIndex(kind)
        self._uses = UseCounts()

    def retain(self, slots: np.ndarray) -> None:
        self._uses.retain(slots, self.values.capacity)

    def release(self, slots: np.ndarray) -> None:
        unused = self._uses.release(slots)
        if unused.size:
            self.values.remove(unused)


class _RowKeys:
    """Several columns, or one wide decimal or nested one: a row of words per key."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._types = list(types)
        # The layout of a row: one word a column, two for a wide decimal.
        self._first_word: list[int] = []
        width = 0
        for kind in types:
            self._first_word.append(width)
            width += 2 if col.is_wide(kind) else 1
        self._strings = {
            i: _Interned(kind)
            for i, kind in enumerate(types)
            if col.is_bytes(kind) or pa.types.is_nested(kind)
        }
        # By fixed-width column: the word with its bit that says NULL, and which bit.
        fixed = [i for i in range(len(types)) if i not in self._strings]
        if self._strings and len(fixed) <= _NULL_BITS_MOST:
            word = self._first_word[min(self._strings)]
            self._null_bits = {i: (word, _SLOT_BITS + n) for n, i in enumerate(fixed)}
        else:
            self._null_bits = {i: (width + n // 64, n % 64) for n, i in enumerate(fixed)}
            width += (len(fixed) + 63) // 64
        self.slots = RowIndex(width)
        self._views = FrozenViews()

    def _rows(self, columns: Sequence[pa.Array], num_rows: int, insert: bool) -> np.ndarray:
        rows = np.zeros((num_rows, self.slots.width), np.int64)
        for i, (column, first) in enumerate(zip(columns, self._first_word, strict=True)):
            if i in self._strings:
                values = self._strings[i].values
                # A string that is no value gives -1, which no stored row has: the row is unknown then.
                rows[:, first] |= values.lookup_or_insert(column) if insert else values.lookup(column)
                continue
            valid = col.validity(column)
            parts = col.wide_words(column) if col.is_wide(column.type) else (col.words(column),)
            for k, part in enumerate(parts):
                # NULL is word 0 with its bit set, so that NULL equals NULL and differs from 0.
                rows[:, first + k] = part if valid.size == 0 else np.where(valid, part, 0)
            if valid.size:
                word, bit = self._null_bits[i]
                rows[:, word] |= (valid == 0).astype(np.int64) << bit
        return rows

    def lookup_or_insert(self, columns: Sequence[pa.Array], num_rows: int) -> np.ndarray:
        rows = self._rows(columns, num_rows, True)
        slots, fresh = self.slots.lookup_or_insert(rows)
        for i, interned in self._strings.items():
            # Each key counts as one use of its values; rows of known keys add none.
            interned.retain(rows[fresh, self._first_word[i]] & _SLOT)
        return slots

    def lookup(self, columns: Sequence[pa.Array], num_rows: int) -> np.ndarray:
        return self.slots.lookup(self._rows(columns, num_rows, False))

    def remove(self, slots: np.ndarray) -> None:
        self._views.save(slots)
        # Before the rows: they name the values.
        for i, interned in self._strings.items():
            interned.release(self.slots.keys[slots, self._first_word[i]] & _SLOT)
        self.slots.remove(slots)

    def freeze(self) -> FrozenColumns:
        frozen = self._views.freeze([self.slots.keys], self.slots.allocated)
        interned = {i: strings.values.freeze() for i, strings in self._strings.items()}

        def of(slots: np.ndarray | None) -> Columns:
            (rows,) = frozen.copies(slots)
            values = {i: of_values(None) for i, of_values in interned.items()}
            return lambda at: self._columns(rows[at], values)

        return of

    def keys(self, slots: np.ndarray) -> list[pa.Array]:
        values = {i: strings.values.keys for i, strings in self._strings.items()}
        return self._columns(self.slots.keys[slots], values)

    def widths(self, slots: np.ndarray) -> np.ndarray:
        # A fixed-width first column.
        if 0 not in self._strings:
            return np.full(slots.size, _WORD_BYTES * (2 if col.is_wide(self._types[0]) else 1))
        return self._strings[0].values.widths(self.slots.keys[slots, 0] & _SLOT)

    def _columns(
        self, rows: np.ndarray, values: Mapping[int, Callable[[np.ndarray], pa.Array]]
    ) -> list[pa.Array]:
        """Return the key columns of rows of words; ``values`` makes those of a string or nested column."""
        return [self._column(i, rows, values.get(i)) for i in range(len(self._types))]

    def _column(self, i: int, rows: np.ndarray, values: Callable[[np.ndarray], pa.Array] | None) -> pa.Array:
        first, kind = self._first_word[i], self._types[i]
        if values is not None:
            return values(rows[:, first] & _SLOT)
        low = np.ascontiguousarray(rows[:, first])
        word, bit = self._null_bits[i]
        null = (rows[:, word] >> bit) & 1
        valid = (null == 0).view(np.uint8) if null.any() else col.NO_BYTES
        if col.is_wide(kind):
            return col.array_of_wide_words(low, rows[:, first + 1], valid, kind)
        return col.array_of_words(low, valid, kind)
