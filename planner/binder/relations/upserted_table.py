"""Tables whose rows are upserts that may leave out unchanged values. The marks of those values are a column
of the scan that no query sees.
"""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.connectors.connector import UNCHANGED
from penstock.catalog.connectors.registry import emits_upserts, leaves_out
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable, MetadataColumn
from penstock.catalog.types import BINARY
from penstock.planner.expressions.nodes import Column, Expression, expression_of
from penstock.planner.logical.changelog_normalize import ChangelogNormalize, normalized
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project


def marked(table: CatalogTable) -> CatalogTable:
    """Return a table whose connector also says which values a row leaves out. The others stay as they are."""
    if not emits_upserts(table) or not any(leaves_out(table, field.type) for field in table.source_schema):
        return table
    name = UNCHANGED
    while table.schema.index_of(name) is not None:
        name += "_"
    return replace(
        table,
        source_schema=Schema((*table.source_schema, Field(name, BINARY))),
        metadata=(*table.metadata, MetadataColumn(name, UNCHANGED, virtual=True)),
    )


def upserted(plan: LogicalPlan, table: CatalogTable) -> LogicalPlan:
    """Return the changelog of a plan of upserts. Its columns are those of the table, then the marks if there
    are any; those of the result are the table's.
    """
    if len(plan.schema) == len(table.schema):
        return normalized(plan, table.primary_key)
    positions = (plan.schema.index_of(name) for name in table.primary_key)
    keys = tuple(position for position in positions if position is not None)
    bits = tuple(_bit(table, place, keys) for place in range(len(plan.schema)))
    plan = ChangelogNormalize(plan, keys, len(plan.schema) - 1, bits)
    # a column that was computed from a value that was not there is computed again
    fields = plan.schema.fields
    computed = {column.name: expression_of(column.expression) for column in table.computed}
    places = {index: table.schema.index_of(field.name) for index, field in enumerate(table.source_schema)}
    known = {index: place for index, place in places.items() if place is not None}
    expressions: list[Expression] = []
    for place, field in enumerate(fields[:-1]):
        rule = computed.get(field.name)
        # the event time was not computed from such a value, and must stay what the watermark was made of
        is_time = table.watermark is not None and table.watermark.column == field.name
        expressions.append(
            Column(field.type, field.nullable, index=place, name=field.name)
            if rule is None or is_time
            else rule.remap(known)
        )
    return Project(plan, tuple(expressions), tuple(table.schema.names))


def _bit(table: CatalogTable, place: int, keys: tuple[int, ...]) -> int:
    """Return which mark says that a column's value is left out; -1 for one that always has its value."""
    if place >= len(table.schema) or place in keys:
        return -1
    index = table.source_schema.index_of(table.schema[place].name)
    return -1 if index is None or not leaves_out(table, table.schema[place].type) else index


def check_watermark(table: CatalogTable) -> None:
    """Refuse a watermark that is computed from values that a row may leave out: SQL-1515."""
    rule = table.watermark
    if rule is None or not emits_upserts(table):
        return
    computed = {column.name: expression_of(column.expression) for column in table.computed}
    read = {rule.column, *(table.schema[index].name for index in expression_of(rule.expression).columns())}
    # expressions of computed columns are over the columns of the source
    origins = read.union(
        *(
            {table.source_schema[index].name for index in computed[name].columns()}
            for name in read & set(computed)
        )
    )
    for field in table.source_schema:
        if field.name in origins - set(table.primary_key) and leaves_out(table, field.type):
            raise PenstockError(
                "SQL-1515",
                f'the watermark is computed from column "{field.name}", which an update may leave out',
                hint="compute it from a TIMESTAMP column, or read changes with their old rows: "
                "'changelog-mode' = 'all'",
                sqlstate="0A000",
            )
