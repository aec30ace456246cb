"""Relations read by penstock's own connectors, where a backend cannot read them itself."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from penstock.catalog.connectors.registry import emits_changes, file_format, is_in_database
from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.operator import Services
from penstock.engine.api.source import ScanRequest
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.consolidate import Fold
from penstock.engine.connectors.database.scan import scanned
from penstock.engine.connectors.filesystem.listing import FileListing
from penstock.engine.connectors.filesystem.source import check_unchanged
from penstock.engine.connectors.in_process.materialized_views import snapshot_of
from penstock.engine.connectors.in_process.registered import RegisteredTables
from penstock.engine.connectors.registry import source_connector
from penstock.planner.sql_generator.query import ScannedTable

_BATCH_ROWS = 65_536
_READINGS = 5
"""How often files that change meanwhile are read; the writer of a table soon finishes."""


def registered_table(relation: ScannedTable, services: Services) -> pa.Table | None:
    """Return the relation's columns of a registered Arrow table or a materialized view, ``None`` when the
    relation is neither.
    """
    # a materialized view: one consistent snapshot of its rows
    if relation.table.connector == "materialized":
        return (
            snapshot_of(relation.table, services)
            .select(list(relation.columns))
            .rename_columns(relation.schema.names)
        )
    # anything else that is no Arrow table in this process
    if relation.table.connector != "registered":
        return None
    table = services.get(RegisteredTables).source(relation.table.options["name"]).table
    return (
        None if table is None else table.select(list(relation.columns)).rename_columns(relation.schema.names)
    )


def own_batches(relation: ScannedTable, services: Services) -> Iterator[pa.RecordBatch]:
    """Yield a relation's rows with exactly the Arrow types of its schema; of a changelog, the rows that
    remain at its end.

    A database may leave out rows that fail the relation's predicate.
    """
    # the database evaluates what it can of the predicate; the plan keeps its own Filter
    if is_in_database(relation.table):
        yield from scanned(relation.table, relation.columns, relation.predicate)
        return
    batches = _batches(relation, services)
    # append-only rows stream through; nothing is collected
    if not emits_changes(relation.table):
        yield from (batch.rows for batch in batches)
        return
    # a changelog: add up the weights, which needs all rows before the first is yielded
    fold = Fold(relation.schema.to_arrow())
    for batch in batches:
        fold.add(batch)
    yield from fold.rows().to_batches(_BATCH_ROWS)


def whole_table(relation: ScannedTable, services: Services) -> list[pa.RecordBatch]:
    """Return a relation's rows from one consistent set of files. They are read again when a file was replaced
    or removed meanwhile.

    Raises DAT-4107 when that happens at every attempt, and the reader's error when no file has changed. Files
    added meanwhile belong to the next reading.
    """
    if relation.table.connector != "filesystem":
        return list(own_batches(relation, services))
    listing = FileListing(relation.table.options["path"], file_format(relation.table), relation.table.options)
    # ``left``: further attempts after this one
    for left in range(_READINGS - 1, -1, -1):
        listed = listing.files()
        try:
            batches = list(own_batches(relation, services))
            # checked after the rows, because a file may be replaced while it is read
            for split in listed:
                check_unchanged(listing, split)
            return batches
        except PenstockError:
            # the files are as they were, so the error is in them and a retry meets it again
            if not left or listing.files() == listed:
                raise
    raise AssertionError("files are read once at least")


def _batches(relation: ScannedTable, services: Services) -> Iterator[Batch]:
    request = ScanRequest(
        relation.table, relation.columns, relation.predicate, _BATCH_ROWS, SystemClock(), services
    )
    source = source_connector(request)
    arrow = relation.schema.to_arrow()
    # a history reads only the splits its streaming part has not read
    for split in source.splits() if relation.splits is None else relation.splits:
        reader = source.open(split, None)
        try:
            while not reader.ended:
                batch = reader.poll(_BATCH_ROWS)
                # poll() never waits and may return nothing yet: ask again until the split has ended
                if batch is None or not batch.num_rows:
                    continue
                weighted = batch if isinstance(batch, Batch) else Batch(batch)
                # the reader's columns have the right types; the relation may rename them
                yield weighted.with_rows(pa.RecordBatch.from_arrays(weighted.rows.columns, schema=arrow))
        finally:
            reader.close()
