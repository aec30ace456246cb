"""The bounded backend on DuckDB: in this process, no Java."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlglot import exp

from penstock.catalog.errors import Kind, PenstockError, out_of_memory, over_session_memory
from penstock.catalog.python_functions import PythonScalar
from penstock.engine.api.operator import Services
from penstock.engine.bounded.backend import BoundedResult, Emit
from penstock.engine.bounded.connector_relations import own_batches, registered_table
from penstock.engine.bounded.error_translation import record_fault, value_fault
from penstock.engine.bounded.exact_types import ExactBatches
from penstock.engine.bounded.file_relations import (
    FileGroup,
    FileRelation,
    empty_select,
    file_relation,
    position_name,
    typed_select,
)
from penstock.engine.bounded.python_functions import register_on_duckdb
from penstock.engine.formats.record_blocks import MAX_RECORD_BYTES
from penstock.engine.storage.staged_rows import stage
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.sql_generator.dialect import function, text
from penstock.planner.sql_generator.duckdb.dialect import DuckDbFlavour, duckdb_sql
from penstock.planner.sql_generator.duckdb.macros import macros_of
from penstock.planner.sql_generator.query import BoundedQuery, ScannedTable

_BATCH_ROWS = 65_536
_GLOB = re.compile(r"[*?\[]")  # characters that DuckDB reads as a pattern, and has no escape for


class DuckDbBackend:
    """Runs each query on its own connection, in memory; larger state spills to the temporary directory."""

    name = "duckdb"

    def __init__(self, services: Services) -> None:
        self._services = services

    def run(
        self,
        plan: LogicalPlan,
        *,
        staging_dir: Path | None = None,
        time_zone: str = "UTC",
        memory_bytes: int = 0,
    ) -> BoundedResult:
        query = duckdb_sql(plan)
        connection = connect(time_zone)
        if memory_bytes:
            connection.execute("SET memory_limit = $1", [f"{memory_bytes}B"])
        shared = SharedConnection(connection)
        run = _DuckDbRun(connection, query, plan, self._services)

        def produce(emit: Emit) -> None:
            try:
                batches: Iterator[pa.RecordBatch] = run.batches()
                if staging_dir is not None:
                    # all rows become durable first, and are then read back in one fixed order
                    batches = stage(staging_dir, batches).batches()
                for batch in batches:
                    # the reader has closed the result
                    if not emit(batch):
                        return
            except PenstockError as error:
                if memory_bytes and error.code == "RUN-2024":
                    raise over_session_memory(memory_bytes) from error
                raise
            finally:
                shared.close()

        return BoundedResult(query.schema, produce, shared.interrupt, shared.progress)

    def explain(self, plan: LogicalPlan) -> str:
        return duckdb_sql(plan).text

    def close(self) -> None:
        """Nothing outlives a query."""


class SharedConnection:
    """A connection on which one thread runs a query and closes it. Others interrupt the query, which then
    raises InterruptException, and ask how far it is.

    DuckDB frees a connection that is closed, without Python's lock: no other call may be inside it then.
    """

    def __init__(self, connection: Any) -> None:
        self._connection: Any = connection
        self._lock = threading.Lock()

    def interrupt(self) -> None:
        """End the query, if it still runs."""
        with self._lock:
            if self._connection is not None:
                self._connection.interrupt()

    def progress(self) -> str | None:
        """Return the progress in a few words; None where DuckDB does not know it, or the query has ended."""
        with self._lock:
            return None if self._connection is None else progress_of(self._connection)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()


def connect(time_zone: str) -> Any:
    """Return a connection set up for exact and quiet work. BND-5011 when DuckDB is not installed."""
    try:
        import duckdb
    except ImportError as error:
        raise PenstockError(
            "BND-5011", "DuckDB is not installed", hint="pip install duckdb", kind=Kind.EXTERNAL
        ) from error
    # an extension that is installed may be loaded; none is downloaded in the middle of a query
    connection = duckdb.connect(
        ":memory:", config={"autoinstall_known_extensions": False, "autoload_known_extensions": True}
    )
    # DuckDB measures its progress only for a bar, which is not printed
    connection.execute("SET enable_progress_bar = true")
    connection.execute("SET enable_progress_bar_print = false")
    connection.execute("SET TimeZone = $1", [time_zone])
    connection.execute("SET threads = $1", [max(1, os.cpu_count() or 1)])
    leave_out_wrong_rewrites(connection)
    return connection


def create_macros(connection: Any, text: str, created: set[str]) -> None:
    """Create the functions with Spark's meaning that a statement calls, but for those in ``created``."""
    for macro in macros_of(text):
        if macro not in created:
            created.add(macro)
            connection.execute(macro)


