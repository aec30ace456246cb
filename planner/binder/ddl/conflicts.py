"""INSERT .. ON CONFLICT: what is done where several rows of a query have one primary key of the table."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.connectors.registry import written_changes
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import BIGINT, BOOLEAN
from penstock.planner.binder.subqueries.cardinality import one_row_for
from penstock.planner.expressions.nodes import AggregateCall, Call, Literal
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.over import PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, column_of, select_columns
from penstock.planner.statements.nodes import ConflictAction


def resolve_conflicts(
    rows: LogicalPlan, action: ConflictAction, table: CatalogTable, span: Span
) -> LogicalPlan:
    """Return the rows of an INSERT, which are those of the table's columns, with one row of a primary key.

    DEDUPLICATE keeps the last row of a key to arrive, NOTHING the first; where it is retracted, the next one
    takes its place. ERROR fails with RUN-2027 where several rows have one key. Raises SQL-1317 for a table
    that does not replace rows by a primary key.
    """
    if not table.primary_key or written_changes(table) != "upsert":
        raise PenstockError(
            "SQL-1317",
            f"ON CONFLICT needs a table that replaces rows by a primary key, and {table.name} does not",
            span=span,
            hint="leave ON CONFLICT out: all rows are written"
            if table.primary_key
            else "give the table a PRIMARY KEY and 'changelog.mode' = 'upsert', or leave ON CONFLICT out",
            sqlstate="42P10",
        )
    names = {name.lower() for name in table.primary_key}
    key = tuple(i for i, field in enumerate(rows.schema) if field.name.lower() in names)
    # the query has one row of a key by itself
    if one_row_for(rows, key):
        return rows
    if action == "error":
        return _unique_rows(rows, key, span)
    # of rows that are only inserted the table keeps the last by itself
    if action == "deduplicate" and _inserts(rows):
        return rows
    arrival = 1 if action == "nothing" else -1
    return PartitionTop(rows, key, (), "row_number", 1, arrival=arrival)


def _inserts(plan: LogicalPlan) -> bool:
    """Whether a plan never retracts a row."""
    return plan.insert_only(tuple(map(_inserts, plan.inputs)))


def _unique_rows(rows: LogicalPlan, key: Sequence[int], span: Span) -> LogicalPlan:
    """Return the row of each key, in a filter that fails where the key has several rows."""
    others = [i for i in range(len(rows.schema)) if i not in key]
    # of one row any value is its own; with several nobody reads it
    values = tuple(
        AggregateCall("any_value", (column_of(rows, i),), rows.schema[i].type, rows.schema[i].nullable)
        for i in others
    )
    count = AggregateCall("count", (), BIGINT, False)
    names = (*(rows.schema[i].name for i in others), _unused_name(rows))
    groups = Aggregate(rows, tuple(key), (*values, count), names)
    unique = Call(
        BOOLEAN,
        False,
        function="unique_row",
        args=(Literal(BOOLEAN, False, value=True), column_of(groups, len(rows.schema))),
        span=span,
    )
    place = {column: at for at, column in enumerate((*key, *others))}
    checked = Filter(groups, unique)
    return select_columns(checked, [place[i] for i in range(len(rows.schema))], rows.schema.names)


def _unused_name(rows: LogicalPlan) -> str:
    """Return a name that no column has."""
    taken, name = {field.name.lower() for field in rows.schema}, "count"
    while name in taken:
        name += "_"
    return name
