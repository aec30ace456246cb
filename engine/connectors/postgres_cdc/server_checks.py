"""What a server must have before a table's changes can be read: settings, rights, a key, the whole old rows
and a publication. What is missing is refused with the statement that provides it.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from penstock.catalog.connectors.registry import emits_upserts, option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.persistence.show_create import quoted_name
from penstock.catalog.schema import Field
from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.database.connect import stored
from penstock.engine.connectors.database.database import quoted
from penstock.engine.connectors.database.postgres import COLUMNS
from penstock.engine.connectors.postgres_cdc.layouts import ColumnType, ReplicatedTable
from penstock.engine.connectors.postgres_cdc.link import PostgresLink
from penstock.engine.connectors.postgres_cdc.pgoutput import needs_full_identity, needs_key_identity
from penstock.engine.connectors.postgres_cdc.slots import position_of

# types of key columns whose order here is the server's
_KEY_TYPES = (
    "smallint",
    "integer",
    "bigint",
    "numeric",
    "date",
    "timestamp",
    "boolean",
    "bytea",
    "text",
    "character varying",
    "uuid",
)


@dataclass(frozen=True)
class TableFacts:
    """What is known of a table on the server. ``fields``: the columns that are read, under their names there.
    ``keys``: their positions that make the key; ``order``: the key's columns as the rows are sorted by them.
    """

    relation: ReplicatedTable
    fields: tuple[Field, ...]
    keys: tuple[int, ...]
    order: tuple[str, ...]


class _Columns:
    """The one question that the check of declared columns asks a database, about one table."""

    def __init__(self, link: PostgresLink, place: str) -> None:
        self._link, self._place = link, place

    def columns(self, _table: str) -> dict[str, str]:
        found = self._link.ask(COLUMNS.format("$1"), [self._place])
        return {str(name): str(kind) for name, kind in found}

    def tables(self) -> list[str]:
        text = (
            "SELECT n.nspname::text || '.' || c.relname::text FROM pg_class c JOIN pg_namespace n ON "
            "n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', "
            "'information_schema') ORDER BY 1"
        )
        return [str(name) for (name,) in self._link.ask(text)]


def name_there(table: CatalogTable) -> str:
    """Return the table's name on the server, with its schema, for people."""
    return f"{option(table, 'schema-name')}.{option(table, 'table-name')}"


def publication_of(table: CatalogTable) -> str:
    """Return the name of the publication."""
    return str(option(table, "publication.name") or f"penstock_{option(table, 'slot.name')}"[:63])


def checked_server(link: PostgresLink, table: CatalogTable, columns: tuple[int, ...]) -> TableFacts:
    """Return what is known of a table, its publication created when missing. DAT-4702, DAT-4703, DAT-4706 for
    a table that is not as declared, DAT-5403 to DAT-5408 and DAT-5419 for what replication needs.
    """
    if link.ask("SHOW wal_level")[0][0] != "logical":
        raise _refused(
            "DAT-5403",
            "the PostgreSQL server does not log what its tables' changes can be read from",
            "run there: ALTER SYSTEM SET wal_level = logical; and restart the server",
            sqlstate="55000",
        )
    # before the columns: a layout that is sent for a later transaction is no older than they are
    at = link.ask(
        "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE "
        "pg_current_wal_insert_lsn() END)::text"
    )[0][0]
    names = [str(option(table, "schema-name")), str(option(table, "table-name"))]
    # as the server writes them in a statement: quoted where they must be
    place = str(link.ask("SELECT quote_ident($1) || '.' || quote_ident($2)", names)[0][0])
    wanted = list(columns)
    key_columns = [table.source_schema.index_of(name) for name in table.primary_key]
    wanted += [index for index in key_columns if index is not None and index not in wanted]
    database = _Columns(link, place)
    fields = _stored(table, [table.source_schema[index] for index in wanted], database)
    keys = tuple(wanted.index(index) for index in key_columns if index is not None)
    key_names = [fields[index].name for index in keys]
    oid, identity = _check_kind(link, place)
    if not emits_upserts(table) and identity != "f":
        raise needs_full_identity(place)
    _check_key(link, place, oid, key_names)
    if identity != "f":
        _check_identity(link, place, oid, key_names)
    kinds = database.columns(place)
    order = tuple(_order(fields[index], kinds[fields[index].name], place) for index in keys)
    relation = _replicated(link, place, oid, table.name, position_of(str(at)))
    _check_generated(link, publication_of(table), relation, [field.name for field in fields])
    _check_publication(link, publication_of(table), table, place, [field.name for field in fields])
    return TableFacts(relation, fields, keys, order)


