"""What a server must have before a table's changes can be read: settings, rights, a key, the whole old rows
and a publication. What is missing is refused with the statement that provides it.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field
from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.database.connect import stored
from penstock.engine.connectors.database.database import quoted, quoted_table
from penstock.engine.connectors.postgres_cdc.link import PostgresLink
from penstock.engine.connectors.postgres_cdc.pgoutput import ReplicatedTable, needs_full_identity

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
    """The one question that the check of declared columns asks a database."""

    def __init__(self, link: PostgresLink) -> None:
        self._link = link

    def columns(self, table: str) -> dict[str, str]:
        text = (
            "SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = "
            "to_regclass($1) AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        )
        return {str(name): str(kind) for name, kind in self._link.ask(text, [quoted_table(table)])}

    def tables(self) -> list[str]:
        text = (
            "SELECT n.nspname::text || '.' || c.relname::text FROM pg_class c JOIN pg_namespace n ON "
            "n.oid = c.relnamespace WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', "
            "'information_schema') ORDER BY 1"
        )
        return [str(name) for (name,) in self._link.ask(text)]


def name_there(table: CatalogTable) -> str:
    """Return the table's name on the server, with its schema."""
    return f"{option(table, 'schema-name')}.{option(table, 'table-name')}"


def publication_of(table: CatalogTable) -> str:
    """Return the name of the publication."""
    return str(option(table, "publication.name") or f"penstock_{option(table, 'slot.name')}"[:63])


def checked_server(link: PostgresLink, table: CatalogTable, columns: tuple[int, ...]) -> TableFacts:
    """Return what is known of a table, its publication created when missing. DAT-4702, DAT-4703, DAT-4706 for
    a table that is not as declared, DAT-5403 to DAT-5408 for what replication needs.
    """
    place = name_there(table)
    if link.ask("SHOW wal_level")[0][0] != "logical":
        raise _refused(
            "DAT-5403",
            "the PostgreSQL server does not log what its tables' changes can be read from",
            "run there: ALTER SYSTEM SET wal_level = logical; and restart the server",
            sqlstate="55000",
        )
    wanted = list(columns)
    key_columns = [table.source_schema.index_of(name) for name in table.primary_key]
    wanted += [index for index in key_columns if index is not None and index not in wanted]
    there = dataclasses.replace(table, options={**table.options, "table-name": place})
    database: Any = _Columns(link)
    fields = stored(there, [table.source_schema[index] for index in wanted], database)
    keys = tuple(wanted.index(index) for index in key_columns if index is not None)
    oid = _check_kind(link, place)
    _check_key(link, place, oid, [fields[index].name for index in keys])
    types = link.ask(
        "SELECT attname::text, atttypid::text FROM pg_attribute WHERE attrelid = $1::oid", [str(oid)]
    )
    kinds = database.columns(place)
    order = tuple(_order(fields[index], kinds[fields[index].name], place) for index in keys)
    _check_publication(link, publication_of(table), table, [field.name for field in fields])
    relation = ReplicatedTable(place, oid, {str(name): int(str(kind)) for name, kind in types})
    return TableFacts(relation, fields, keys, order)


def _refused(code: str, message: str, hint: str, sqlstate: str = "42000") -> PenstockError:
    return PenstockError(code, message, hint=hint, kind=Kind.EXTERNAL, sqlstate=sqlstate)


def _check_kind(link: PostgresLink, place: str) -> int:
    """Return the id of a table. DAT-5404 without the right to read it, DAT-5405, DAT-5407."""
    text = (
        "SELECT oid::text, relkind::text, relreplident::text, relpersistence::text, has_table_privilege(oid, "
        "'SELECT'), current_user::text FROM pg_class WHERE oid = to_regclass($1)"
    )
    oid, kind, identity, persistence, readable, user = link.ask(text, [quoted_table(place)])[0]
    if kind != "r" or persistence != "p":
        what = "a partitioned table" if kind == "p" else "no permanent table"
        hint = "create a table here for each partition" if kind == "p" else "read the table it is made of"
        raise _refused("DAT-5407", f"{place} is {what}, so its changes cannot be read", hint, "0A000")
    if readable != "t":
        hint = f"run there: GRANT SELECT ON {place} TO {user}"
        raise _refused("DAT-5404", f"user {user} may not read table {place}", hint, "42501")
    if identity != "f":
        raise needs_full_identity(place)
    return int(str(oid))


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


def _check_publication(link: PostgresLink, name: str, table: CatalogTable, columns: list[str]) -> None:
    """DAT-5408 when the publication leaves out what must be read, or cannot be created."""
    place = name_there(table)
    found = link.ask("SELECT to_jsonb(p)::text FROM pg_publication p WHERE pubname = $1", [name])
    if not found:
        statement = f"CREATE PUBLICATION {quoted(name)} FOR TABLE {quoted_table(place)}"
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
        hint = f"run there: ALTER PUBLICATION {quoted(name)} ADD TABLE {quoted_table(place)}"
        raise _refused("DAT-5408", f"publication {name} does not have table {place}", hint)
    # absent before PostgreSQL 15, which has neither
    listed: dict[str, Any] = json.loads(str(tables[0][0]))
    left_out = [column for column in columns if column not in (listed.get("attnames") or columns)]
    if listed.get("rowfilter") or left_out:
        what = f"column {left_out[0]}" if left_out else "rows by a WHERE clause"
        hint = f"run there: ALTER PUBLICATION {quoted(name)} SET TABLE {quoted_table(place)}"
        raise _refused("DAT-5408", f"publication {name} leaves out {what} of table {place}", hint)
