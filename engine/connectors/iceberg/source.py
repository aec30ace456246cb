"""The source of Iceberg tables. A table is one split: its snapshots have an order.

The id of the split has the snapshot that reading begins with, so that a restored job begins where it did.
"""

from __future__ import annotations

import re
from datetime import datetime

from penstock.catalog.connectors.delta import CHANGE_FEED, SCAN_MODE, SCAN_TIMESTAMP, instant
from penstock.catalog.connectors.iceberg import END_SNAPSHOT_ID, SNAPSHOT_ID
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.iceberg.iceberg_table import arrow_schema, opened, opened_catalog, where
from penstock.engine.connectors.iceberg.snapshot_reader import SnapshotReader, StartSnapshot
from penstock.engine.connectors.lakehouse.columns import refuse_missing

_SPLIT = re.compile(r"(table|full|changes)-(\d+)")


class IcebergSource:
    """Splits ``table-7``: snapshot 7. ``full-7``: snapshot 7, then what later ones add. ``changes-7``: what
    the snapshots after 7 add; with its change feed what they change. 0 is a table without snapshots.
    """

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._table = request.table
        self._known: list[str] = []

    def splits(self) -> list[str]:
        """Return the one split. DAT-5301 to 5306."""
        if not self._known:
            self._known = [self._first()]
        return self._known

    def _first(self) -> str:
        mode = option(self._table, SCAN_MODE)
        found = opened(self._table, opened_catalog(self._table.options))
        number, moment = option(self._table, SNAPSHOT_ID), option(self._table, SCAN_TIMESTAMP)
        if moment is not None:
            at_ms = int(datetime.fromisoformat(instant(str(moment))).timestamp() * 1000)
            snapshot = found.snapshot_as_of_timestamp(at_ms)
        else:
            snapshot = found.current_snapshot() if number is None else found.snapshot_by_id(int(number))
        if snapshot is None and (number is not None or moment is not None):
            raise PenstockError(
                "DAT-5302",
                f"{where(self._table)} has no snapshot {'of ' + str(moment) if number is None else number}",
                hint="snapshots expire: give one that is still there, or leave it out for the newest",
                kind=Kind.EXTERNAL,
            )
        wanted = [self._table.source_schema[index] for index in self._request.columns]
        required = [field for field in wanted if not field.nullable]
        # a nullable column may come with a later snapshot of a stream
        there = arrow_schema(found)
        refuse_missing(wanted if mode == "snapshot" else required, there, where(self._table), written=False)
        if mode == "from-snapshot":
            return f"changes-{(snapshot.parent_snapshot_id or 0) if snapshot is not None else 0}"
        newest = 0 if snapshot is None else snapshot.snapshot_id
        return f"{'table' if mode == 'snapshot' else 'changes' if mode == 'latest' else 'full'}-{newest}"

    def recall(self, split_ids: list[str]) -> None:
        self._known = split_ids

    def open(self, split_id: str, position: Position | None) -> SnapshotReader:
        """Open the table at a snapshot. DAT-5301 to 5306."""
        parts = _SPLIT.fullmatch(split_id)
        if parts is None:
            raise PenstockError(
                "DAT-5311",
                f"'{split_id[:40]}' is no snapshot of an Iceberg table",
                hint="the job's state is of another table: begin without it",
                kind=Kind.EXTERNAL,
            )
        end = option(self._table, END_SNAPSHOT_ID)
        start = StartSnapshot(
            int(parts[2]),
            whole=parts[1] != "changes",
            only=parts[1] == "table",
            end=None if end is None else int(end),
            changes=bool(option(self._table, CHANGE_FEED)),
        )
        found = opened(self._table, opened_catalog(self._table.options))
        return SnapshotReader(self._request, found, start, position)

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0
