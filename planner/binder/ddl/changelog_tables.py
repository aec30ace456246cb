"""What tables of changes may be declared with: nothing that tells a row taken back from the row that was
given.
"""

from __future__ import annotations

from penstock.catalog.connectors.registry import gives_changes, is_in_database, written_changes
from penstock.catalog.errors import PenstockError
from penstock.catalog.functions.registry import is_deterministic
from penstock.catalog.tables import CatalogTable
from penstock.planner.expressions.nodes import Call, expression_of
from penstock.planner.statements.nodes import CreateTable, MetadataColumnDef


def check_changes(table: CatalogTable, statement: CreateTable) -> None:
    """Raise SQL-1515 for a table of changes with metadata columns, partitions or columns computed by chance
    or the clock, SQL-1516 for an upsert sink without a key or with a column ``op`` of its own.
    """
    if written_changes(table) != "append" and not is_in_database(table):
        _check_written(table, statement)
    if not gives_changes(table):
        return
    for column in statement.columns:
        if isinstance(column, MetadataColumnDef):
            message = f'column "{column.name.text}": a table of changes has no metadata columns'
            hint = (
                "a row taken back would carry other metadata than the row that was given; leave the "
                "column out"
            )
            raise PenstockError("SQL-1515", message, span=column.name.span, hint=hint, sqlstate="0A000")
    if statement.partitioned_by:
        hint = "an update may move a row from one partition to another; leave PARTITIONED BY out"
        raise PenstockError(
            "SQL-1515",
            "files of changes have no partitions",
            span=statement.partitioned_by[0].span,
            hint=hint,
            sqlstate="0A000",
        )
    names = {column.name.text: column.name.span for column in statement.columns}
    for computed in table.computed:
        if any(
            isinstance(node, Call) and not is_deterministic(node.function)
            for node in expression_of(computed.expression).walk()
        ):
            message = (
                f'column "{computed.name}" of a table of changes gives another value each time it is computed'
            )
            hint = "a row taken back must be the row that was given; compute it from the row's own columns"
            raise PenstockError("SQL-1515", message, span=names[computed.name], hint=hint, sqlstate="0A000")


def _check_written(table: CatalogTable, statement: CreateTable) -> None:
    span = next(
        (option.key_span for option in statement.options if option.key == "changelog.mode"),
        statement.name.span,
    )
    if written_changes(table) == "upsert" and not table.primary_key:
        hint = "add PRIMARY KEY (..) NOT ENFORCED, or write 'changelog.mode' = 'retract'"
        raise PenstockError("SQL-1516", "upserts go by a key, and the table has none", span=span, hint=hint)
    if table.schema.index_of("op") is not None or table.partitioned_by:
        fault = (
            "files of changes have no partitions"
            if table.partitioned_by
            else 'column "op" is taken: it tells what happened to each row'
        )
        raise PenstockError(
            "SQL-1516",
            fault,
            span=span,
            hint="leave it out" if table.partitioned_by else "give the column another name",
        )
