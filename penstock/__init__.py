"""penstock: declarative continuous SQL. ``connect()`` returns a DB-API connection; the engine is imported
when it is first needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.catalog.errors import PenstockError
    from penstock.catalog.python_connectors import sink, source
    from penstock.client.connection import Connection
    from penstock.client.dbapi_errors import (
        DatabaseError,
        DataError,
        Error,
        IntegrityError,
        InterfaceError,
        InternalError,
        NotSupportedError,
        OperationalError,
        ProgrammingError,
        Warning,
    )
    from penstock.client.dbapi_types import (
        BINARY,
        DATETIME,
        NUMBER,
        ROWID,
        STRING,
        Binary,
        Date,
        DateFromTicks,
        Time,
        TimeFromTicks,
        Timestamp,
        TimestampFromTicks,
    )
    from penstock.planner.table_api.expressions import (
        call,
        case,
        col,
        count,
        dense_rank,
        expr,
        ifelse,
        lit,
        rank,
        row_number,
    )
    from penstock.planner.table_api.process_table_functions import (
        list_state,
        map_state,
        ptf,
        table_input,
        value_state,
    )
    from penstock.planner.table_api.table import Table
    from penstock.planner.table_api.udf import udaf, udf, udtf
    from penstock.planner.table_api.windows import cumulate, hop, session, tumble

_HERE = Path(__file__).parent
# a checkout, where the packages lie beside this one's folder and not in it
if not (_HERE / "engine").is_dir():
    __path__.append(str(_HERE.parent))

__version__ = "0.1.0"
apilevel = "2.0"
threadsafety = 2
paramstyle = "qmark"


def connect(
    url: str | None = None, *, settings: Mapping[str, str] | None = None, catalog: str | Path | None = None
) -> Connection:
    """Return a connection to an engine in this process, or with a URL such as ``penstock://host:8815`` to a
    server. ``settings`` are SET at once; ``catalog`` is a directory that stores permanent tables of this
    process.

    Raises OperationalError for a server that does not answer.
    """
    # the engine's libraries are loaded by the first connection, not by the import
    from penstock.client.connection import connect as open_connection

    return open_connection(url, settings=settings, catalog=catalog)


def register_spark(spark: Any, *, ship: bool | None = None) -> None:
    """Let a Spark session read ``format("penstock")``: files that jobs committed, and materialized views.
    See docs/SPARK.md.
    """
    # needs pyspark, which is an extra
    from penstock.client.spark_source.registration import register_spark as register

    register(spark, ship=ship)


_ERRORS = frozenset(
    {
        "DataError",
        "DatabaseError",
        "Error",
        "IntegrityError",
        "InterfaceError",
        "InternalError",
        "NotSupportedError",
        "OperationalError",
        "ProgrammingError",
        "Warning",
    }
)
_DBAPI_TYPES = frozenset(
    {
        "BINARY",
        "DATETIME",
        "NUMBER",
        "ROWID",
        "STRING",
        "Binary",
        "Date",
        "DateFromTicks",
        "Time",
        "TimeFromTicks",
        "Timestamp",
        "TimestampFromTicks",
    }
)
_DECORATORS = frozenset({"udaf", "udf", "udtf"})
_PROCESS_TABLES = frozenset({"list_state", "map_state", "ptf", "table_input", "value_state"})
_CONNECTORS = frozenset({"sink", "source"})
_EXPRESSIONS = frozenset(
    {"call", "case", "col", "count", "dense_rank", "expr", "ifelse", "lit", "rank", "row_number"}
)
_WINDOWS = frozenset({"cumulate", "hop", "session", "tumble"})


def __getattr__(name: str) -> Any:
    """Return an error, a type of PEP 249, a constructor of the Table API or a decorator of Python
    functions, loading it on first use.

    Every module below imports this package first, also in workers, so that it loads nothing itself.
    """
    if name == "PenstockError":
        from penstock.catalog.errors import PenstockError

        return PenstockError
    if name in _ERRORS:
        from penstock.client import dbapi_errors

        return getattr(dbapi_errors, name)
    if name in _DBAPI_TYPES:
        from penstock.client import dbapi_types

        return getattr(dbapi_types, name)
    if name in _DECORATORS:
        from penstock.planner.table_api import udf

        return getattr(udf, name)
    if name in _PROCESS_TABLES:
        from penstock.planner.table_api import process_table_functions

        return getattr(process_table_functions, name)
    if name in _CONNECTORS:
        from penstock.catalog import python_connectors

        return getattr(python_connectors, name)
    if name in _EXPRESSIONS:
        from penstock.planner.table_api import expressions

        return getattr(expressions, name)
    if name in _WINDOWS:
        from penstock.planner.table_api import windows

        return getattr(windows, name)
    if name == "Table":
        from penstock.planner.table_api.table import Table

        return Table
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")


__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "PenstockError",
    "ProgrammingError",
    "Table",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "call",
    "case",
    "col",
    "connect",
    "count",
    "cumulate",
    "dense_rank",
    "expr",
    "hop",
    "ifelse",
    "list_state",
    "lit",
    "map_state",
    "paramstyle",
    "ptf",
    "rank",
    "register_spark",
    "row_number",
    "session",
    "sink",
    "source",
    "table_input",
    "threadsafety",
    "tumble",
    "udaf",
    "udf",
    "udtf",
    "value_state",
]
