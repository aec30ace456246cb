"""The bounded backend on Spark SQL: a session of its own for each query, its rows staged by Spark's tasks."""

from __future__ import annotations

import itertools
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from catalog.errors import PenstockError
from engine.bounded.backend import BoundedResult, Emit
from engine.bounded.exact import ExactBatches
from engine.bounded.python_functions import register_on_spark
from engine.bounded.spark_errors import spark_error, spark_failures
from engine.bounded.spark_relations import SparkRelations
from engine.bounded.spark_results import StagingJob
from engine.bounded.spark_session import SESSIONS
from engine.bounded.spark_tables import insert_text, settings_of
from engine.bounded.staging import complete, stage
from engine.bounded.value_faults import record_fault, value_fault
from engine.operator import Services
from planner.backend_words import spark_tables
from planner.bounded_query import BoundedQuery
from planner.logical import LogicalPlan, Sink
from planner.spark_sql import spark_sql

_SMALL_BYTES = 2 << 20
_TAGS = itertools.count(1)


class SparkBackend:
    """Runs queries on the process's Spark application, started with the first one."""

    name = "spark"

    def __init__(self, services: Services) -> None:
        self._services = services

    def run(self, plan: LogicalPlan, *, staging_dir: Path | None = None, time_zone: str = "UTC") -> BoundedResult:
        run = _SparkRun(spark_sql(plan), plan, self._services, staging_dir, time_zone)
        return BoundedResult(plan.schema, run.produce, run.cancel, run.progress)

    def explain(self, plan: LogicalPlan) -> str:
        """Return the text, and where tables of Spark are read what Spark makes of it: which filters, columns and aggregates it pushes to them."""
        query = spark_sql(plan)
        if not spark_tables(plan):
            return query.text
        sink = plan.table if isinstance(plan, Sink) else None
        text = query.text if sink is None else insert_text(sink, query.text, query.schema)
        return f"{text}\n-- Spark's plan:\n{_SparkRun(query, plan, self._services, None, 'UTC').explained()}"

    def warm(self) -> None:
        """Start Spark in the background, for a session that will need it soon; a failure shows when a query needs it."""
        threading.Thread(target=_warm, name="penstock-spark-warm", daemon=True).start()

    def close(self) -> None:
        """Nothing: the virtual machine is shared by the whole process and ends with it."""


def _warm() -> None:
    try:
        SESSIONS.new("UTC").sql("SELECT 1").toArrow()
    except PenstockError:
        return  # the query that needs Spark meets the same error and tells it