def _stored(table: CatalogTable, fields: list[Field], database: Any) -> tuple[Field, ...]:
    """Return fields under their names there. A column that is gone has a cure here."""
    there = dataclasses.replace(table, options={**table.options, "table-name": name_there(table)})
    try:
        return stored(there, fields, database)
    except PenstockError as error:
        if error.code == "DAT-4703":
            error.hint = (
                f"{error.hint or 'it has no such column'}; when it was dropped or renamed there, run here: "
                f"ALTER TABLE {quoted_name(table.name)} DROP .., or RENAME .. TO .."
            )
        raise


def _replicated(link: PostgresLink, place: str, oid: int, here: str, position: int) -> ReplicatedTable:
    found = link.ask(
        "SELECT attname::text, atttypid::text, atttypmod::text, attisdropped, attgenerated <> '' FROM "
        "pg_attribute WHERE attrelid = $1::oid AND attnum > 0 ORDER BY attnum",
        [str(oid)],
    )
    columns = {
        str(name): ColumnType(int(str(kind)), int(str(modifier)))
        for name, kind, modifier, is_dropped, _ in found
        if is_dropped != "t"
    }
    # a generated column may be in no layout: then the others' places are not those that are sent
    has_gaps = any("t" in row[3:] for row in found)
    return ReplicatedTable(place, oid, columns, here, position, has_gaps)


def _check_generated(
    link: PostgresLink, publication: str, relation: ReplicatedTable, names: list[str]
) -> None:
    """DAT-5419 for declared columns that the server computes and does not publish."""
    found = link.ask(
        "SELECT a.attname::text, pg_get_expr(d.adbin, d.adrelid) FROM pg_attribute a JOIN pg_attrdef d ON "
        "d.adrelid = a.attrelid AND d.adnum = a.attnum WHERE a.attrelid = $1::oid AND a.attgenerated <> '' "
        "AND NOT (a.attgenerated = 's' AND EXISTS (SELECT FROM pg_publication p WHERE p.pubname = $2 AND "
        "to_jsonb(p)->>'pubgencols' = 's')) ORDER BY a.attnum",
        [str(relation.oid), publication],
    )
    for name, expression in found:
        if name in names:
            raise _refused(
                "DAT-5419",
                f"column {name} of table {relation.name} is generated, so it is not in the table's changes",
                f"declare it here as a computed column: {quoted_name(str(name))} AS {expression}",
                "0A000",
            )


def _refused(code: str, message: str, hint: str, sqlstate: str = "42000") -> PenstockError:
    return PenstockError(code, message, hint=hint, kind=Kind.EXTERNAL, sqlstate=sqlstate)


def _check_kind(link: PostgresLink, place: str) -> tuple[int, str]:
    """Return the id of a table and its replica identity. DAT-5404 without the right to read it, DAT-5407."""
    text = (
        "SELECT oid::text, relkind::text, relreplident::text, relpersistence::text, has_table_privilege(oid, "
        "'SELECT'), quote_ident(current_user), row_security_active(oid) FROM pg_class WHERE oid = "
        "to_regclass($1)"
    )
    oid, kind, identity, persistence, readable, user, hides_rows = link.ask(text, [place])[0]
    if kind != "r" or persistence != "p":
        what = "a partitioned table" if kind == "p" else "no permanent table"
        hint = "create a table here for each partition" if kind == "p" else "read the table it is made of"
        raise _refused("DAT-5407", f"{place} is {what}, so its changes cannot be read", hint, "0A000")
    if readable != "t":
        hint = f"run there: GRANT SELECT ON {place} TO {user}"
        raise _refused("DAT-5404", f"user {user} may not read table {place}", hint, "42501")
    if hides_rows == "t":
        # the rows of the table would be some, its changes all
        message = f"policies of table {place} hide rows from user {user}"
        raise _refused("DAT-5404", message, f"run there: ALTER ROLE {user} BYPASSRLS", "42501")
    return int(str(oid)), str(identity)


def _check_identity(link: PostgresLink, place: str, oid: int, names: list[str]) -> None:
    """DAT-5405 when changes do not have the declared key."""
    text = (
        "SELECT array_to_json(array_agg(a.attname::text))::text FROM pg_class c JOIN pg_index i ON "
        "i.indrelid = c.oid JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey) WHERE "
        "c.oid = $1::oid AND CASE c.relreplident WHEN 'd' THEN i.indisprimary WHEN 'i' THEN i.indisreplident "
        "ELSE false END"
    )
    if sorted(json.loads(str(link.ask(text, [str(oid)])[0][0] or "[]"))) != sorted(names):
        raise needs_key_identity(place, names)


