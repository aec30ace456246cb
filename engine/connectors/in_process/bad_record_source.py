"""The source of `<table>$errors`: what the bad record store holds now."""

from __future__ import annotations

from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.in_process.bad_record_store import BadRecords
from penstock.engine.connectors.in_process.registered_source import TableReader


class ErrorsSource:
    """One split: the records kept when it is opened."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._name = request.table.options["table"]

    def splits(self) -> list[str]:
        return [self._name]

    def recall(self, split_ids: list[str]) -> None:
        """Anything goes: the store lives as long as the process."""

    def open(self, split_id: str, position: Position | None) -> TableReader:
        schema = self._request.table.source_schema
        names = [schema[index].name for index in self._request.columns]
        return TableReader(
            self._request.services.get(BadRecords).arrow_table(self._name),
            names,
            (position or {}).get("row", 0),
        )

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0
