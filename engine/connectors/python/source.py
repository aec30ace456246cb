"""The source over a user's generator: a thread reads it ahead, so that polling never blocks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.python_connectors import PythonSource, arguments_of
from penstock.engine.api.source import Position, ScanRequest, SplitReader
from penstock.engine.connectors.blocking_reader import Pump
from penstock.engine.connectors.in_process.registered import conform
from penstock.engine.connectors.python.lookup import PythonConnectors, user_options
from penstock.engine.connectors.python.user_errors import users_own
from penstock.engine.formats.decoded_batch import empty_columns

# batches that a thread reads ahead of each split
READ_AHEAD_BATCHES = 4
# the one split of a source that lists none
ONLY_SPLIT = "all"

Item = tuple[pa.RecordBatch, Any]


class PythonSourceConnector:
    """Lists and opens the splits of a Python source."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._options = user_options(request.table)
        self._source: PythonSource = request.services.get(PythonConnectors).source(request.table)

    def splits(self) -> list[str]:
        listing = self._source.splits
        if listing is None:
            return [ONLY_SPLIT]
        with users_own(f"splits() of Python source {self._source.name}"):
            found = list(listing(*arguments_of(listing, self._options)))
        if not all(isinstance(split, str) for split in found) or len(set(found)) != len(found):
            message = f"splits() of Python source {self._source.name} must return texts, each once"
            raise PenstockError("DAT-5603", message, detail=repr(found)[:200], hint="return a list of str")
        return sorted(found)

    def recall(self, split_ids: list[str]) -> None:
        """Nothing: whether a split is still there is seen when it is read."""

    def open(self, split_id: str, position: Position | None) -> SplitReader:
        return PythonReader(self._source, split_id, position, self._options, self._request)

    def discover_every_ms(self) -> int | None:
        return self._source.discover_every_ms

    def rows_per_second(self) -> int:
        return 0


class PythonReader:
    """Reads one split. A position is that of the user's generator, and how many rows behind it were returned:
    a batch may be returned in parts.
    """

    reports_arrivals = True
    """Its thread reports what it has received."""

    def __init__(
        self,
        source: PythonSource,
        split_id: str,
        position: Position | None,
        options: dict[str, str],
        request: ScanRequest,
    ) -> None:
        self._source = source
        columns = request.table.source_schema.select(request.columns)
        self._arrow = columns.to_arrow()
        # the user's position behind all rows that were returned, and rows returned since
        self._at = None if position is None else position["at"]
        self._skip = 0 if position is None else int(position["skip"])
        self._rows: pa.RecordBatch | None = None
        self._after: Any = None
        items = self._items(split_id, options)
        self._pump = Pump(
            items, f"{request.table.name} {split_id}", READ_AHEAD_BATCHES, request.arrivals.notify
        )

    @property
    def ended(self) -> bool:
        return self._rows is None and self._pump.ended

    def poll(self, max_rows: int) -> pa.RecordBatch | None:
        if self._rows is None and not self._next():
            return None
        assert self._rows is not None
        rows = self._rows.slice(min(self._skip, self._rows.num_rows), max_rows)
        self._skip += rows.num_rows
        if self._skip >= self._rows.num_rows:
            self._skip -= self._rows.num_rows
            self._at, self._rows = self._after, None
        return rows

    def _next(self) -> bool:
        items = self._pump.take(1)
        if not items:
            return False
        ((self._rows, self._after),) = items
        return True

    def position(self) -> Position:
        return {"at": self._at, "skip": self._skip}

    def close(self) -> None:
        self._pump.close()

    def _items(self, split_id: str, options: dict[str, str]) -> Iterator[Item]:
        """Yield the user's batches as the scan wants them; runs in the thread that reads ahead."""
        read = self._source.read
        # a copy of the position: the user may change it
        at = json.loads(json.dumps(self._at))
        with users_own(f"Python source {self._source.name}, split {split_id},"):
            for item in read(*arguments_of(read, split_id, at, options)):
                yield self._checked(item)

    def _checked(self, item: Any) -> Item:
        if not (isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], pa.RecordBatch)):
            raise self._unusable(f"yielded a {type(item).__name__}, not (batch, position)")
        batch, position = item
        if position is None:
            raise self._unusable("yielded the position None, which means the start")
        try:
            kept = json.loads(json.dumps(position))
        except (TypeError, ValueError):
            raise self._unusable(f"yielded a position that JSON has no form of: {position!r:.80}") from None
        if not len(self._arrow):
            return empty_columns(batch.num_rows), kept
        return conform(batch, self._arrow), kept

    def _unusable(self, why: str) -> PenstockError:
        return PenstockError(
            "DAT-5603",
            f"Python source {self._source.name} {why}",
            hint="yield a pyarrow.RecordBatch and a position of numbers, texts, lists and dicts",
        )
