"""Reads one split of a generated source. Rows depend only on their numbers."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.engine.api.source import Position


class GeneratedReader:
    """Generates the rows of one split with ``make(first, count)``; ``rows``: their number, ``None`` when it
    never ends.
    """

    def __init__(
        self, make: Callable[[int, int], pa.RecordBatch], rows: int | None, position: Position | None
    ) -> None:
        self._make = make
        self._rows = rows
        self._emitted: int = (position or {}).get("row", 0)

    @property
    def ended(self) -> bool:
        return self._rows is not None and self._emitted >= self._rows

    def poll(self, max_rows: int) -> pa.RecordBatch | None:
        count = max_rows if self._rows is None else min(max_rows, self._rows - self._emitted)
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
