"""The newest rows of the last result, for ``\\last`` and ``\\tail``."""

from __future__ import annotations

from collections import deque

import pyarrow as pa

# An endless result must not fill the memory: older batches are dropped beyond these.
MOST_BYTES = 64 << 20
MOST_BATCHES = 10_000


class LastRows:
    """The rows of one result as they were printed; of a long one the newest. ``kinds`` are the SQL types'
    names.
    """

    def __init__(self, schema: pa.Schema, kinds: list[str]) -> None:
        self.schema = schema
        self.kinds = kinds
        self.dropped = 0
        self._batches: deque[pa.RecordBatch] = deque()
        self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the next rows; the oldest batches make room."""
        self._batches.append(batch)
        self._bytes += batch.nbytes
        # The newest batch stays, whatever its size: it is in memory anyway.
        while len(self._batches) > 1 and (self._bytes > MOST_BYTES or len(self._batches) > MOST_BATCHES):
            oldest = self._batches.popleft()
            self._bytes -= oldest.nbytes
            self.dropped += oldest.num_rows

    def add_table(self, rows: pa.Table) -> None:
        """Add all rows of a table."""
        for batch in rows.to_batches():
            self.add(batch)

    def rows(self, most: int | None = None) -> pa.Table:
        """Return the rows, or the last ``most`` of them."""
        rows = pa.Table.from_batches(self._batches, self.schema)
        return rows if most is None else rows.slice(max(0, rows.num_rows - most))
