"""Catalogs, databases, tables and keys as Flight SQL returns them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.catalog.catalog import Relation
from penstock.catalog.tables import CatalogTable, MaterializedView, ObjectPath, View
from penstock.client.server.flight.messages import schema_bytes
from penstock.client.session import Session
from penstock.client.statements.settings import matches

TABLE_TYPES = ("TABLE", "VIEW", "MATERIALIZED VIEW")

CATALOGS = pa.schema([pa.field("catalog_name", pa.string(), False)])
SCHEMAS = pa.schema([pa.field("catalog_name", pa.string()), pa.field("db_schema_name", pa.string(), False)])
TABLES = pa.schema(
    [
        pa.field("catalog_name", pa.string()),
        pa.field("db_schema_name", pa.string()),
        pa.field("table_name", pa.string(), False),
        pa.field("table_type", pa.string(), False),
    ]
)
TABLES_WITH_SCHEMA = TABLES.append(pa.field("table_schema", pa.binary(), False))
TYPES = pa.schema([pa.field("table_type", pa.string(), False)])
PRIMARY_KEYS = pa.schema(
    [
        pa.field("catalog_name", pa.string()),
        pa.field("db_schema_name", pa.string()),
        pa.field("table_name", pa.string(), False),
        pa.field("column_name", pa.string(), False),
        pa.field("key_sequence", pa.int32(), False),
        pa.field("key_name", pa.string()),
    ]
)
FOREIGN_KEYS = pa.schema(
    [
        pa.field("pk_catalog_name", pa.string()),
        pa.field("pk_db_schema_name", pa.string()),
        pa.field("pk_table_name", pa.string(), False),
        pa.field("pk_column_name", pa.string(), False),
        pa.field("fk_catalog_name", pa.string()),
        pa.field("fk_db_schema_name", pa.string()),
        pa.field("fk_table_name", pa.string(), False),
        pa.field("fk_column_name", pa.string(), False),
        pa.field("key_sequence", pa.int32(), False),
        pa.field("fk_key_name", pa.string()),
        pa.field("pk_key_name", pa.string()),
        pa.field("update_rule", pa.uint8(), False),
        pa.field("delete_rule", pa.uint8(), False),
    ]
)
"""Of imported, exported and cross keys; there are none, as tables declare no foreign keys."""


def catalogs(session: Session) -> pa.Table:
    """Return the names of the catalogs."""
    with session.state.lock:
        names = sorted(session.catalog.databases.options)
    return pa.table([pa.array(names, pa.string())], schema=CATALOGS)


def schemas(session: Session, command: Any) -> pa.Table:
    """Return the databases of a catalog, or of all."""
    paths = _paths(session, command, command.db_schema_filter_pattern)
    columns = [
        pa.array([getattr(path, name) for path in paths], pa.string()) for name in ("catalog", "database")
    ]
    return pa.table(columns, schema=SCHEMAS)


def tables(session: Session, command: Any) -> pa.Table:
    """Return tables and views, with their columns where the command asks for them."""
    wanted = set(command.table_types)
    pattern = command.table_name_filter_pattern if command.HasField("table_name_filter_pattern") else None
    rows: list[tuple[str, str, str, str, bytes]] = []
    for path in _paths(session, command, command.db_schema_filter_pattern):
        with session.state.lock:
            found = _relations(session, path)
        for name, relation in sorted(found.items()):
            kind = _table_type(relation)
            if matches(name, pattern) and (not wanted or kind in wanted):
                schema = relation.schema.to_arrow()
                columns = schema_bytes(schema) if command.include_schema else b""
                rows.append((path.catalog, path.database, name, kind, columns))
    schema = TABLES_WITH_SCHEMA if command.include_schema else TABLES
    values = list(zip(*rows, strict=True)) or [()] * 5
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(values, schema, strict=False)], schema=schema
    )


def table_types() -> pa.Table:
    """Return the kinds of relations there are."""
    return pa.table([pa.array(TABLE_TYPES, pa.string())], schema=TYPES)


def primary_keys(session: Session, command: Any) -> pa.Table:
    """Return the columns of a table's primary key, none where it has none or is a view."""
    current = session.catalog.current
    catalog = (command.catalog if command.HasField("catalog") else current.catalog).lower()
    database = (command.db_schema if command.HasField("db_schema") else current.database).lower()
    path = ObjectPath(catalog, database)
    with session.state.lock:
        relation = session.catalog.find(path.name_of(command.table))
    key = relation.primary_key if isinstance(relation, CatalogTable) else ()
    rows = [(catalog, database, command.table, column, number, None) for number, column in enumerate(key, 1)]
    columns = list(zip(*rows, strict=True)) or [()] * len(PRIMARY_KEYS)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, PRIMARY_KEYS, strict=True)]
    return pa.table(arrays, schema=PRIMARY_KEYS)


def _paths(session: Session, command: object, pattern: str) -> list[ObjectPath]:
    """Return the databases that a command asks for, in order."""
    catalog: str | None = command.catalog if command.HasField("catalog") else None  # type: ignore[attr-defined]
    like = pattern if command.HasField("db_schema_filter_pattern") else None  # type: ignore[attr-defined]
    with session.state.lock:
        databases = session.catalog.databases
        return [
            ObjectPath(name, database)
            for name in sorted(databases.options)
            if catalog is None or name == catalog.lower()
            for database in sorted(databases.of(name))
            if matches(database, like)
        ]


def _relations(session: Session, path: ObjectPath) -> dict[str, Relation]:
    """Return the relations of a database by their names there; a temporary one hides a permanent one."""
    catalog = session.catalog.at(path)
    found = {relation.name.rpartition(".")[2]: relation for relation in catalog.relations_of(path)}
    for name in catalog.external_tables():
        # declared by another system, which may have dropped it by now
        if (relation := catalog.find(name)) is not None:
            found[name] = relation
    return found


def _table_type(relation: Relation) -> str:
    if isinstance(relation, View):
        return "VIEW"
    # a materialized view is a CatalogTable too
    return "MATERIALIZED VIEW" if isinstance(relation, MaterializedView) else "TABLE"
