"""The source over registered tables, and its readers. Arrow tables are read by ranges of rows. Iterables are
read ahead by a thread, so that polling never blocks.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.source import Position, ScanRequest, SplitReader
from penstock.engine.connectors.blocking_reader import Pump
from penstock.engine.connectors.in_process.registered import RegisteredSource, RegisteredTables, conform
from penstock.engine.formats.decoded_batch import batch_of

# rows of a split of an Arrow table
RANGE_ROWS = 1 << 20
# items a thread reads ahead: Python rows are small, batches may be large
_READ_AHEAD_ROWS = 16_384
_READ_AHEAD_BATCHES = 8


class RegisteredTableSource:
    """Splits: ``name@rows#start-end`` of an Arrow table, or one split ``name`` for an iterable."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._name = request.table.options["name"]
        self._source: RegisteredSource = request.services.get(RegisteredTables).source(self._name)
        self._table = self._source.table

    def splits(self) -> list[str]:
        if self._table is None:
            return [self._name]
        rows = self._table.num_rows
        # with a watermark the order of rows matters: one split
        step = max(rows, 1) if self._request.table.watermark is not None else RANGE_ROWS
        return [
            f"{self._name}@{rows}#{start:012d}-{min(start + step, rows):012d}"
            for start in range(0, max(rows, 1), step)
        ]

    def recall(self, split_ids: list[str]) -> None:
        rows = None if self._table is None else self._table.num_rows
        for split_id in split_ids:
            # the number of rows when the checkpoint was taken; an iterable has none
            was = split_id.rpartition("@")[2].partition("#")[0] if "@" in split_id else None
            if was is not None and was != str(rows):
                message = f"the registered table '{self._name}' changed: it had {was} rows, it has {rows}"
                raise PenstockError(
                    "DAT-4107",
                    message,
                    hint="register the same rows to resume from a checkpoint",
                    kind=Kind.EXTERNAL,
                )

    def open(self, split_id: str, position: Position | None) -> SplitReader:
        begin = (position or {}).get("row", 0)
        columns = _positions(self._request)
        if self._table is None:
            return IterableReader(self._source, self._name, columns, begin, self._request.arrivals.notify)
        start, _, end = split_id.rpartition("#")[2].partition("-")
        return TableReader(self._table.slice(int(start), int(end) - int(start)), columns, begin)

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0


class TableReader:
    """Reads an Arrow table from a row on."""

    def __init__(self, table: pa.Table, columns: list[str], begin: int) -> None:
        self._rows = table.num_rows
        self._batches = table.slice(begin).select(columns).to_batches() if columns else []
        # without columns only rows are counted
        self._narrow = bool(columns)
        self._emitted = begin
        self._index = 0
        self._offset = 0

    @property
    def ended(self) -> bool:
        return self._emitted >= self._rows

    def poll(self, max_rows: int) -> pa.RecordBatch | None:
        if self.ended:
            return None
        if not self._narrow:
            batch = batch_of([], (), min(max_rows, self._rows - self._emitted))
        else:
            # the next batch that has rows
            while self._offset >= self._batches[self._index].num_rows:
                self._index, self._offset = self._index + 1, 0
            batch = self._batches[self._index].slice(self._offset, max_rows)
            self._offset += batch.num_rows
        self._emitted += batch.num_rows
        return batch

    def position(self) -> Position:
        return {"row": self._emitted}

    def close(self) -> None:
        self._batches = []
        self._emitted = self._rows


class IterableReader:
    """Reads an iterable from its start, leaving out the first ``begin`` rows."""

    reports_arrivals = True
    """Its thread reports what the iterable has yielded."""

    def __init__(
        self,
        source: RegisteredSource,
        name: str,
        columns: list[str],
        begin: int,
        arrived: Callable[[], None],
    ) -> None:
        self._source = source
        ahead = _READ_AHEAD_BATCHES if source.make is None else _READ_AHEAD_ROWS
        self._pump = Pump(source.items(), name, ahead, arrived)
        self._columns = columns
        self._skip = begin
        self._emitted = begin
        self._pending: pa.RecordBatch | None = None

    @property
    def ended(self) -> bool:
        return self._pending is None and self._pump.ended

    def poll(self, max_rows: int) -> pa.RecordBatch | None:
        batch = self._pending if self._pending is not None else self._next(max_rows)
        if batch is None:
            return None
        # an iterable is read again from its start: rows emitted before are skipped
        skipped = min(self._skip, batch.num_rows)
        self._skip -= skipped
        batch = batch.slice(skipped)
        self._pending = batch.slice(max_rows) if batch.num_rows > max_rows else None
        rows = batch.slice(0, max_rows)
        self._emitted += rows.num_rows
        return rows.select(self._columns) if self._columns else batch_of([], (), rows.num_rows)

    def _next(self, max_rows: int) -> pa.RecordBatch | None:
        make = self._source.make
        items = self._pump.take(1 if make is None else max_rows)
        if not items:
            return None
        return conform(items[0] if make is None else make(items), self._source.arrow)

    def position(self) -> Position:
        return {"row": self._emitted}

    def close(self) -> None:
        self._pump.close()


def _positions(request: ScanRequest) -> list[str]:
    """Return the names of the requested columns."""
    table: CatalogTable = request.table
    return [table.source_schema[index].name for index in request.columns]
