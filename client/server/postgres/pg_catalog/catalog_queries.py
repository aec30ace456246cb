"""Queries of PostgreSQL's system catalog: told from queries of ours, rewritten, and answered by DuckDB."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock import __version__
from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import BIGINT, INT, STRING, Array, DataType, from_arrow
from penstock.client.server.postgres.executions import TableStatement
from penstock.client.server.postgres.pg_catalog import catalog_functions, catalog_tables
from penstock.client.server.postgres.pg_catalog.catalog_rewriting import is_catalog_query, rewritten
from penstock.client.server.postgres.pg_catalog.catalog_rows import catalog_rows, lookups, visible_relations
from penstock.client.server.postgres.session_parameters import SERVER_VERSION
from penstock.client.server.postgres.sql_words import SqlToken
from penstock.client.server.postgres.wire_types import sql_type

if TYPE_CHECKING:
    import duckdb

    from penstock.client.server.postgres.wire_session import WireSession

_MEMORY = "256MB"
# pgc."version"() is called version, as PostgreSQL calls it
_CALL = re.compile(r'pgc\."?(\w+)"?\(')

INTROSPECTION = "typeinfo_tree"
"""A name in asyncpg's query about types that it does not know. It reads the answer by these types only."""
INTROSPECTION_OIDS = {
    **dict.fromkeys(("oid", "basetype", "elemtype", "range_subtype"), 26),
    **dict.fromkeys(("ns", "name", "basetype_name", "elemtype_name", "range_subtype_name"), 19),
    **dict.fromkeys(("kind", "elemdelim"), 18),
    **dict.fromkeys(("attrtypoids", "$1"), 1028),
    "attrnames": 1009,
}


class CatalogQueries:
    """Answers the catalog queries of one session. Its DuckDB is made by the first, and has the tables as they
    are now: it is filled again after a change of the catalog. It reads no files and no tables of ours.
    """

    def __init__(self, session: WireSession, startup: dict[str, str]) -> None:
        self._session = session
        self._startup = startup
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._version: object = None
        self._lock = threading.Lock()

    def asks_for(self, tokens: list[SqlToken]) -> bool:
        """Return whether a statement asks the system catalog."""
        return is_catalog_query(tokens)

    def statement(self, sql: str, tokens: list[SqlToken], oids: Sequence[int]) -> TableStatement:
        """Return a query of the system catalog. CLI-6267 where DuckDB cannot run it."""
        text, count = rewritten(sql, tokens, self._user)
        types: list[DataType] = [(sql_type(oid) or STRING) for oid in (*oids, *[0] * count)][:count]
        # described by a run without values: the tables are small
        first = self._run(text, [None] * count)
        schema = Schema(tuple(Field(name, from_arrow(kind)) for name, kind in _columns(first)))

        own_oids: dict[str, int] | None = None
        if INTROSPECTION in sql:
            schema, own_oids, types = _introspected(schema), INTROSPECTION_OIDS, [Array(BIGINT)]

        def compute(values: Sequence[object]) -> pa.Table:
            rows = self._run(text, list(values)) if count else first
            return _cast(rows, schema)

        return TableStatement(schema, compute, self._session, parameters=types, oids=own_oids)

    @property
    def _user(self) -> str:
        return self._startup.get("user", "penstock")

    def _run(self, text: str, values: list[object]) -> pa.Table:
        import duckdb

        with self._lock:
            connection = self._current()
            try:
                return connection.sql(text, params=values or None).to_arrow_table()
            except duckdb.Error as error:
                raise _refused(error) from error

    def _current(self) -> duckdb.DuckDBPyConnection:
        engine = self._session.server_session.connection.session
        version = engine.catalog.version
        if self._connection is None:
            self._connection = _new_database()
        if version != self._version:
            self._fill(self._connection)
            self._version = version
        return self._connection

    def _fill(self, connection: duckdb.DuckDBPyConnection) -> None:
        engine = self._session.server_session.connection.session
        with engine.state.lock:
            rows = catalog_rows(engine.catalog, self._user)
        for name in (*catalog_tables.TABLES, *catalog_tables.INFORMATION_SCHEMA):
            schema = "pgc" if name in catalog_tables.TABLES else "isc"
            connection.execute(f"DELETE FROM {schema}.{name}")
            if found := rows.tables.get(name):
                columns = list(dict.fromkeys(column for row in found for column in row))
                marks = f"({', '.join('?' * len(columns))})"
                values = ", ".join([marks] * len(found))
                # one statement a table: executemany, which runs one a row, took four times as long, 340 ms
                connection.execute(
                    f"INSERT INTO {schema}.{name} ({', '.join(columns)}) VALUES {values}",
                    [row.get(column) for row in found for column in columns],
                )
        for name, value in (
            ("version", f"PostgreSQL {SERVER_VERSION} (penstock {__version__})"),
            ("database", rows.database),
            ("schema", engine.catalog.current.database),
            ("user", self._user),
            ("pid", self._session.process),
            ("visible", visible_relations(rows, engine.catalog.current.database)),
        ):
            connection.execute(f"SET VARIABLE {name} = ?", [value])
        parameters: dict[object, object] = {
            name.lower(): value for name, value in self._session.parameters.all()
        }
        maps: dict[str, Mapping[object, object]] = {"settings": parameters, **lookups(rows)}
        for name, entries in maps.items():
            # an empty list has no type: a map of one entry that nobody asks for
            pairs: dict[object, object] = dict(entries) or {-1: ""}
            connection.execute(f"SET VARIABLE {name} = map(?, ?)", [list(pairs), list(pairs.values())])


