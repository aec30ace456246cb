"""The nexmark source: an endless or finite run of events, dealt into splits in turns; any row can be made
again from its position.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import PenstockError
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.generated.nexmark_columns import NexmarkColumns
from penstock.engine.connectors.generated.nexmark_model import NexmarkModel
from penstock.engine.connectors.generated.split_reader import GeneratedReader
from penstock.engine.formats.decoded_batch import batch_of

_STRIDES = (953, 967, 971)


class NexmarkSource:
    """Split s of n holds the turns s, s + n, s + 2n .. of people, auctions and bids; a table of one kind
    has its rows of each turn.
    """

    def __init__(self, request: ScanRequest) -> None:
        table = request.table
        self._request = request
        self._model = NexmarkModel(table)
        self._columns = NexmarkColumns(self._model)
        self._table = str(option(table, "table"))
        self._fields = tuple(table.source_schema[index] for index in request.columns)
        self._splits = int(option(table, "splits") or 1)
        declared = option(table, "events.num")
        self._events = None if declared is None else int(declared)
        self._first, self._per_turn = self._model.turn(self._table)
        self._group, self._stride = self._disorder(int(option(table, "out-of-order") or 0))

    def splits(self) -> list[str]:
        return [f"{split:05d}/{self._splits}" for split in range(self._splits)]

    def recall(self, split_ids: list[str]) -> None:
        if sorted(split_ids) != self.splits():
            message = f"table {self._request.table.name} had {len(split_ids)} splits, it has {self._splits}"
            raise PenstockError("DAT-4107", message, hint="set 'splits' as it was to go on from a checkpoint")

    def open(self, split_id: str, position: Position | None) -> GeneratedReader:
        split = int(split_id.partition("/")[0])
        rows = self._rows(split)
        return GeneratedReader(lambda first, count: self.make(split, first, count, rows), rows, position)

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return int(option(self._request.table, "rows-per-second") or 0)

    def make(self, split: int, first: int, count: int, rows: int | None) -> pa.RecordBatch:
        """Return the rows first .. first + count of a split that has so many in all (``None``: endless)."""
        events = self._model.events(self._numbers(split, self._order(first, count, rows)))
        arrays = [self._columns.column(self._table, field.name, field.type, events) for field in self._fields]
        return batch_of(arrays, self._fields, count)

    def _numbers(self, split: int, places: np.ndarray) -> np.ndarray:
        """Return the event numbers of rows of a split."""
        turns, offsets = np.divmod(places, self._per_turn)
        return (turns * self._splits + split) * self._model.total + self._first + offsets

    def _order(self, first: int, count: int, rows: int | None) -> np.ndarray:
        """Return which rows of the split, counted by time, stand at these positions: full groups of turns
        are shuffled.
        """
        places = np.arange(first, first + count, dtype=np.int64)
        if self._group <= 1:
            return places
        starts = places // self._group * self._group
        shuffled = starts + (places - starts) * self._stride % self._group
        return shuffled if rows is None else np.where(starts + self._group > rows, places, shuffled)

    def _disorder(self, out_of_order_ms: int) -> tuple[int, int]:
        """Return how many rows make a group whose times lie within the bound, and the step that runs
        through all of them.
        """
        events = out_of_order_ms * self._model.rate // 1000
        turns = (events // self._model.total - 1) // self._splits + 1 if events >= self._model.total else 0
        group = turns * self._per_turn
        return group, next((stride for stride in _STRIDES if group % stride), 1)

    def _rows(self, split: int) -> int | None:
        if self._events is None:
            return None
        turns, rest = divmod(self._events, self._model.total)
        own = (turns - split + self._splits - 1) // self._splits if turns > split else 0
        last = min(max(rest - self._first, 0), self._per_turn) if turns % self._splits == split else 0
        return own * self._per_turn + last