def _check_key(link: PostgresLink, place: str, oid: int, names: list[str]) -> None:
    """DAT-5406 when the declared key is no key of the table there."""
    text = (
        "SELECT array_to_json(array_agg(a.attname::text))::text FROM pg_index i JOIN pg_attribute a ON "
        "a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey) WHERE i.indrelid = $1::oid AND i.indisunique "
        "AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL AND "
        "i.indnkeyatts = i.indnatts GROUP BY i.indexrelid HAVING bool_and(a.attnotnull)"
    )
    keys = [sorted(json.loads(str(found))) for (found,) in link.ask(text, [str(oid)])]
    if sorted(names) not in keys:
        known = " or ".join(f"({', '.join(key)})" for key in keys)
        hint = (
            f"declare its key: PRIMARY KEY {known}"
            if keys
            else f"run there: ALTER TABLE {place} ADD PRIMARY KEY ({', '.join(names)})"
        )
        raise _refused("DAT-5406", f"({', '.join(names)}) is no key of table {place}", hint)


def _order(field: Field, kind: str, place: str) -> str:
    """Return a key's column as an ORDER BY sorts it in our order: texts by their bytes."""
    plain = kind.partition("(")[0].strip().removesuffix(" without time zone").removesuffix(" with time zone")
    if plain not in _KEY_TYPES:
        raise _refused(
            "DAT-5406",
            f"column {field.name} of table {place} is {kind}, which a key cannot be",
            "declare another key of the table, of numbers, texts, times or uuid",
        )
    if plain in ("text", "character varying"):
        return f'{quoted(field.name)} COLLATE "C"'
    # text forms of other types have another order than the values; a uuid's have the same
    as_text = str(field.type) == "STRING" and plain != "uuid"
    return f'{quoted(field.name)}::text COLLATE "C"' if as_text else quoted(field.name)


def _check_publication(
    link: PostgresLink, name: str, table: CatalogTable, place: str, columns: list[str]
) -> None:
    """DAT-5408 when the publication leaves out what must be read, or cannot be created."""
    found = link.ask("SELECT to_jsonb(p)::text FROM pg_publication p WHERE pubname = $1", [name])
    if not found:
        statement = f"CREATE PUBLICATION {quoted(name)} FOR TABLE {place}"
        try:
            link.ask(statement)
        except PenstockError as error:
            if error.retriable:
                raise
            raise PenstockError(
                "DAT-5408",
                f"publication {name} does not exist and cannot be created",
                detail=error.detail,
                hint=f"let the table's owner run: {statement}",
                kind=Kind.EXTERNAL,
                sqlstate=error.sqlstate,
            ) from error
        return
    publication: dict[str, Any] = json.loads(str(found[0][0]))
    missing = [
        what for what in ("insert", "update", "delete", "truncate") if not publication.get(f"pub{what}", True)
    ]
    if missing:
        raise _refused(
            "DAT-5408",
            f"publication {name} leaves out {', '.join(missing)}",
            f"run there: ALTER PUBLICATION {quoted(name)} SET (publish = 'insert, update, delete, truncate')",
        )
    text = (
        "SELECT to_jsonb(t)::text FROM pg_publication_tables t WHERE pubname = $1 AND schemaname = $2 AND "
        "tablename = $3"
    )
    parts = [str(option(table, "schema-name")), str(option(table, "table-name"))]
    tables = link.ask(text, [name, *parts])
    if not tables:
        hint = f"run there: ALTER PUBLICATION {quoted(name)} ADD TABLE {place}"
        raise _refused("DAT-5408", f"publication {name} does not have table {place}", hint)
    # absent before PostgreSQL 15, which has neither
    listed: dict[str, Any] = json.loads(str(tables[0][0]))
    left_out = [column for column in columns if column not in (listed.get("attnames") or columns)]
    if listed.get("rowfilter") or left_out:
        what = f"column {left_out[0]}" if left_out else "rows by a WHERE clause"
        hint = f"run there: ALTER PUBLICATION {quoted(name)} SET TABLE {place}"
        raise _refused("DAT-5408", f"publication {name} leaves out {what} of table {place}", hint)
