"""The source of `<job>$late`: what the late row store holds now."""

from __future__ import annotations

from penstock.engine.api.source import Position, ScanRequest
from penstock.engine.connectors.in_process.late_row_store import LateRows
from penstock.engine.connectors.in_process.registered_source import TableReader


class LateSource:
    """One split: the rows kept when it is opened."""

    def __init__(self, request: ScanRequest) -> None:
        self._request = request
        self._job_id = request.table.options["job"]

    def splits(self) -> list[str]:
        return [self._job_id]

    def recall(self, split_ids: list[str]) -> None:
        """Anything goes: the store lives as long as the process."""

    def open(self, split_id: str, position: Position | None) -> TableReader:
        schema = self._request.table.source_schema
        names = [schema[index].name for index in self._request.columns]
        rows = self._request.services.get(LateRows).arrow_table(self._job_id, schema)
        return TableReader(rows, names, (position or {}).get("row", 0))

    def discover_every_ms(self) -> int | None:
        return None

    def rows_per_second(self) -> int:
        return 0
