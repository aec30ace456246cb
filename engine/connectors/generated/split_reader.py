"""Reads one split of a generated source. Rows depend only on their numbers."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.engine.api.source import Position

BATCH_BYTES = 16 << 20
"""Of the texts of one batch: a random string takes eight times its bytes while it is made."""


class GeneratedReader:
    """Generates the rows of one split with ``make(first, count)``; ``rows``: their number, ``None`` when it
    never ends. ``width``: about how many bytes a row has; wide ones are made a few at once.
    """

    def __init__(
        self,
        make: Callable[[int, int], pa.RecordBatch],
        rows: int | None,
        position: Position | None,
        width: int = 0,
    ) -> None:
        self._make = make
        self._rows = rows
        self._most = max(1, BATCH_BYTES // max(1, width))
        self._emitted: int = (position or {}).get("row", 0)

    @property
    def ended(self) -> bool:
        return self._rows is not None and self._emitted >= self._rows

    def poll(self, max_rows: int) -> pa.RecordBatch | None:
        count = min(max_rows, self._most)
        if self._rows is not None:
            count = min(count, self._rows - self._emitted)
        if count <= 0:
            return None
        # the position is the number of the next row, which makes any row again
        batch = self._make(self._emitted, count)
        self._emitted += count
        return batch

    def position(self) -> Position:
        return {"row": self._emitted}

    def close(self) -> None:
        """Nothing: no resource is open."""
