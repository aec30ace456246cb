"""The bounded backend on Spark SQL. Each query has its own session, and Spark's tasks push its rows to us."""

from __future__ import annotations

import itertools
import re
import secrets
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.settings import Settings
from penstock.engine.api.operator import Services
from penstock.engine.api.slow_steps import SLOW_STEPS
from penstock.engine.bounded.backend import BoundedResult, Emit
from penstock.engine.bounded.error_translation import record_fault, value_fault
from penstock.engine.bounded.exact_types import ExactBatches, check_texts
from penstock.engine.bounded.python_functions import register_on_spark
from penstock.engine.bounded.spark.application import SparkApplication
from penstock.engine.bounded.spark.errors import for_spark_alone, spark_error, spark_failures
from penstock.engine.bounded.spark.relations import SparkRelations, reading_of
from penstock.engine.bounded.spark.sessions import NEWS, SESSIONS
from penstock.engine.bounded.spark.tables import insert_text, settings_of
from penstock.engine.bounded.spark.watchdog import SparkWatch, WatchedCall
from penstock.engine.bounded.spark_results.listener import RowListener
from penstock.engine.bounded.spark_results.push_task import TASK_SCHEMA, pushing_task
from penstock.engine.bounded.spark_results.result_rows import LISTENERS, PushedRows
from penstock.engine.bounded.spark_results.served_rows import ServedRows
from penstock.engine.storage.staged_rows import stage
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.sink import Sink
from penstock.planner.sql_generator.query import BoundedQuery
from penstock.planner.sql_generator.spark.dialect import spark_sql
from penstock.planner.sql_generator.support import spark_tables

# rows up to this estimate come through the driver: they need no listener and no Python worker
_SMALL_BYTES = 2 << 20
_WRITE_IDLE_S = 900.0  # files of a table may be renamed for long when all tasks have ended
_NUMBERS = itertools.count(1)
_PROCESS = secrets.token_hex(4)  # a Spark that is kept alive has several processes


class SparkBackend:
    """Runs queries on the process's Spark application, started with the first one."""

    name = "spark"

    def __init__(self, services: Services, settings: Settings) -> None:
        """Each query reads ``settings`` again: the address for rows and, when Spark is started, its
        keep-alive time.
        """
        self._services = services
        self._settings = settings

    def run(
        self,
        plan: LogicalPlan,
        *,
        staging_dir: Path | None = None,
        time_zone: str = "UTC",
        memory_bytes: int = 0,
    ) -> BoundedResult:
        run = self._run(spark_sql(plan), plan, staging_dir, time_zone)
        return BoundedResult(plan.schema, run.produce, run.cancel, run.progress)

    def explain(self, plan: LogicalPlan) -> str:
        """Return the query text and the reader of each relation. Where tables of Spark are read, add Spark's
        plan, which shows the pushed filters.
        """
        # for EXPLAIN; Spark itself is asked only where its answer depends on its own tables
        query = spark_sql(plan)
        # one comment line a relation: who reads it, and why it is not Spark
        readers = [
            f"-- t_{number}, {one.table.name}: {reading_of(one)}"
            for number, one in enumerate(query.relations)
        ]
        if not spark_tables(plan):
            return "\n".join([query.text, *readers])
        sink = plan.table if isinstance(plan, Sink) else None
        text = query.text if sink is None else insert_text(sink, query.text, query.schema)
        described = "\n".join([text, *readers])
        return f"{described}\n-- Spark's plan:\n{self._run(query, plan, None, 'UTC').explained()}"

    def _run(
        self, query: BoundedQuery, plan: LogicalPlan, staging_dir: Path | None, time_zone: str
    ) -> _SparkRun:
        # one application for the whole process: the session whose query starts it decides its settings
        SESSIONS.keep_alive_ms, SESSIONS.settings = (
            int(self._settings.get("spark.keep-alive")),
            self._settings.of_spark(),
        )
        return _SparkRun(
            query, plan, self._services, staging_dir, time_zone, ResultsAddress.of(self._settings)
        )

    def warm(self) -> None:
        """Start Spark in the background, for a session that will need it soon. The first query reports a
        failure.
        """
        SESSIONS.keep_alive_ms, SESSIONS.settings = (
            int(self._settings.get("spark.keep-alive")),
            self._settings.of_spark(),
        )
        # a daemon thread: a program that ends meanwhile does not wait for Spark
        threading.Thread(target=_warm, name="penstock-spark-warm", daemon=True).start()

    def close(self) -> None:
        """Nothing: the virtual machine is shared by the whole process and ends with it."""


def _warm() -> None:
    try:
        session = SESSIONS.new("UTC")
        SESSIONS.watch().call("warm up", lambda: warm_up(session))
        SESSIONS.release(session)
    except PenstockError:
        return  # the query that needs Spark meets the same error and tells it
    except spark_failures():
        return