def leave_out_wrong_rewrites(connection: Any) -> None:
    """Let a connection plan without the rewrites of DuckDB that change an answer."""
    # DuckDB 2.0 computes a subplan once that a query has twice. In an outer join of a table to itself it then
    # takes the key of the other side. Plans of ours share equal parts already.
    known = connection.execute(
        "SELECT count(*) FROM duckdb_optimizers() WHERE name = 'common_subplan'"
    ).fetchone()
    if known[0]:
        connection.execute("SET disabled_optimizers = 'common_subplan'")


def progress_of(connection: Any) -> str | None:
    """Return the progress of a connection's query in a few words; None where DuckDB does not know it."""
    import duckdb

    try:
        share = connection.query_progress()
    # the query has ended, and its connection is closed
    except duckdb.Error:
        return None
    return f"DuckDB: {share:.0f} % of the query" if share >= 0 else None


class _DuckDbRun:
    def __init__(self, connection: Any, query: BoundedQuery, plan: LogicalPlan, services: Services) -> None:
        self._connection = connection
        self._plan = plan
        # DuckDB wraps an error of a Python reader in its own text, so it is remembered here
        self._own_error: PenstockError | None = None
        self._query = query
        self._services = services
        self._exact = ExactBatches(query.schema)
        self._macros: set[str] = set()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Register the relations, run the query, yield exact batches."""
        import duckdb

        try:
            # the query's text names relation i as t_i
            for number, relation in enumerate(self._query.relations):
                self._register(f"t_{number}", relation)
            register_on_duckdb(
                self._connection,
                [one for one in self._query.python_functions if isinstance(one, PythonScalar)],
            )
            create_macros(self._connection, self._query.text, self._macros)
            reader = self._connection.sql(self._query.text).to_arrow_reader(_BATCH_ROWS)
            for batch in reader:
                if batch.num_rows:
                    yield self._exact.cast(batch)
        # interrupt() was called: the result was closed
        except duckdb.InterruptException as error:
            raise PenstockError(
                "BND-5006", "the bounded query was cancelled", kind=Kind.USER, sqlstate="57014"
            ) from error
        except (duckdb.Error, pa.ArrowInvalid, OSError) as error:
            raise self._translate(error) from error

    def _translate(self, error: Exception) -> PenstockError:
        """Return an error by its source: our own readers, a file, a value, or DuckDB."""
        translated = query_error(error)
        # 5012 is DuckDB's general error; any other code is already precise (out of memory)
        if self._own_error is not None or translated.code != "BND-5012":
            return self._own_error or translated
        # not the query's own text, which may hold the words of any fault
        words = str(error).partition("\nLINE ")[0]
        return (
            record_fault(self._query.relations, self._services)
            or value_fault(words, self._plan)
            or translated
        )

    def _own_batches(self, relation: ScannedTable) -> Iterator[pa.RecordBatch]:
        try:
            yield from own_batches(relation, self._services)
        except PenstockError as error:
            self._own_error = error
            raise

    def _register(self, name: str, relation: ScannedTable) -> None:
        files = file_relation(relation)
        # files that DuckDB reads itself, provided that no path looks like a pattern to it
        if not isinstance(files, str) and not any(
            _GLOB.search(path) for group in files.groups for path in group.paths
        ):
            self._register_files(name, files)
            return
        # an Arrow table in this process: DuckDB scans it without a copy
        table = registered_table(relation, self._services)
        if table is not None:
            self._connection.register(name, table)
            return
        # Rows of our own readers. They are stored once: a reader can be read only once, and a plan may scan a
        # relation twice.
        reader = pa.RecordBatchReader.from_batches(relation.schema.to_arrow(), self._own_batches(relation))
        self._connection.register(f"{name}_rows", reader)
        self._connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {name}_rows")
        self._connection.unregister(f"{name}_rows")

    def _register_files(self, name: str, files: FileRelation) -> None:
        flavour = DuckDbFlavour()
        selects = []
        # one view for each layout of files, so that DuckDB does not apply one file's types to another
        for number, group in enumerate(files.groups):
            self._connection.execute(
                f"CREATE TEMP VIEW {name}_{number} AS SELECT * FROM {_reading(files, group).sql('duckdb')}"
            )
            selects.append(typed_select(files, group, f"{name}_{number}", flavour))
        select = " UNION ALL ".join(selects) or empty_select(files.relation, flavour)
        create_macros(self._connection, select, self._macros)
        self._connection.execute(f"CREATE TEMP VIEW {name} AS {select}")


def _reading(files: FileRelation, group: FileGroup) -> exp.Expr:
    """The table function that reads a group's files: csv as text by position, parquet by name."""
    paths = exp.Array(expressions=[text(path) for path in group.paths])
    # columns are matched by name; a directory a=1 must add no column to them
    if files.format == "parquet":
        return function("read_parquet", paths, _option("hive_partitioning", exp.false()))
    dialect = files.dialect
    # an empty field is NULL, as is the declared null literal
    nulls = exp.Array(expressions=[text(null) for null in sorted({"", dialect.null_literal})])
    return function(
        "read_csv",
        paths,
        # all text: our own rules cast it, so that both backends refuse the same values
        _columns({position_name(position): "VARCHAR" for position in range(group.width)}),
        _option("auto_detect", exp.false()),
        _option("hive_partitioning", exp.false()),  # a directory a=1 says nothing of a column a in its files
        _option("header", exp.true() if dialect.header else exp.false()),
        _option("delim", text(dialect.delimiter)),
        _option("quote", text(dialect.quote)),
        _option("escape", text(dialect.quote)),
        _option("nullstr", nulls),
        # "" in quotes is an empty text, not NULL
        _option("allow_quoted_nulls", exp.false()),
        # with its own limits DuckDB has lost such lines in silence
        _option("max_line_size", exp.Literal.number(MAX_RECORD_BYTES)),
        _option("buffer_size", exp.Literal.number(2 * MAX_RECORD_BYTES)),
    )


def _option(name: str, value: exp.Expr) -> exp.Expr:
    return exp.EQ(this=exp.column(name), expression=value)


def _columns(kinds: dict[str, str]) -> exp.Expr:
    pairs = [exp.PropertyEQ(this=text(name), expression=text(kind)) for name, kind in kinds.items()]
    return _option("columns", exp.Struct(expressions=pairs))


def query_error(error: BaseException) -> PenstockError:
    """Return a DuckDB error as a PenstockError: data errors are the user's, all others are external."""
    # DuckDB's messages begin with their kind: ``Conversion Error: Could not convert ..``
    kind, _, message = str(error).split("\n")[0].partition(": ")
    if kind == "Out of Memory Error":
        return out_of_memory(MemoryError(message), "run the bounded query on DuckDB")
    data = kind in ("Conversion Error", "Out of Range Error", "Invalid Input Error")
    return PenstockError(
        "BND-5012",
        f"the bounded query failed on DuckDB: {message or kind}"[:400],
        detail=kind,
        kind=Kind.USER if data else Kind.EXTERNAL,
        retriable=kind in ("IO Error", "HTTP Error", "Connection Error") and "No files found" not in message,
        sqlstate="22000" if data else "58000",
    )