def _new_database() -> duckdb.DuckDBPyConnection:
    import duckdb

    connection = duckdb.connect(":memory:")
    for schema in ("pgc", "isc"):
        connection.execute(f"CREATE SCHEMA {schema}")
    for definition in (*catalog_tables.definitions(), *catalog_functions.definitions()):
        connection.execute(definition)
    for view in (
        "pg_user AS SELECT rolname AS usename, oid AS usesysid, rolcreatedb AS usecreatedb, "
        "rolsuper AS usesuper FROM pgc.pg_roles",
        "pg_authid AS SELECT * FROM pgc.pg_roles",
        "pg_group AS SELECT rolname AS groname, oid AS grosysid FROM pgc.pg_roles WHERE false",
    ):
        connection.execute(f"CREATE VIEW pgc.{view}")
    # a client's text runs here: it reaches no file, no network, no extension, and not much memory
    connection.execute(f"SET threads = 1; SET memory_limit = '{_MEMORY}'")
    connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
    connection.execute("SET enable_external_access = false; SET lock_configuration = true")
    return connection


def _columns(rows: pa.Table) -> list[tuple[str, pa.DataType]]:
    """Return the columns with types that SQL has: a sum of integers is HUGEINT in DuckDB."""
    columns = []
    for column in rows.schema:
        kind, called = column.type, _CALL.match(column.name)
        try:
            from_arrow(kind)
        except PenstockError:
            kind = pa.string()
        columns.append(
            (
                called[1] if called else column.name,
                pa.int64() if pa.types.is_decimal(kind) and kind.scale == 0 else kind,
            )
        )
    return columns


def _introspected(schema: Schema) -> Schema:
    """Return the columns of asyncpg's query with the sizes that their OIDs have."""
    sized = {26: INT, 1028: Array(INT), 1009: Array(STRING)}
    kinds = (sized.get(INTROSPECTION_OIDS.get(field.name, 0), field.type) for field in schema)
    return Schema(tuple(Field(field.name, kind) for field, kind in zip(schema, kinds, strict=True)))


def _cast(rows: pa.Table, schema: Schema) -> pa.Table:
    columns = [column.cast(field.type) for column, field in zip(rows.columns, schema.to_arrow(), strict=True)]
    return pa.Table.from_arrays(columns, schema=schema.to_arrow())


def _refused(error: Exception) -> PenstockError:
    message = str(error).split("\n", 1)[0]
    return PenstockError(
        "CLI-6267",
        f"this query of the system catalog cannot be answered: {message[:300]}",
        hint="SHOW TABLES and DESCRIBE t tell what there is; tables of ours are not joined with pg_catalog",
        sqlstate="0A000",
    )
