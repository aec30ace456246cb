"""Fallback kernels: a scalar expression in DuckDB over columns. Used where Arrow has no kernel for arguments
that vary by row.
"""

from __future__ import annotations

import atexit
import re
import threading
import weakref
from typing import Any

import pyarrow as pa

from penstock.engine.expressions.datum import Datum, Kernel, aligned
from penstock.engine.expressions.evaluation_errors import bad_argument, one_array, over_capacity

# the kind of error at the start of DuckDB's messages
_KIND = re.compile(r"^[A-Z][A-Za-z ]* Error: ")
# how DuckDB reports a result that one array of Arrow cannot hold
_OVER_CAPACITY = "maximum total string size"


class _Shared:
    """The in-memory database of all kernels, opened at the first use of one. To open a database takes 18 ms
    of processor time, another connection to it microseconds.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._database: Any = None

    def connect(self) -> Any:
        """Return a connection of its own. One thread at a time may use it."""
        import duckdb

        with self._lock:
            if self._database is None:
                # no threads of its own: a query runs in the slot that asks
                self._database = duckdb.connect(":memory:", config={"threads": 1})
            return self._database.cursor()

    def abandon(self) -> None:
        """Open another database for the connections to come: a fatal error ends all of one."""
        with self._lock:
            self._database = None


_SHARED = _Shared()


class _Database:
    """A kernel's connection, made at its first use."""

    def __init__(self) -> None:
        self._connection: Any = None
        _OPEN.add(self)

    @property
    def connection(self) -> Any:
        if self._connection is None:
            self._connection = _SHARED.connect()
        return self._connection

    def close(self) -> None:
        """Close it. DuckDB reports an error for a connection that outlives the interpreter."""
        self._connection = None


# weak: a kernel that is no longer used closes its connection by itself
_OPEN: weakref.WeakSet[_Database] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for database in list(_OPEN):
        database.close()
    _SHARED.abandon()


def duckdb_kernel(expression: str, kind: pa.DataType, *, strict: bool = True) -> Kernel:
    """Return the kernel of a DuckDB expression; its arguments are written ``{0}``, ``{1}``, and so on. It
    costs about a millisecond per batch.

    ``strict`` makes the result NULL where an argument is NULL, which not all DuckDB functions do. The first
    batch loads DuckDB and opens an in-memory database. A kernel runs in one task and has its own connection.
    """
    database = _Database()

    def kernel(*data: Datum) -> pa.Array:
        import duckdb

        columns = aligned(*data)
        names = [f"a{i}" for i in range(len(columns))]
        table = pa.table(columns, names=names)
        text = f"({expression.format(*names)})"
        if strict and any(column.null_count for column in columns):
            # Only for batches with NULLs.
            text = f"CASE WHEN {' AND '.join(f'{name} IS NOT NULL' for name in names)} THEN {text} END"

        def answer() -> pa.Table:
            return database.connection.from_arrow(table).project(f"{text} AS result").to_arrow_table()

        try:
            try:
                result = answer()
            except duckdb.FatalException:
                # of this query, or of another kernel's: the database is gone with all its connections
                _SHARED.abandon()
                database.close()
                result = answer()
        except duckdb.OutOfMemoryException as error:
            raise MemoryError(str(error)) from None
        except duckdb.Error as error:
            if _OVER_CAPACITY in str(error):
                raise over_capacity() from None
            raise bad_argument(_KIND.sub("", str(error).split("\n")[0])) from None
        # DuckDB returns chunks of its own size
        array = one_array(result.column(0))
        return array if array.type == kind else array.cast(kind)

    return kernel
