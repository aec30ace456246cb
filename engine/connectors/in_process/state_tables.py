"""The source of a job's state as a table: entries of a completed checkpoint, a piece at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa

from penstock.engine.api.source import Position, ScanRequest, SplitReader
from penstock.engine.formats.decoded_batch import batch_of

ReadState = Callable[[Mapping[str, str]], Iterator[pa.Table]]


class StateTables:
    """The service that reads states. ``read`` yields the entries of the state that a table's options name, in
    pieces of which each is read on demand.
    """

    def __init__(self, read: ReadState) -> None:
        self.read = read


class StateSource:
    """One split: a state. A checkpoint never changes, so its rows are the same at each read."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request

    def splits(self) -> list[str]:
        return ["state"]

    def recall(self, split_ids: list[str]) -> None:
        """Accept any split ids: there is one state."""

    def open(self, split_id: str, position: Position | None) -> SplitReader:
        schema = self._request.table.source_schema
        columns = [schema[index].name for index in self._request.columns]
        read = self._request.services.get(StateTables).read
        return StateReader(read(self._request.table.options), columns, (position or {}).get("row", 0))

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0


class StateReader:
    """Reads the pieces of a state from a row on. It holds one piece at a time."""

    def __init__(self, pieces: Iterator[pa.Table], columns: list[str], begin: int) -> None:
        self._pieces = pieces
        self._columns = columns
        self._emitted = 0
        self._left: pa.Table | None = next(pieces, None)
        # rows before the position: read again and left out
        while self._left is not None and self._emitted < begin:
            self._take(begin - self._emitted)

    @property
    def ended(self) -> bool:
        return self._left is None

    def poll(self, max_rows: int) -> pa.RecordBatch | None:
        if self._left is None:
            return None
        taken = self._take(max_rows)
        # without columns only rows are counted
        if not self._columns:
            return batch_of([], (), taken.num_rows)
        return taken.select(self._columns).combine_chunks().to_batches()[0] if taken.num_rows else None

    def position(self) -> Position:
        return {"row": self._emitted}

    def close(self) -> None:
        self._left = None

    def _take(self, most: int) -> pa.Table:
        """Return up to ``most`` rows of the piece at hand, and read the next piece when it has no more."""
        assert self._left is not None
        taken = self._left.slice(0, most)
        self._emitted += taken.num_rows
        self._left = self._left.slice(taken.num_rows)
        while self._left is not None and not self._left.num_rows:
            self._left = next(self._pieces, None)
        return taken