class _SparkRun:
    """One query: its session, its tag, its files."""

    def __init__(self, query: BoundedQuery, plan: LogicalPlan, services: Services, staging_dir: Path | None, time_zone: str) -> None:
        self._query = query
        self._plan = plan
        self._services = services
        self._staging_dir = staging_dir
        self._time_zone = time_zone
        self._exact = ExactBatches(query.schema)
        self._tag = f"penstock-{next(_TAGS)}"
        self._session: Any = None
        self._cancelled = threading.Event()

    def produce(self, emit: Emit) -> None:
        """Run the query in this thread and emit its rows."""
        scratch = Path(tempfile.mkdtemp(prefix="penstock-rows-"))
        try:
            self._produce(emit, scratch)
        except spark_failures() as error:
            raise self._told(error) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _told(self, error: BaseException) -> PenstockError:
        """Say what went wrong: with the machine, in a file, in a value, or elsewhere."""
        told = spark_error(error, SESSIONS.jvm.last_words() if SESSIONS.jvm else "")
        if told.code != "BND-5003":
            return told
        return record_fault(self._query.relations, self._services) or value_fault(str(error), self._plan) or told

    def _produce(self, emit: Emit, scratch: Path) -> None:
        self._session = SESSIONS.new(self._time_zone, settings_of(spark_tables(self._plan)))
        if self._cancelled.is_set():
            return
        self._begin()
        with self._relations(scratch):
            if self._cancelled.is_set():
                return
            if isinstance(self._plan, Sink) and self._plan.table is not None:
                self._session.sql(insert_text(self._plan.table, self._query.text, self._query.schema)).collect()
                return
            frame = self._session.sql(self._query.text)
            batches = self._small(frame) if _is_small(frame) else None
            for batch in self._staged(frame, scratch, batches) if self._staging_dir else self._streamed(frame, scratch, batches):
                if not emit(batch):
                    return

    def _relations(self, scratch: Path) -> SparkRelations:
        relations = SparkRelations(self._session, self._services, scratch)
        for number, relation in enumerate(self._query.relations):
            relations.register(f"t_{number}", relation)
        register_on_spark(self._session, self._query.python_functions)
        return relations

    def explained(self) -> str:
        """Return the plan Spark would run."""
        scratch = Path(tempfile.mkdtemp(prefix="penstock-rows-"))
        self._session = SESSIONS.new(self._time_zone, {"spark.sql.maxMetadataStringLength": "2000", **settings_of(spark_tables(self._plan))})
        try:
            with self._relations(scratch):
                (row,) = self._session.sql(f"EXPLAIN {self._query.text}").collect()
                return _without_numbers(row[0])
        except spark_failures() as error:
            raise self._told(error) from error
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _small(self, frame: Any) -> Iterator[pa.RecordBatch]:
        """A result known to be small comes through the driver: no Python worker is started for it."""
        return (self._exact.cast(batch) for batch in frame.toArrow().combine_chunks().to_batches() if batch.num_rows)

    def _streamed(self, frame: Any, scratch: Path, small: Iterator[pa.RecordBatch] | None) -> Iterator[pa.RecordBatch]:
        if small is not None:
            yield from small
            return
        rows = scratch / "rows"
        rows.mkdir()
        job = StagingJob(frame, rows, False, self._begin, self._is_stuck)
        for batch in job.batches(lambda: not self._cancelled.is_set()):
            yield self._exact.cast(batch)

    def _staged(self, frame: Any, scratch: Path, small: Iterator[pa.RecordBatch] | None) -> Iterator[pa.RecordBatch]:
        assert self._staging_dir is not None
        if small is not None:
            yield from stage(self._staging_dir, small).batches()
            return
        self._staging_dir.mkdir(parents=True, exist_ok=True)
        names = StagingJob(frame, self._staging_dir, True, self._begin, self._is_stuck).wait()
        for batch in complete(self._staging_dir, names).batches():
            yield self._exact.cast(batch)

    def _begin(self) -> None:
        """Tag the jobs of this thread, and of the threads they are run by. A session's own tags could be cancelled by this thread only."""
        if SESSIONS.jvm is None:
            self._session.addTag(self._tag)
        else:
            self._session.sparkContext.addJobTag(self._tag)

    def _is_stuck(self) -> bool:
        if SESSIONS.jvm is None:  # a server of Spark Connect tells nobody what it runs
            return False
        tracker = self._session.sparkContext.statusTracker()
        return not tracker.getActiveStageIds()

    def progress(self) -> str | None:
        """Return how far the stages of Spark are that run now, those of other queries of this process included."""
        if self._session is None:
            return "Spark starts"
        if SESSIONS.jvm is None or not SESSIONS.jvm.alive:
            return None
        try:
            tracker = self._session.sparkContext.statusTracker()
            stages = [stage for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()) if stage is not None]
        except spark_failures():
            return None  # what is wrong is told by the query itself
        if not stages:
            return "Spark plans"
        done, tasks = sum(stage.numCompletedTasks for stage in stages), sum(stage.numTasks for stage in stages)
        return f"Spark: {done} of {tasks} tasks of stage {', '.join(str(stage.stageId) for stage in stages)}"

    def cancel(self) -> None:
        """Stop the query's Spark jobs."""
        self._cancelled.set()
        if self._session is None:
            return
        if SESSIONS.jvm is None:
            self._session.interruptTag(self._tag)
        elif SESSIONS.jvm.alive:
            self._session.sparkContext.cancelJobsWithTag(self._tag)


def _without_numbers(plan: str) -> str:
    """Spark's plan without the numbers it gives columns, which are others each time."""
    lines = [line for line in plan.strip().split("\n") if not line.startswith("== ")]
    return re.sub(r"#\d+L?", "", "\n".join(lines)).strip()


def _is_small(frame: Any) -> bool:
    """Whether Spark's own estimate, which multiplies the sides of joins, says that the result fits through the driver with ease."""
    if not hasattr(frame, "_jdf"):
        return False
    return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())) <= _SMALL_BYTES
