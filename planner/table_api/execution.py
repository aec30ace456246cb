"""What runs a Table API query: the cursor of a connection, and the methods that use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any, Protocol

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Schema
from penstock.planner.binder.binder import Binder
from penstock.planner.binder.ddl.insert import sink_for
from penstock.planner.binder.parameters import Parameters
from penstock.planner.binder.scope import Relation
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import bounded
from penstock.planner.logical.sink import Sink
from penstock.planner.statements.nodes import Insert, Name, Query
from penstock.planner.table_api.sql_text import Lines, path_text

if TYPE_CHECKING:
    import pandas
    import pyarrow as pa

Row = tuple[Any, ...]


class QueryCursor(Protocol):
    """A cursor of PEP 249 over the rows of one query, as a connection's ``cursor()`` returns it.

    It is a protocol, because the client is above the planner.
    """

    def execute(self, sql: str, params: Parameters = ()) -> QueryCursor:
        """Run one statement."""

    def run_plan(self, plan: LogicalPlan, sql: Callable[[], str]) -> QueryCursor:
        """Run a bound plan that ends in a Sink; ``sql`` returns its text, which a server gets."""

    def fetchone(self) -> Row | None:
        """Return the next row, or ``None`` at the end."""

    def fetchmany(self, size: int | None = None, timeout: float | None = None) -> list[Row]:
        """Return up to ``size`` rows."""

    def fetchall(self, timeout: float | None = None, limit: int | None = None) -> list[Row]:
        """Return all rows; an endless result asks for ``timeout`` or ``limit``."""

    def fetch_arrow_table(self, timeout: float | None = None, limit: int | None = None) -> pa.Table:
        """Return all rows as an Arrow table; an endless result asks for ``timeout`` or ``limit``."""

    def fetch_df(self, timeout: float | None = None, limit: int | None = None) -> pandas.DataFrame:
        """Return all rows as a pandas frame; an endless result asks for ``timeout`` or ``limit``."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield rows as Arrow batches as they come."""

    def changes(self, timeout: float | None = None) -> Iterator[tuple[str, Row]]:
        """Yield every change in order as ``(op, row)``."""

    def change_batches(self, timeout: float | None = None) -> Iterator[pa.RecordBatch]:
        """Yield every change in order as Arrow batches with a first column ``op``."""

    def cancel(self) -> None:
        """Stop the query, from any thread."""

    def close(self) -> None:
        """Stop the query and close the cursor."""

    def __iter__(self) -> Iterator[Row]:
        """Yield rows as they come."""

    def _repr_html_(self) -> str:
        """Return the first rows for a notebook."""

    @property
    def schema(self) -> Schema:
        """The columns with their SQL types."""

    @property
    def rowcount(self) -> int:
        """The number of rows, or -1 where it is unknown."""

    @property
    def job(self) -> Any:
        """The job that runs the query, or ``None``."""

    @property
    def note(self) -> str | None:
        """What became of a statement without rows."""


NewCursor = Callable[[], QueryCursor]


class Executable:
    """A bound query with its SQL text, which a connection can run."""

    _binder: Binder
    _relation: Relation
    _sql: Lines
    _new_cursor: NewCursor | None

    @property
    def schema(self) -> Schema:
        """The columns."""
        return Schema(self._relation.fields)

    @property
    def columns(self) -> list[str]:
        """The column names."""
        return list(self._relation.names)

    def execute(self) -> QueryCursor:
        """Run the query and return its cursor; only for tables of a connection."""
        return self._cursor().run_plan(Sink(self.to_plan(), None), self.to_sql)

    def __iter__(self) -> Iterator[Row]:
        """Run the query and yield its rows as they come."""
        return iter(self.execute())

    def _repr_html_(self) -> str:
        """Return the first rows for a notebook, or the columns where it reads a stream. Its query is stopped
        then.
        """
        cursor = self._cursor()
        # an endless query is not started
        if not bounded(self.to_plan()):
            return f"<p>{escape(repr(self))}, a stream: execute() reads it</p>"
        try:
            return cursor.run_plan(Sink(self.to_plan(), None), self.to_sql)._repr_html_()
        finally:
            cursor.close()

    def to_pandas(self, timeout: float | None = None, limit: int | None = None) -> pandas.DataFrame:
        """Run the query and return its rows as a pandas frame; an endless one asks for ``timeout`` or
        ``limit``.
        """
        return self.execute().fetch_df(timeout, limit)

    def to_arrow(self, timeout: float | None = None, limit: int | None = None) -> pa.Table:
        """Run the query and return its rows as an Arrow table; an endless one asks for ``timeout`` or
        ``limit``.
        """
        return self.execute().fetch_arrow_table(timeout, limit)

    def explain(self, *stages: str) -> str:
        """Return the plan as text: as bound, optimized and physical, or the stages of EXPLAIN that are
        named.
        """
        words = f" {', '.join(stages)}" if stages else ""
        rows = self._cursor().execute(f"EXPLAIN{words} {self.to_sql()}").fetchall()
        return "\n".join(str(row[0]) for row in rows)

    def to_sql(self) -> str:
        """Return the query as SQL text, which binds to the same plan."""
        self.to_plan()
        return "\n".join(self._sql)

    def to_plan(self) -> LogicalPlan:
        """Return the logical plan."""
        return self._relation.plan

    def insert_into(self, name: str) -> QueryCursor:
        """Insert the rows into a table, columns matched by position; only for tables of a connection."""
        return self._cursor().run_plan(
            self.to_sink(name), lambda: f"INSERT INTO {path_text(name)} {self.to_sql()}"
        )

    def to_sink(self, name: str) -> Sink:
        """Return the plan that writes the rows into a table."""
        self.to_plan()
        statement = Insert(Name(name), Query("", exp.Select()))
        try:
            return sink_for(statement, self._binder.catalog.table(name), self._relation)
        except PenstockError as error:
            # no statement was written whose position a span could be
            error.span = None
            raise

    def _cursor(self) -> QueryCursor:
        if self._new_cursor is None:
            raise PenstockError(
                "CLI-6030", "this table belongs to no connection", hint="open it with connection.table(name)"
            )
        return self._new_cursor()
