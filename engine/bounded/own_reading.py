"""Relations read by penstock's own connectors, for what a backend cannot read by its own means."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from catalog.errors import Kind, PenstockError
from engine.clock import SystemClock
from engine.connectors.filesystem_source import FilesystemSource
from engine.connectors.registered import RegisteredTables
from engine.connectors.source import ScanRequest, SourceConnector
from engine.operator import Services
from planner.bounded_query import Relation

_BATCH_ROWS = 65_536


def registered_table(relation: Relation, services: Services) -> pa.Table | None:
    """Return the relation's columns of a registered Arrow table, ``None`` when the relation is not one."""
    if relation.table.connector != "registered":
        return None
    table = services.get(RegisteredTables).source(relation.table.options["name"]).table
    return None if table is None else table.select(list(relation.columns)).rename_columns(relation.schema.names)


def own_batches(relation: Relation, services: Services) -> Iterator[pa.RecordBatch]:
    """Yield a relation's rows with exactly the Arrow types of its schema. BND-5104 when the table's rows do not end or cannot be read here."""
    request = ScanRequest(relation.table, relation.columns, None, _BATCH_ROWS, SystemClock(), services)
    source = _source(request)
    arrow = relation.schema.to_arrow()
    for split in source.splits():
        reader = source.open(split, None)
        try:
            while not reader.ended:
                batch = reader.poll(_BATCH_ROWS)
                if batch is not None and batch.num_rows:
                    yield pa.RecordBatch.from_arrays(batch.columns, schema=arrow)
        finally:
            reader.close()


def _source(request: ScanRequest) -> SourceConnector:
    if request.table.connector == "filesystem":
        return FilesystemSource(request)
    if request.table.connector == "registered":
        from engine.connectors.registered_source import RegisteredTableSource

        return RegisteredTableSource(request)
    raise PenstockError(
        "BND-5104",
        f"table {request.table.name} of connector '{request.table.connector}' cannot be read by a bounded query",
        hint="SET 'execution.runtime-mode' = 'streaming'",
        kind=Kind.USER,
        sqlstate="0A000",
    )
