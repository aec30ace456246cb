"""StringIndex: strings (or bytes) to dense slots; each distinct string is held once, in an arena."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.kernels import arrow_views as col
from penstock.engine.kernels.index import tagged_index as kernel
from penstock.engine.state.index.slot_allocator import TaggedSlots
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.mapped_arrays import Mapped

_FIRST_BYTES = 1024


class StringIndex(Mapped):
    """One string column's values to slots, NULL being a key like others."""

    MAPPED = ("arena", "places")

    def __init__(self, kind: pa.DataType) -> None:
        self._kind = kind
        self._slots = TaggedSlots()
        self._reset()

    def _reset(self) -> None:
        self._slots.reset()
        self.arena = np.zeros(_FIRST_BYTES, np.uint8)
        self.places = np.zeros((self._slots.capacity, 2), np.int64)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def capacity(self) -> int:
        """The bound of slots given so far and until the index grows."""
        return self._slots.capacity

    def lookup_or_insert(self, column: pa.Array) -> np.ndarray:
        """Return the slot of each string (int64), new ones getting a free one."""
        return self._run(column, True)

    def lookup(self, column: pa.Array) -> np.ndarray:
        """Return the slot of each string, -1 where it is no key."""
        return self._run(column, False)

    def _run(self, column: pa.Array, give: bool) -> np.ndarray:
        offsets, data = col.string_parts(column)
        valid = col.validity(column)
        out = np.empty(len(column), np.int64)
        done = 0
        while True:
            s = self._slots
            done = kernel.insert_strings(
                offsets,
                data,
                valid,
                done,
                s.table,
                s.bits,
                self.arena,
                self.places,
                s.tags,
                s.free,
                s.state,
                give,
                out,
            )
            if done == out.size:
                return out
            self._reserve(int(offsets[done + 1] - offsets[done]))

    def _reserve(self, length: int) -> None:
        s = self._slots
        if s.full:
            s.grow()
            self.places = grown(self.places, s.capacity)
        used = int(s.state[kernel.USED])
        if used + length > self.arena.size:
            if s.state[kernel.GARBAGE] * 2 > used:
                self._compact()
            if int(s.state[kernel.USED]) + length > self.arena.size:
                self.arena = grown(self.arena, max(self.arena.size * 2, used + length))

    def _compact(self) -> None:
        live = self._slots.live_slots()
        offsets, data = self._gather(live)
        self.arena[: data.size] = data
        self.places[live, 0] = offsets[:-1]
        self._slots.state[kernel.USED] = data.size
        self._slots.state[kernel.GARBAGE] = 0

    def _gather(self, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        starts, lengths = np.ascontiguousarray(self.places[slots].T)
        offsets = np.zeros(slots.size + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        kernel.gather_strings(starts, lengths, self.arena, data)
        return offsets, data

    def keys(self, slots: np.ndarray) -> pa.Array:
        """Return the strings of slots."""
        offsets, data = self._gather(slots)
        null = self._slots.null_slot
        valid = (slots != null).view(np.uint8) if null >= 0 else col.NO_BYTES
        return col.array_of_strings(offsets, data, valid, self._kind)

    def remove(self, slots: np.ndarray) -> None:
        """Free distinct live slots and forget their strings."""
        if slots.size == len(self):
            self._reset()
            return
        self._slots.state[kernel.GARBAGE] += self.places[slots, 1].sum()
        self._slots.remove(slots)

    def live_slots(self) -> np.ndarray:
        """Return the slots of all strings, ascending."""
        return self._slots.live_slots()
