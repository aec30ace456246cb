"""The tables of the database ``system``: the service that reads them, and their source. A query reads a table
once; SUBSCRIBE reads it again each second and emits what has changed.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.system_tables import SYSTEM, SYSTEM_TABLES
from penstock.engine.api.source import Position, ScanRequest, SplitReader
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import Fold, negated
from penstock.engine.connectors.in_process.registered_source import TableReader

Read = Callable[[], pa.Table]


class SystemTables:
    """The service that returns the rows of a system table as they are now. ``provide`` is called before the
    first query.
    """

    def __init__(self) -> None:
        self._readers: dict[str, Read] = {}

    def provide(self, name: str, read: Read) -> None:
        """Read a table by a function, which may be called by any thread."""
        self._readers[name] = read

    def arrow_table(self, name: str) -> pa.Table:
        """Return the rows of a table; none where nothing provides it."""
        read = self._readers.get(name)
        schema = SYSTEM_TABLES[f"{SYSTEM}.{name}"].schema.to_arrow()
        return schema.empty_table() if read is None else read()


class SystemSource:
    """One split: the table by its name."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._name = request.table.options["name"]

    def splits(self) -> list[str]:
        return [self._name]

    def recall(self, split_ids: list[str]) -> None:
        """Accept any split ids: there is one table of the name."""

    def open(self, split_id: str, position: Position | None) -> SplitReader:
        schema = self._request.table.source_schema
        columns = [schema[index].name for index in self._request.columns]
        tables = self._request.services.get(SystemTables)
        if option(self._request.table, "follow"):
            return SystemChangesReader(self._request, lambda: tables.arrow_table(self._name).select(columns))
        return TableReader(tables.arrow_table(self._name), columns, (position or {}).get("row", 0))

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0


class SystemChangesReader:
    """Emits the rows of a table, then their changes, without an end. Only the requested columns are compared:
    a query that leaves out the counters sees a change of the state alone.
    """

    def __init__(self, request: ScanRequest, read: Read) -> None:
        interval_ms = option(request.table, "interval")
        assert isinstance(interval_ms, int)
        self._interval_ms = interval_ms
        self._clock = request.clock
        self._read = read
        self._emitted: list[Batch] = []
        self._due_ms = 0.0

    @property
    def ended(self) -> bool:
        return False

    def poll(self, max_rows: int) -> Batch | None:
        now_ms = self._clock.monotonic_ms()
        if now_ms < self._due_ms:
            return None
        self._due_ms = now_ms + self._interval_ms
        rows = self._read()
        current = [Batch(batch) for batch in rows.to_batches() if batch.num_rows]
        fold = Fold(rows.schema)
        # the former rows first: of one key, the old version is retracted before the new one comes
        for batch in (*map(negated, self._emitted), *current):
            fold.add(batch)
        self._emitted = current
        # some hundred rows, which are one batch
        return next(iter(fold.weighted()), None)

    def position(self) -> Position:
        return {}

    def close(self) -> None:
        self._emitted = []
