"""The dialect ``penstock``: its URL, its connections, and how they execute."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from sqlalchemy import exc, pool, schema, types
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.engine.interfaces import ConnectArgsType
from sqlalchemy.engine.url import URL
from sqlalchemy.sql.compiler import IdentifierPreparer
from sqlalchemy.sql.type_api import TypeEngine

from penstock.catalog.name_suggestions import did_you_mean
from penstock.client.sqlalchemy.bulk_insert import insert_rows
from penstock.client.sqlalchemy.column_types import ARRAY, INTERVAL, NestedValue
from penstock.client.sqlalchemy.compiler import (
    PenstockCompiler,
    PenstockDDLCompiler,
    PenstockIdentifierPreparer,
    PenstockTypeCompiler,
)
from penstock.client.sqlalchemy.reflection import ReflectingDialect
from penstock.client.sqlalchemy.streaming_cursor import StreamingCursor

_SETTING = "set."
_OPTIONS = ("catalog", "script", "table_directory")
_SERVER_OPTIONS = ("token", "tls")
# what SQLAlchemy's types are here
_OWN_TYPES: dict[type[TypeEngine[Any]], type[TypeEngine[Any]]] = {
    types.ARRAY: ARRAY,
    types.Interval: INTERVAL,
}
# Table(.., penstock_with={..}, penstock_watermark="..", penstock_partitioned_by=[..])
_TABLE_OPTIONS: Any = [(schema.Table, {"with": None, "watermark": None, "partitioned_by": None})]


class PenstockExecutionContext(DefaultExecutionContext):
    """One execution; ``stream_results`` gives it a cursor that does not wait for full buffers."""

    def create_server_side_cursor(self) -> Any:
        """Return a cursor that streams."""
        return StreamingCursor(self._dbapi_connection.cursor())  # type: ignore[arg-type]  # ours


class PenstockDialect(ReflectingDialect):
    """Compiles, and executes on an engine in this process or at a server.

    All connections of a SQLAlchemy engine are one session: they see the same tables and settings. A statement
    takes effect at once: commit and rollback do nothing.
    """

    name = "penstock"
    driver = "penstock"
    default_paramstyle = "qmark"
    statement_compiler = PenstockCompiler
    ddl_compiler = PenstockDDLCompiler
    type_compiler_cls = PenstockTypeCompiler
    preparer: type[IdentifierPreparer] = PenstockIdentifierPreparer
    execution_ctx_cls = PenstockExecutionContext

    colspecs = _OWN_TYPES
    construct_arguments = _TABLE_OPTIONS

    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_multivalues_insert = True
    supports_server_side_cursors = True
    supports_views = True
    supports_alter = False
    supports_comments = False
    supports_default_values = False
    supports_default_metavalue = False
    supports_empty_insert = False
    supports_identity_columns = False
    supports_sequences = False
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    insert_returning = False
    # rows have no number that the engine assigns
    postfetch_lastrowid = False
    div_is_floordiv = False
    cte_follows_insert = True
    max_identifier_length = 255
    default_isolation_level = "AUTOCOMMIT"

    def __init__(self, *, table_directory: str | Path | None = None, **kw: Any) -> None:
        """``table_directory``: where tables created without a connector keep their rows, as Parquet."""
        super().__init__(**kw)
        self.table_directory = None if table_directory is None else str(table_directory)
        self.is_remote = False

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """Return the client."""
        import penstock

        return penstock

    @classmethod
    def get_pool_class(cls, url: URL) -> type[pool.Pool]:
        """Return a pool of one connection: a second one would be another session with other tables."""
        return pool.StaticPool

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        """Return what ``connect`` is called with. ArgumentError for an option that does not exist."""
        arguments: dict[str, Any] = {"settings": {}}
        self.is_remote = bool(url.host)
        if url.host:
            # the client reads the rest: user, password, catalog.database, token and tls
            query = {key: value for key, value in url.query.items() if key in _SERVER_OPTIONS}
            arguments["url"] = url.set(query=query).render_as_string(hide_password=False)
        elif url.database:
            arguments["catalog"] = url.database
        for key, value in url.query.items():
            text = value if isinstance(value, str) else value[-1]
            if key.startswith(_SETTING):
                arguments["settings"][key.removeprefix(_SETTING)] = text
            elif key == "table_directory":
                self.table_directory = text
            elif key in _OPTIONS:
                arguments[key] = text
            elif url.host and key in _SERVER_OPTIONS:
                continue
            else:
                hint = did_you_mean(key, _OPTIONS) or f"there is {', '.join(_OPTIONS)} and set.<setting>"
                raise exc.ArgumentError(f"penstock:// has no option '{key}': {hint}")
        return [], arguments

    def connect(self, *cargs: Any, script: str | None = None, **cparams: Any) -> Any:
        """Return a connection that has run the script."""
        connection = super().connect(*cargs, **cparams)
        if script is not None:
            try:
                connection.cursor().executescript(Path(script).read_text(encoding="utf-8"))
            except BaseException:
                connection.close()
                raise
        return connection

    # -- execute

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """Execute a statement. An index compiles to none, as tables are scanned."""
        folder = None if context is None else getattr(context.compiled, "new_folder", None)
        # a store has no folders, and those of a server are not here
        if folder is not None and "://" not in folder and not self.is_remote:
            Path(folder).mkdir(parents=True, exist_ok=True)
        if statement:
            # the client takes a plain text, and no subclass of it
            values = [str(value) if isinstance(value, NestedValue) else value for value in parameters]
            super().do_execute(cursor, statement, values, context)

    def do_executemany(
        self, cursor: Any, statement: str, parameters: Sequence[Any], context: Any = None
    ) -> None:
        """Insert all rows by one job where that is possible, else execute row by row."""
        connection = context.root_connection.connection.dbapi_connection
        if not (context.isinsert and insert_rows(connection, cursor, statement, parameters)):
            texts = [
                [str(value) if isinstance(value, NestedValue) else value for value in row]
                for row in parameters
            ]
            super().do_executemany(cursor, statement, texts, context)

    def do_rollback(self, dbapi_connection: Any) -> None:
        """Do nothing: every statement has taken effect."""

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Return whether the connection is open; no query is needed for it."""
        dbapi_connection.cursor().close()
        return True

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """Return whether an error says that the connection is closed."""
        return getattr(e, "sqlstate", None) in ("08003", "08006")

    # -- transactions

    def get_isolation_level_values(self, dbapi_conn: Any) -> list[Any]:
        """Return the one level: every statement takes effect at once."""
        return ["AUTOCOMMIT"]

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        """Return the one level."""
        return "AUTOCOMMIT"

    def get_isolation_level(self, dbapi_connection: Any) -> Any:
        """Return the one level."""
        return "AUTOCOMMIT"

    def set_isolation_level(self, dbapi_connection: Any, level: Any) -> None:
        """Do nothing: there is one level."""

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        """Return the version of the engine."""
        return tuple(int(part) for part in self.import_dbapi().__version__.split(".") if part.isdigit())
