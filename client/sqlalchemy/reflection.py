"""The inspector's questions, answered by SHOW, DESCRIBE and the schema of the table."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exc
from sqlalchemy.engine import reflection
from sqlalchemy.engine.base import Connection
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.engine.interfaces import (
    ReflectedColumn,
    ReflectedForeignKeyConstraint,
    ReflectedIndex,
    ReflectedPrimaryKeyConstraint,
    ReflectedTableComment,
    ReflectedUniqueConstraint,
)

from penstock.client.connection import Connection as ClientConnection
from penstock.client.sqlalchemy.column_types import column_type

# a name that the catalog does not have: of a table, and of its database
_NO_SUCH = ("SQL-1041", "SQL-1351", "SQL-1352")


class ReflectingDialect(DefaultDialect):
    """The part of the dialect that reads the catalog. A schema is a database, or ``catalog.database``."""

    def _get_default_schema_name(self, connection: Connection) -> str:
        """Return the current database."""
        rows = connection.exec_driver_sql("SHOW DATABASES").fetchall()
        return next(name for name, current in rows if current)

    @reflection.cache
    def get_schema_names(self, connection: Connection, **kw: Any) -> list[str]:
        """Return the databases of the current catalog, then those of others as ``catalog.database``."""
        names: list[str] = []
        others: list[str] = []
        for catalog, _, current in connection.exec_driver_sql("SHOW CATALOGS").fetchall():
            shown = connection.exec_driver_sql(f"SHOW DATABASES IN {self._path(catalog)}").fetchall()
            if current:
                names += [row[0] for row in shown]
            else:
                others += [f"{catalog}.{row[0]}" for row in shown]
        return names + others

    def has_schema(self, connection: Connection, schema_name: str, **kw: Any) -> bool:
        """Return whether there is a database of the name."""
        names = {name.lower() for name in self.get_schema_names(connection)}
        return schema_name.lower() in names

    @reflection.cache
    def has_table(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> bool:
        """Return whether there is a table or view of the name."""
        self._ensure_has_table_connection(connection)
        try:
            self._describe(connection, table_name, schema)
        except exc.NoSuchTableError:
            return False
        return True

    @reflection.cache
    def get_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the permanent tables."""
        return [name for name, temporary in self._tables(connection, schema) if not temporary]

    @reflection.cache
    def get_temp_table_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the temporary tables, and those that the program registered."""
        return [name for name, temporary in self._tables(connection, schema) if temporary]

    def _tables(self, connection: Connection, schema: str | None) -> list[tuple[str, bool]]:
        rows = self._show(connection, "TABLES", schema)
        return [(_last_part(name), temporary == "yes") for name, _, _, temporary in rows]

    @reflection.cache
    def get_view_names(self, connection: Connection, schema: str | None = None, **kw: Any) -> list[str]:
        """Return the views."""
        return [_last_part(row[0]) for row in self._show(connection, "VIEWS", schema)]

    @reflection.cache
    def get_materialized_view_names(
        self, connection: Connection, schema: str | None = None, **kw: Any
    ) -> list[str]:
        """Return the materialized views."""
        return [_last_part(row[0]) for row in self._show(connection, "MATERIALIZED VIEWS", schema)]

    @reflection.cache
    def get_view_definition(
        self, connection: Connection, view_name: str, schema: str | None = None, **kw: Any
    ) -> str:
        """Return the query of a view or materialized view. NoSuchTableError when there is none."""
        for kind in ("VIEWS", "MATERIALIZED VIEWS"):
            for row in self._show(connection, kind, schema):
                if _last_part(row[0]).lower() == view_name.lower():
                    return str(row[-1])
        raise exc.NoSuchTableError(view_name)

    @reflection.cache
    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedColumn]:
        """Return the columns of a table or view."""
        described = self._describe(connection, table_name, schema)
        raw = connection.connection.dbapi_connection
        assert isinstance(raw, ClientConnection)
        path = f"{schema}.{table_name}" if schema else table_name
        kinds = {field.name: field.type for field in raw.table(path).schema}
        return [
            {
                "name": name,
                "type": column_type(kinds[name]),
                "nullable": null == "yes",
                "default": None,
            }
            for name, _, null, *_ in described
        ]

    @reflection.cache
    def get_pk_constraint(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedPrimaryKeyConstraint:
        """Return the primary key, which has no name."""
        described = self._describe(connection, table_name, schema)
        return {"constrained_columns": [row[0] for row in described if row[3]], "name": None}

    @reflection.cache
    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedForeignKeyConstraint]:
        """Return no foreign keys, of a table that exists."""
        self._describe(connection, table_name, schema)
        return []

    @reflection.cache
    def get_indexes(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedIndex]:
        """Return no indexes, of a table that exists."""
        self._describe(connection, table_name, schema)
        return []

    @reflection.cache
    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> list[ReflectedUniqueConstraint]:
        """Return no unique constraints, of a table that exists."""
        self._describe(connection, table_name, schema)
        return []

    @reflection.cache
    def get_table_comment(
        self, connection: Connection, table_name: str, schema: str | None = None, **kw: Any
    ) -> ReflectedTableComment:
        """Return no comment, of a table that exists."""
        self._describe(connection, table_name, schema)
        return {"text": None}

    def _describe(self, connection: Connection, table_name: str, schema: str | None) -> list[Any]:
        """Return the rows of DESCRIBE. NoSuchTableError when there is no such table."""
        path = self._path(table_name) if schema is None else f"{self._path(schema)}.{self._path(table_name)}"
        try:
            return list(connection.exec_driver_sql(f"DESCRIBE {path}").fetchall())
        except exc.DBAPIError as error:
            if getattr(error.orig, "code", None) in _NO_SUCH:
                raise exc.NoSuchTableError(f"{schema}.{table_name}" if schema else table_name) from error
            raise

    def _show(self, connection: Connection, kind: str, schema: str | None) -> list[Any]:
        place = f" IN {self._path(schema)}" if schema else ""
        return list(connection.exec_driver_sql(f"SHOW {kind}{place}").fetchall())

    def _path(self, written: str) -> str:
        """Return the quoted parts of a name."""
        quote = self.identifier_preparer.quote_identifier
        return ".".join(quote(part) for part in written.split("."))


def _last_part(path: str) -> str:
    """Return a table's own name: a listing of another database has the whole path."""
    return path.rpartition(".")[2]
