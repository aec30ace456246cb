"""The postgres-cdc source: one split, the table."""

from __future__ import annotations

from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.postgres_cdc.opening import address_of
from penstock.engine.connectors.postgres_cdc.reader import PostgresCdcReader
from penstock.engine.connectors.postgres_cdc.server_checks import name_there


class PostgresCdcSource:
    """Reads a table by one replication slot, and so by one subtask.

    The server is first asked when the split is opened. What is wrong with it is the error of the first poll.
    """

    def __init__(self, request: ScanRequest) -> None:
        self._request = request

    def splits(self) -> list[str]:
        address = address_of(self._request.table)
        return [f"{address.shown}/{name_there(self._request.table)}"]

    def recall(self, split_ids: list[str]) -> None:
        """Nothing: whether the slot has what follows is seen when it is opened."""

    def open(self, split_id: str, position: Position | None) -> PostgresCdcReader:
        """Open the table at its first row, or after a position."""
        table = self._request.table
        metadata = {table.source_schema.index_of(column.name) for column in table.metadata}
        columns = tuple(index for index in self._request.columns if index not in metadata)
        return PostgresCdcReader(self._request, columns, position)

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0
