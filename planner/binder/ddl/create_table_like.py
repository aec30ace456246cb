"""Tables declared by another table (LIKE) or by a query (AS)."""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.errors import PenstockError
from penstock.catalog.persistence.show_create import create_statement
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import Null
from penstock.planner.binder.scope import Relation
from penstock.planner.parser.syntax_nodes import OptionEntry
from penstock.planner.statements.nodes import (
    ColumnDef,
    ComputedColumnDef,
    CreateTable,
    CreateTableAs,
    CreateTableLike,
    MetadataColumnDef,
    Name,
    PhysicalColumnDef,
)
from penstock.planner.statements.script import parse_statement


def copied_table(statement: CreateTableLike, source: CatalogTable) -> CreateTable:
    """Return the declaration of a copy: the source's columns, then the new ones; new options, watermark
    and key take the place of old ones.
    """
    base = parse_statement(create_statement(source, redact=False))
    assert isinstance(base, CreateTable)
    new, out = statement.table, statement.excluding

    def copies(part: str) -> bool:
        return part not in out and "ALL" not in out

    columns = tuple(
        _at(column, statement.source)
        for column in base.columns
        if _is_copied(column, copies("GENERATED"), copies("METADATA"))
    )
    given = {option.key for option in new.options}
    old = tuple(
        OptionEntry(o.key, o.value, new.name.span, new.name.span)
        for o in base.options
        if copies("OPTIONS") and o.key not in given
    )
    return replace(
        new,
        columns=columns + new.columns,
        options=old + new.options,
        watermark=new.watermark or (base.watermark if copies("WATERMARKS") else None),
        primary_key=new.primary_key or (base.primary_key if copies("CONSTRAINTS") else ()),
        partitioned_by=new.partitioned_by or (base.partitioned_by if copies("PARTITIONS") else ()),
        comment=new.comment or base.comment,
    )


def _is_copied(column: ColumnDef, generated: bool, metadata: bool) -> bool:
    if isinstance(column, ComputedColumnDef):
        return generated
    return metadata or not isinstance(column, MetadataColumnDef)


def _at(column: ColumnDef, source: Name) -> ColumnDef:
    """A copied column stands, for whoever complains about it, where the source is named."""
    return replace(column, name=Name(column.name.text, source.span))


def table_of_query(statement: CreateTableAs, relation: Relation) -> CreateTable:
    """Return the declaration of a table with the columns of a query; raise SQL-1309 for a column that has
    no type of its own.
    """
    columns: list[ColumnDef] = []
    for field in relation.fields:
        if isinstance(field.type, Null):
            hint = f"write CAST(NULL AS type) AS {field.name}"
            message = f'column "{field.name}" is always NULL, so the table cannot know its type'
            raise PenstockError("SQL-1309", message, span=statement.query.span, hint=hint, sqlstate="42P18")
        columns.append(PhysicalColumnDef(Name(field.name, statement.query.span), field.type, field.nullable))
    return replace(statement.table, columns=tuple(columns))
