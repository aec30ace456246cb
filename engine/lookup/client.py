"""The lookup client: sends keys to a database on threads with one connection each. Failed requests are
resent; missing keys can be asked for again.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from penstock.catalog.connectors.registry import is_in_database, lookup_option
from penstock.catalog.connectors.spark import is_in_spark
from penstock.catalog.errors import PenstockError, out_of_memory
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.clock import Clock
from penstock.engine.api.operator import Services
from penstock.engine.api.row_pieces import as_one
from penstock.engine.api.threads import EngineThread
from penstock.engine.connectors.database.connect import opened
from penstock.engine.connectors.database.database import Database, Select
from penstock.engine.connectors.database.scan import select_of
from penstock.engine.state.index.key_index import KeyIndex
from penstock.planner.expressions.nodes import Expression
from penstock.planner.logical.scan import Scan

# the first pause before a request is sent again; it doubles up to the maximum
_RETRY_MS = 100.0
_RETRY_MS_MAX = 5_000.0


@dataclass(frozen=True)
class LookupTable:
    """The looked-up table: columns, a filter on its rows, and the columns at ``keys`` that are matched."""

    table: CatalogTable
    columns: tuple[int, ...]
    predicate: Expression | None
    keys: tuple[int, ...]
    key_types: tuple[pa.DataType, ...]

    @property
    def schema(self) -> pa.Schema:
        """The schema of the looked-up rows."""
        return self.table.source_schema.select(self.columns).to_arrow()

    def keys_of(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the keys of looked-up rows, cast to the key types of the requests."""
        return [
            rows.column(position).cast(kind) for position, kind in zip(self.keys, self.key_types, strict=True)
        ]


class Answer:
    """The future result of a request: rows, and the index of each row's key. With ``keys`` None it requests
    all rows.
    """

    def __init__(self, keys: list[pa.Array] | None, asked_ms: float) -> None:
        # Milliseconds of the client's clock; the answer's duration includes pauses and retries.
        self.keys = keys
        self.asked_ms = asked_ms
        self.took_ms = 0.0
        self.retries = 0
        self.rows: pa.RecordBatch | None = None
        self.key_numbers = np.zeros(0, np.int64)
        self.error: PenstockError | None = None
        # Fields are written by the client's thread before this is set, and read only after.
        self._done = threading.Event()

    @property
    def done(self) -> bool:
        """Whether the result or the error has arrived."""
        return self._done.is_set()

    def finish(self) -> None:
        """Publish the result."""
        self._done.set()


