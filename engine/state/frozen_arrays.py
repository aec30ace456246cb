"""FrozenArrays: arrays by slot as they were at a barrier, while their owner goes on writing to them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa

Columns = Callable[[np.ndarray], list[pa.Array]]
"""Makes the columns of some entries, by their positions."""

FrozenColumns = Callable[[np.ndarray | None], Columns]
"""Copies entries as they were at a barrier: those of ascending slots, whose positions count from 0; or for
``None`` all, where a slot is its position. Any thread may call it.
"""


class FrozenArrays:
    """The first ``count`` slots of some arrays, their first axis, as they are now. Nothing is copied yet: the
    owner calls ``save`` before it writes to slots, and any thread calls ``copies`` later.

    The owner may replace an array, by a longer one or by one it has rewritten: what it leaves behind changes
    no more. Trap: a write in place without ``save`` before it is seen by the copies.
    """

    def __init__(self, arrays: Sequence[np.ndarray], count: int) -> None:
        self._arrays = [array[:count] for array in arrays]
        self._is_saved = np.zeros(count, np.bool_)
        # slots with their rows of each array; of a slot the first rows count, and no later ones are saved
        self._saved: list[tuple[np.ndarray, list[np.ndarray]]] = []
        self._copies: list[np.ndarray] | None = None

    def save(self, slots: np.ndarray) -> None:
        """Save the rows of slots that are about to change. Only the owner's thread calls it."""
        if self._copies is not None:
            return
        # another thread may empty the list from here on, when its copies are complete
        arrays = self._arrays
        # a slot of a later key is not among those that are frozen
        fresh = slots[slots < self._is_saved.size]
        fresh = fresh[~self._is_saved[fresh]]
        if fresh.size:
            self._saved.append((fresh, [array[fresh] for array in arrays]))
            self._is_saved[fresh] = True

    def copies(self, slots: np.ndarray | None) -> list[np.ndarray]:
        """Return the rows of ascending slots (``None``: all) of each array, as they were. A second call
        returns the same.

        The owner may write meanwhile. It has saved a row before it writes to it. So what is saved once the
        copy is complete are all rows that may be wrong in it, half written ones included.
        """
        if self._copies is None:
            copies = [array.copy() if slots is None else array[slots] for array in self._arrays]
            wanted = None if slots is None else np.append(slots, -1)
            for saved, rows in list(self._saved):
                if wanted is None:
                    at, asked = saved, slice(None)
                else:
                    at = np.searchsorted(wanted[:-1], saved)
                    asked = wanted[at] == saved
                for copy, row in zip(copies, rows, strict=True):
                    copy[at[asked]] = row[asked]
            self._copies = copies
            self._saved, self._arrays = [], []
        return self._copies


class FrozenViews:
    """The frozen arrays of one owner that somebody may still read. Those of a snapshot that was given up
    disappear with it.
    """

    def __init__(self) -> None:
        self._views: list[weakref.ref[FrozenArrays]] = []

    def freeze(self, arrays: Sequence[np.ndarray], count: int) -> FrozenArrays:
        """Return the first ``count`` slots of the owner's arrays as they are now."""
        frozen = FrozenArrays(arrays, count)
        self._views = [*(view for view in self._views if view() is not None), weakref.ref(frozen)]
        return frozen

    def save(self, slots: np.ndarray) -> None:
        """Save the rows of slots that are about to change, for each of them."""
        for frozen in self._alive():
            frozen.save(slots)

    @property
    def some(self) -> bool:
        """Whether somebody may still read what is stored now."""
        return any(True for _ in self._alive())

    def _alive(self) -> Iterator[FrozenArrays]:
        return (frozen for view in self._views if (frozen := view()) is not None)
