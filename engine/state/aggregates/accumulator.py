"""The parts of accumulators: what one aggregate keeps per slot, most of it in a few columns of one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of, numbers_of
from penstock.engine.state.aggregates.slot_table import SlotTable
from penstock.engine.state.mapped_arrays import Mapped
from penstock.engine.storage.spill_files import SpillFiles


class Part(Protocol):
    """State by slot of one aggregated column. ``weights`` of length 0 mean +1 each; values given to
    ``add`` hold no NULL.
    """

    def reserve(self, capacity: int) -> None:
        """Have room for slots below ``capacity``; new ones are empty."""

    def add(self, slots: np.ndarray, values: pa.Array | None, weights: np.ndarray) -> None:
        """Add weighted values to slots (which may repeat)."""

    def clear(self, slots: np.ndarray) -> None:
        """Empty these slots."""

    def merge(self, into: np.ndarray, other: Any, slots: np.ndarray) -> None:
        """Add the state of another part's ``slots`` to the slots ``into``."""

    def columns(self, slots: np.ndarray) -> list[pa.Array]:
        """Return the state of slots as columns for a checkpoint, not sharing memory."""

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        """Set the state of empty slots from such columns."""


class TablePart(Mapped):
    """A part whose whole state is ``width`` int64 columns per slot, zero being empty: ``table`` int64
    [capacity, width].

    The columns are the part's own until ``share`` gives it some of a wider table, which then is reserved and
    cleared by its owner. Results are read from a ``state``: int64 [width, n], the columns of n slots.
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self._own = SlotTable(width)
        self.table: np.ndarray = self._own.rows[:, :width]

    def share(self, table: np.ndarray) -> None:
        """Use these columns of a wider table from now on."""
        self.table = table

    def reserve(self, capacity: int) -> None:
        if self._own.reserve(capacity):
            self.table = self._own.rows[:, : self.width]

    def spillable_bytes(self) -> int:
        return super().spillable_bytes() + self._own.in_memory_bytes()

    def spill(self, files: SpillFiles) -> None:
        super().spill(files)
        if self._own.in_memory_bytes():
            self._own.move(files)
            self.table = self._own.rows[:, : self.width]

    def clear(self, slots: np.ndarray) -> None:
        self.table[slots] = 0

    def state(self, slots: np.ndarray) -> np.ndarray:
        """Return the state of slots."""
        return np.ascontiguousarray(self.table[slots].T)

    def columns(self, slots: np.ndarray) -> list[pa.Array]:
        return [array_of(column) for column in self.state(slots)]

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        for k, column in enumerate(columns):
            self.table[slots, k] = numbers_of(column)


class FloatPart(TablePart):
    """A part whose table holds float64."""

    def columns(self, slots: np.ndarray) -> list[pa.Array]:
        return [array_of(column) for column in self.state(slots).view(np.float64)]

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        super().restore(slots, [column.view(pa.int64()) for column in columns])