class LookupClient:
    """The requests of one subtask. With ``threads`` 0 a request runs on the caller's thread."""

    def __init__(
        self,
        what: LookupTable,
        keep: Callable[[pa.RecordBatch], pa.Array] | None,
        clock: Clock,
        threads: int,
        services: Services | None = None,
    ) -> None:
        """``keep`` tests the whole predicate on the looked-up rows; ``services`` read tables that are not in
        a database.
        """
        self._services = services or Services()
        self._what, self._keep, self._clock = what, keep, clock
        # Attempts at one request, and further requests for keys without rows.
        self._attempts = int(lookup_option(what.table, "lookup.max-retries") or 0) + 1
        again = lookup_option(what.table, "lookup.retry-predicate") is not None
        self._again = int(lookup_option(what.table, "lookup.max-attempts") or 0) if again else 0
        self._again_ms = float(lookup_option(what.table, "lookup.fixed-delay") or 0)
        # Threads at most, and threads started.
        self._most, self._started = threads, 0
        self._requests: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        self._closed = threading.Event()
        # For requests on the caller's thread; it opens on use.
        self._own = self._connection()

    def ask(self, keys: list[pa.Array] | None) -> Answer:
        """Send a request for distinct keys without NULL, or for all rows."""
        answer = Answer(keys, self._clock.monotonic_ms())
        # synchronous: on the caller's thread and connection
        if not self._most:
            self._serve(answer, self._own)
            return answer
        self._requests.put(answer)
        # threads start on demand, one per request until all run
        if self._started < self._most:
            self._started += 1
            EngineThread(target=self._run, name=f"lookup {self._what.table.name}").start()
        return answer

    def close(self) -> None:
        """Accept no more requests; running ones end by themselves."""
        self._closed.set()
        # one end marker per thread, which wakes it if it waits for requests
        for _ in range(self._started):
            self._requests.put(None)
        self._own.close()

    def _connection(self) -> _Connection | _Reading:
        return (
            _Connection(self._what)
            if is_in_database(self._what.table)
            else _Reading(self._what, self._services)
        )

    def _run(self) -> None:
        connection = self._connection()
        try:
            # Requests that are still queued at the end are dropped: nobody reads their answers.
            while (answer := self._requests.get()) is not None and not self._closed.is_set():
                self._serve(answer, connection)
        finally:
            connection.close()

    def _serve(self, answer: Answer, connection: _Connection | _Reading) -> None:
        try:
            answer.rows, answer.key_numbers = self._matches(answer, connection)
        # An error belongs to the answer: it is raised where the rows are joined.
        except PenstockError as error:
            answer.error = error
        except MemoryError as error:
            answer.error = out_of_memory(error, f"hold the rows found in {self._what.table.name}")
        except BaseException as error:  # noqa: BLE001  raised where the answer is taken, with its cause
            message = f"looking up {self._what.table.name} failed: {type(error).__name__}: {error}"[:300]
            answer.error = PenstockError(
                "RUN-2900", message, retriable=isinstance(error, OSError), sqlstate="58000"
            )
            answer.error.__cause__ = error
        # Even after an error: a waiting row must not wait for ever.
        answer.took_ms = self._clock.monotonic_ms() - answer.asked_ms
        answer.finish()

    def _matches(
        self, answer: Answer, connection: _Connection | _Reading
    ) -> tuple[pa.RecordBatch, np.ndarray]:
        if answer.keys is None:
            rows = self._sent(None, answer, connection)
            return rows, np.zeros(rows.num_rows, np.int64)
        # Numbers the keys 0, 1, ...: the index of each row's key is its slot.
        index = KeyIndex(self._what.key_types)
        index.lookup_or_insert(answer.keys)
        rows, key_numbers = self._of(index, self._sent(answer.keys, answer, connection))
        # ask again for the keys without rows ('lookup.retry-predicate')
        for _ in range(self._again):
            # Keys that no row has named so far.
            missing = np.setdiff1d(np.arange(len(index)), key_numbers)
            if not missing.size or self._closed.wait(self._again_ms / 1000):
                break
            answer.retries += 1
            more, at = self._of(index, self._sent(index.keys(missing), answer, connection))
            rows, key_numbers = as_one([rows, more], rows.schema), np.concatenate([key_numbers, at])
        return rows, key_numbers

    def _of(self, index: KeyIndex, rows: pa.RecordBatch) -> tuple[pa.RecordBatch, np.ndarray]:
        """Return rows with the index of the key each matches. Others are dropped: a database may treat
        different keys as equal.
        """
        # Compared as our keys are: text with other case or trailing blanks is another key.
        key_numbers = index.lookup(self._what.keys_of(rows)) if rows.num_rows else np.zeros(0, np.int64)
        met = key_numbers >= 0
        return (rows, key_numbers) if met.all() else (rows.filter(pa.array(met)), key_numbers[met])

    def _sent(
        self, keys: list[pa.Array] | None, answer: Answer, connection: _Connection | _Reading
    ) -> pa.RecordBatch:
        for attempt in range(1, self._attempts + 1):
            try:
                rows = connection.look_up(keys)
                # The database may evaluate only a part of the predicate.
                return rows if self._keep is None else rows.filter(self._keep(rows))
            except PenstockError as error:
                # The next attempt opens a new connection: this one may be broken.
                connection.close()
                # exponential backoff; closing the client ends the pause
                pause_ms = min(_RETRY_MS * 2.0 ** (attempt - 1), _RETRY_MS_MAX)
                if not error.retriable or attempt == self._attempts or self._closed.wait(pause_ms / 1000):
                    raise
                answer.retries += 1
        raise AssertionError("a request is sent once at least")


class _Reading:
    """Reads a table of files or of Spark; each request reads all of it."""

    def __init__(self, what: LookupTable, services: Services) -> None:
        self._what, self._services = what, services

    def look_up(self, keys: list[pa.Array] | None) -> pa.RecordBatch:
        """Return all rows under their declared names."""
        assert keys is None, "a table that is read whole is asked for no key"
        what, schema = self._what, self._what.schema
        batches = [
            pa.RecordBatch.from_arrays(batch.columns, schema=schema)
            for batch in self._batches()
            if batch.num_rows
        ]
        return as_one(batches, what.schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        # readers of files, backends: where such a table is looked up
        from penstock.engine.bounded.connector_relations import whole_table
        from penstock.engine.bounded.registry import BoundedBackends
        from penstock.planner.sql_generator.query import ScannedTable

        what = self._what
        if is_in_spark(what.table):
            plan = Scan(what.table, what.columns)
            return self._services.get(BoundedBackends).for_plan(plan).run(plan)  # type: ignore[no-any-return]  # a service
        return iter(whole_table(ScannedTable(what.table, what.columns), self._services))

    def close(self) -> None:
        """Nothing: no connection is open between two reads."""


class _Connection:
    """A connection that is opened on use, and again after it was closed."""

    def __init__(self, what: LookupTable) -> None:
        self._what = what
        self._made: tuple[Database, Select] | None = None

    def look_up(self, keys: list[pa.Array] | None) -> pa.RecordBatch:
        """Return the rows of keys, or all rows, under their declared names."""
        # Opened by the thread that uses it.
        if self._made is None:
            made = opened(self._what.table)
            self._made = made, select_of(self._what.table, self._what.columns, self._what.predicate, made)
        database, select = self._made
        schema = self._what.schema
        if keys is None:
            batches = [
                pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in database.rows(select)
            ]
            return as_one(batches, schema)
        # The database sees the keys under its own names of the columns.
        named = pa.RecordBatch.from_arrays(
            keys, names=[select.fields[position].name for position in self._what.keys]
        )
        return pa.RecordBatch.from_arrays(database.look_up(select, named).columns, schema=schema)

    def close(self) -> None:
        """Close the connection."""
        if self._made is not None:
            self._made[0].close()
            self._made = None
