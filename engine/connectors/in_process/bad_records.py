"""Rejected records, stored in this process for `<table>$errors`: the service that stores them, and the source
that reads them as a table.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.catalog.connectors.registry import ERRORS_SCHEMA
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.in_process.registered_source import TableReader

# records a table; enough to see what is wrong, and bounded
MAX_KEPT = 10_000


@dataclass(frozen=True)
class RejectedRecord:
    """One bad record as a row of `t$errors`; ``position`` is its ordinal in the split."""

    raw: str
    source: str
    split: str
    position: int
    column: str | None
    error: str


@dataclass
class _Ring:
    stored: deque[RejectedRecord] = field(default_factory=lambda: deque(maxlen=MAX_KEPT))
    seen: set[tuple[str, int]] = field(default_factory=set)
    total: int = 0


class BadRecords:
    """The service that stores the last bad records of each table. A record that is read twice (a second
    query, a replay) is stored once.
    """

    def __init__(self) -> None:
        self._rings: dict[str, _Ring] = {}
        self._lock = threading.Lock()

    def add(self, table: str, records: list[RejectedRecord]) -> None:
        """Store records of a table. Beyond 10,000 the oldest are dropped, but the total still counts them."""
        with self._lock:
            ring = self._rings.setdefault(table.lower(), _Ring())
            for record in records:
                # split and ordinal identify a record, however often it is read
                identity = (record.split, record.position)
                if identity in ring.seen:
                    continue
                # the deque drops its oldest on append; its identity must go too
                if len(ring.stored) == MAX_KEPT:
                    ring.seen.discard((ring.stored[0].split, ring.stored[0].position))
                ring.stored.append(record)
                ring.seen.add(identity)
                ring.total += 1

    def total(self, table: str) -> int:
        """Return the number of different bad records of a table."""
        with self._lock:
            ring = self._rings.get(table.lower())
            return ring.total if ring else 0

    def arrow_table(self, table: str) -> pa.Table:
        """Return the stored records of a table, columns (raw, source, split, position, column, error), in
        split order.
        """
        with self._lock:
            ring = self._rings.get(table.lower())
            # sorted, because subtasks add records in any order
            records = sorted(ring.stored, key=lambda r: (r.split, r.position)) if ring else []
        names = ERRORS_SCHEMA.names
        return pa.table(
            {name: [getattr(r, name) for r in records] for name in names}, schema=ERRORS_SCHEMA.to_arrow()
        )

    def forget(self, table: str) -> None:
        """Drop the records of a table that was dropped or recreated."""
        with self._lock:
            self._rings.pop(table.lower(), None)


class ErrorsSource:
    """One split: the records stored at the time it is opened."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._name = request.table.options["table"]

    def splits(self) -> list[str]:
        return [self._name]

    def recall(self, split_ids: list[str]) -> None:
        """Accept any split ids: the store exists as long as the process."""

    def open(self, split_id: str, position: Position | None) -> TableReader:
        schema = self._request.table.source_schema
        names = [schema[index].name for index in self._request.columns]
        return TableReader(
            self._request.services.get(BadRecords).arrow_table(self._name),
            names,
            # resumed behind the rows that were read
            (position or {}).get("row", 0),
        )

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0
