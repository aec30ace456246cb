"""The parts of accumulators: what one aggregate keeps per slot, most of it in one numpy table with a row per slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from engine.kernels.slots import gather
from engine.state.word_index import grown


class Part(Protocol):
    """State by slot of one aggregated column. ``weights`` of length 0 mean +1 each; values given to ``add`` hold no NULL."""

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


class TablePart:
    """A part whose state is one table: ``table`` int64 or float64 [capacity, width], zero being empty."""

    def __init__(self, width: int, dtype: type) -> None:
        self.table: np.ndarray = np.zeros((0, width), dtype)

    def reserve(self, capacity: int) -> None:
        if capacity > len(self.table):
            self.table = grown(self.table, capacity)

    def clear(self, slots: np.ndarray) -> None:
        self.table[slots] = 0

    def gathered(self, slots: np.ndarray) -> np.ndarray:
        """Return the state of slots, one contiguous row per column of the table."""
        out = np.empty((self.table.shape[1], slots.size), self.table.dtype)
        gather(slots, self.table.view(np.int64), out.view(np.int64))
        return out

    def columns(self, slots: np.ndarray) -> list[pa.Array]:
        return [pa.array(column) for column in self.gathered(slots)]

    def restore(self, slots: np.ndarray, columns: Sequence[pa.Array]) -> None:
        for k, column in enumerate(columns):
            self.table[slots, k] = column.to_numpy()
