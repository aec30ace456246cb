"""The exactly-once sink into a PostgreSQL table: rows are staged in the checkpoint and committed by epoch.

Checkpoints of earlier versions name rows that are staged in the database. Those are committed as before.
"""

from __future__ import annotations

from penstock.catalog.connectors.registry import option
from penstock.engine.api.sink import Committable, SinkRequest
from penstock.engine.connectors.database.postgres_target import PostgresTarget
from penstock.engine.connectors.database.refused_rows import RefusedRows
from penstock.engine.connectors.database.sink import DatabaseSink
from penstock.engine.connectors.epoch_sink import EpochSink


def _is_earlier(item: Committable) -> bool:
    # transactions of an earlier version are numbered, epochs are not
    return "number" in item


class PostgresSink(EpochSink):
    """Writes one subtask's share by a ``PostgresTarget``."""

    def __init__(self, request: SinkRequest) -> None:
        assert request.table is not None, "a database sink has a table"
        tries = int(option(request.table, "sink.max-retries") or 0) + 1
        super().__init__(request, PostgresTarget(request.table, RefusedRows(request)), tries)
        self._earlier: DatabaseSink | None = None

    def recover(self, pending: list[Committable]) -> None:
        earlier = [item for item in pending if _is_earlier(item)]
        if earlier:
            self._earlier = DatabaseSink(self._request)
            self._earlier.recover(earlier)
        super().recover([item for item in pending if not _is_earlier(item)])
        if self._earlier is not None:
            # both have the same row of attempts
            self._earlier.follow()

    def commit(self, items: list[Committable]) -> None:
        earlier = [item for item in items if _is_earlier(item)]
        if earlier and self._earlier is not None:
            self._earlier.commit(earlier)
        super().commit([item for item in items if not _is_earlier(item)])

    def close(self) -> None:
        try:
            if self._earlier is not None:
                self._earlier.close()
        finally:
            super().close()
