"""The source and the sink writer of each connector."""

from __future__ import annotations

from collections.abc import Callable

from catalog.errors import PenstockError
from engine.connectors.blackhole_sink import BlackholeSink
from engine.connectors.collect_sink import CollectSink
from engine.connectors.database_sink import DatabaseSink
from engine.connectors.datagen import DatagenSource
from engine.connectors.errors_source import ErrorsSource
from engine.connectors.filesystem_sink import FilesystemSink
from engine.connectors.filesystem_source import FilesystemSource
from engine.connectors.late_source import LateSource
from engine.connectors.materialized_source import MaterializedSource
from engine.connectors.nexmark_source import NexmarkSource
from engine.connectors.print_sink import PrintSink
from engine.connectors.registered_source import RegisteredTableSource
from engine.connectors.sink import SinkRequest, SinkWriter
from engine.connectors.source import ScanRequest, SourceConnector

SOURCES: dict[str, Callable[[ScanRequest], SourceConnector]] = {
    "filesystem": FilesystemSource,
    "datagen": DatagenSource,
    "nexmark": NexmarkSource,
    "registered": RegisteredTableSource,
    "errors": ErrorsSource,
    "materialized": MaterializedSource,
    "late": LateSource,
}
SINKS: dict[str, Callable[[SinkRequest], SinkWriter]] = {
    "filesystem": FilesystemSink,
    "print": PrintSink,
    "blackhole": BlackholeSink,
    "collect": CollectSink,
    "postgres": DatabaseSink,
    "sqlite": DatabaseSink,
    "duckdb": DatabaseSink,
}


def source_connector(request: ScanRequest) -> SourceConnector:
    """Return the connector that reads a table. SQL-1511 when its connector only writes."""
    made = SOURCES.get(request.table.connector)
    if made is None:
        message = f"table {request.table.name} cannot be read: connector '{request.table.connector}' only writes"
        raise PenstockError("SQL-1511", message, hint=f"these can be read: {', '.join(sorted(SOURCES))}")
    return made(request)


def sink_writer(request: SinkRequest) -> SinkWriter:
    """Return the writer of one subtask for a table (the client when there is none). SQL-1512 when its connector only reads."""
    name = "collect" if request.table is None else request.table.connector
    made = SINKS.get(name)
    if made is None:
        raise PenstockError("SQL-1512", f"connector '{name}' only reads", hint=f"these can be written: {', '.join(sorted(SINKS))}")
    return made(request)
