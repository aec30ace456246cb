"""All rows of a table of a database, in batches, those that the database can leave out left out there."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.database.connect import opened, stored
from penstock.engine.connectors.database.database import Database, Select
from penstock.engine.connectors.database.pushdown import conditions_of
from penstock.planner.expressions.nodes import Expression


def select_of(
    table: CatalogTable, columns: tuple[int, ...], predicate: Expression | None, database: Database
) -> Select:
    """Return what is asked of a table: columns of its source schema, and what the database tests of a
    predicate over them.
    """
    fields = stored(table, [table.source_schema[index] for index in columns], database)
    return Select(table.options["table-name"], fields, conditions_of(predicate, fields, database.pushes))


def scanned(
    table: CatalogTable, columns: tuple[int, ...], predicate: Expression | None
) -> Iterator[pa.RecordBatch]:
    """Yield the asked columns of the rows of one state of a table, under the names they are declared by;
    some may fail the predicate.
    """
    database = opened(table)
    try:
        select = select_of(table, columns, predicate, database)
        schema = table.source_schema.select(columns).to_arrow()
        for batch in database.rows(select):
            yield pa.RecordBatch.from_arrays(batch.columns, schema=schema) if columns else batch
    finally:
        database.close()


def scan_text(table: CatalogTable, columns: tuple[int, ...], predicate: Expression | None) -> str:
    """Return the SQL that a database is sent for a scan."""
    database = opened(table)
    try:
        return database.text(select_of(table, columns, predicate, database))
    finally:
        database.close()
