"""The source over one state of a materialized view."""

from __future__ import annotations

import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.operator import Services
from penstock.engine.api.source import Position, ScanRequest, SplitReader
from penstock.engine.connectors.in_process.materialized_views import MaterializedTables
from penstock.engine.connectors.in_process.registered_source import TableReader

FIRST_STATE_S = 60.0


def snapshot_of(table: CatalogTable, services: Services) -> pa.Table:
    """Return the state a query pinned when it was bound, else the one there is."""
    contents = services.get(MaterializedTables).contents(table.options["name"])
    pinned = option(table, "snapshot")
    version = pinned if isinstance(pinned, int) else contents.pin(FIRST_STATE_S)
    return contents.snapshot(version or 0)


class MaterializedSource:
    """One split: the rows of a state, in their order."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request

    def splits(self) -> list[str]:
        return [f"{self._request.table.name}@{option(self._request.table, 'snapshot')}"]

    def recall(self, split_ids: list[str]) -> None:
        """A state is looked for when it is opened."""

    def open(self, split_id: str, position: Position | None) -> SplitReader:
        schema = self._request.table.source_schema
        columns = [schema[index].name for index in self._request.columns]
        return TableReader(
            snapshot_of(self._request.table, self._request.services), columns, (position or {}).get("row", 0)
        )

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0