def warm_up(session: Any) -> None:
    """Run a query and start a Python worker in Spark, because large results come through Python workers."""
    session.range(1).mapInArrow(lambda batches: batches, "id BIGINT").toArrow()


@dataclass(frozen=True)
class ResultsAddress:
    """The address for pushed rows: where we listen, and the host that tasks connect to (empty: Spark
    determines it).
    """

    bind: str
    host: str
    port: int

    @classmethod
    def of(cls, settings: Settings) -> ResultsAddress:
        """Return the address in the settings of a session."""
        return cls(
            str(settings.get("spark.results.bind")),
            str(settings.get("spark.results.host")),
            int(settings.get("spark.results.port")),
        )

    def bound_for(self, reached_at: str) -> str:
        """The address to listen at: the configured one, else the loopback address if Spark runs on this
        machine, else all interfaces.
        """
        return self.bind or ("127.0.0.1" if reached_at in ("127.0.0.1", "localhost") else "0.0.0.0")


class _SparkRun:
    """One query: its session, its tag, its rows."""

    def __init__(
        self,
        query: BoundedQuery,
        plan: LogicalPlan,
        services: Services,
        staging_dir: Path | None,
        time_zone: str,
        results: ResultsAddress,
    ) -> None:
        self._query = query
        self._plan = plan
        self._services = services
        self._staging_dir = staging_dir
        self._time_zone = time_zone
        self._results = results
        self._exact = ExactBatches(query.schema)
        # unique among all processes of one Spark: cancel must hit this query only
        self._tag = f"penstock-{_PROCESS}-{next(_NUMBERS)}"
        self._session: Any = None
        self._application: SparkApplication | None = None
        self._served: ServedRows | None = None
        self._cancelled = threading.Event()

    def produce(self, emit: Emit) -> None:
        """Run the query in this thread and emit its rows."""
        with self._scratch() as scratch:
            # opening may start Spark, which takes seconds: a query cancelled meanwhile must not begin
            self._open(settings_of(spark_tables(self._plan)))
            if self._cancelled.is_set():
                return
            # INSERT INTO a table of Spark: no rows come back
            if isinstance(self._plan, Sink) and self._plan.table is not None:
                self._watch = SESSIONS.watch(_WRITE_IDLE_S)
                self._watch.call("write a table", lambda: self._write(scratch))
                return
            # SELECT: the rows of a small result are here already, others are pushed by tasks
            rows, began_ms = 0, SLOW_STEPS.now_ms()
            frame, small = self._watch.call("plan a query", lambda: self._prepared(scratch))
            batches = map(self._exact.cast, self._pushed(frame, scratch) if small is None else small)
            for batch in (
                batches if self._staging_dir is None else stage(self._staging_dir, batches).batches()
            ):
                # again, because staged rows were read back from disk
                exact = self._exact.cast(batch)
                check_texts(exact)
                rows += exact.num_rows
                if not emit(exact):
                    return
            NEWS.debug("%s", self._figures(rows, (SLOW_STEPS.now_ms() - began_ms) / 1000))

    def _figures(self, rows: int, seconds: float) -> str:
        """Return a sentence about a query whose rows have all been read, for ``run --verbose``."""
        names = ", ".join(dict.fromkeys(one.table.name for one in self._query.relations))
        return f"Spark computed {rows:,} row{'' if rows == 1 else 's'} from {names} in {seconds:.1f} s"

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        """A scratch directory for the query; errors inside are raised as PenstockErrors."""
        scratch = Path(tempfile.mkdtemp(prefix="penstock-rows-"))
        try:
            yield scratch
        # translated while session and application still exist: Spark is asked for its log
        except spark_failures() as error:
            raise self._advised(self._translate(error)) from error
        except PenstockError as error:
            raise self._advised(error) from error.__cause__
        finally:
            # tasks may fetch rows until here; then the listener refuses them and their files are removed
            if self._served is not None:
                self._served.close()
            shutil.rmtree(scratch, ignore_errors=True)
            if self._session is not None and self._application is not None:
                self._application.release(self._session)

    def _advised(self, error: PenstockError) -> PenstockError:
        """Remove the advice to use DuckDB from an error, where tables of Spark are read."""
        return for_spark_alone(error) if spark_tables(self._plan) else error

    def _translate(self, error: BaseException) -> PenstockError:
        """Return an error by its source: the virtual machine, a file, a value, or Spark."""
        # a dead virtual machine explains every other error
        gone = None if self._application is None else self._application.gone()
        translated = gone or spark_error(error, self._application.last_words() if self._application else "")
        # 5003 is the general error of a query; any other code is already precise
        if translated.code != "BND-5003":
            return translated
        # first our own readers on the same files, then the expressions that can raise such an error
        return (
            record_fault(self._query.relations, self._services)
            or value_fault(str(error), self._plan)
            or translated
        )

    def _open(self, settings: Mapping[str, str]) -> None:
        self._session = SESSIONS.new(self._time_zone, settings)
        self._application, self._watch = SESSIONS.application, SESSIONS.watch()

    def _write(self, scratch: Path) -> None:
        assert isinstance(self._plan, Sink) and self._plan.table is not None
        self._begin(scratch)
        self._session.sql(insert_text(self._plan.table, self._query.text, self._query.schema)).collect()

    def _prepared(self, scratch: Path) -> tuple[Any, list[pa.RecordBatch] | None]:
        """Return the query as a DataFrame, and its rows where Spark estimates a small result. Those come
        through the driver, without a Python worker.
        """
        assert self._application is not None
        self._begin(scratch)
        frame = self._session.sql(self._query.text)
        # None: unknown. Then the rows are pushed, which is right for any size.
        size = self._application.estimate_bytes(self._session, frame, self._query.text)
        if size is None or size > _SMALL_BYTES:
            return frame, None
        return frame, [batch for batch in frame.toArrow().combine_chunks().to_batches() if batch.num_rows]

    def _begin(self, scratch: Path) -> None:
        """Tag this thread's jobs, and register the query's relations and functions."""
        assert self._application is not None
        # tags belong to a thread, so each thread that runs jobs sets them again
        self._application.tag(self._session, self._tag)
        self._served = ServedRows(self._listener, self._reached_at, scratch)
        # watch.rest: reading rows here is no idleness of Spark's
        relations = SparkRelations(self._session, self._services, self._served, self._watch.rest)
        for number, relation in enumerate(self._query.relations):
            relations.register(f"t_{number}", relation)
        register_on_spark(self._session, self._query.python_functions)

    def explained(self) -> str:
        """Return the plan Spark would run."""
        with self._scratch() as scratch:
            # Spark shortens lists of paths and filters to 100 characters by default
            self._open({"spark.sql.maxMetadataStringLength": "2000", **settings_of(spark_tables(self._plan))})
            return self._watch.call("explain a query", lambda: self._explained(scratch))

    def _explained(self, scratch: Path) -> str:
        self._begin(scratch)
        (row,) = self._session.sql(f"EXPLAIN {self._query.text}").collect()
        return _without_numbers(row[0])

    def _pushed(self, frame: Any, scratch: Path) -> Iterator[pa.RecordBatch]:
        """Yield the rows that Spark's tasks push."""
        listener = self._listener()
        # A staged result emits whole partitions, so that Spark may run a failed task again.
        rows = PushedRows(listener, scratch, whole_partitions=self._staging_dir is not None)
        task = pushing_task(self._reached_at(), listener.port, rows.token)
        # the job runs in a thread of its own, while this one reads what its tasks send
        call = WatchedCall("push rows", lambda: self._push(frame, task))
        watch = SESSIONS.watch()
        try:
            yield from rows.batches(lambda: self._job(call, watch, rows), watch.rest)
        finally:
            rows.close()
            # the reader has stopped early: the job would push rows to nobody
            if not call.done.is_set():
                self.cancel()

    def _reached_at(self) -> str:
        """Return the address at which tasks reach this process."""
        assert self._application is not None
        return self._results.host or self._application.reached_at(self._session)

    def _listener(self) -> RowListener:
        return LISTENERS.at(self._results.bound_for(self._reached_at()), self._results.port)

    def _push(self, frame: Any, task: Callable[..., Any]) -> dict[int, int]:
        """Run the job; return the number of rows each partition has pushed."""
        assert self._application is not None
        self._application.tag(self._session, self._tag)
        return {row["partition"]: row["pushed"] for row in frame.mapInArrow(task, TASK_SCHEMA).collect()}

    def _job(self, call: WatchedCall, watch: SparkWatch, rows: PushedRows) -> Mapping[int, int] | None:
        """Return the rows of each partition once the job has ended, ``None`` while it runs. Raises the job's
        error.
        """
        # the counts say how many rows to expect of each partition; a mismatch is found there
        if call.done.is_set():
            return call.result()
        if self._cancelled.is_set():
            # cancelled: no partition has to be complete
            rows.close()
            return {}
        watch.look("push rows")
        return None

    def progress(self) -> str | None:
        """Return Spark's progress in a few words; None while it is being started, which is logged."""
        session, application = self._session, self._application
        return None if session is None or application is None else application.progress(session)

    def cancel(self) -> None:
        """Stop the query's Spark jobs."""
        self._cancelled.set()
        if self._session is not None and self._application is not None:
            self._application.cancel(self._session, self._tag)


def _without_numbers(plan: str) -> str:
    """Remove the column ids from Spark's plan, because they differ on every run."""
    lines = [line for line in plan.strip().split("\n") if not line.startswith("== ")]
    return re.sub(r"#\d+L?", "", "\n".join(lines)).strip()
