"""Spark in a Java virtual machine of our own, which ends with this process."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.engine.bounded.spark.application import stages_text
from penstock.engine.bounded.spark.errors import machine_gone, spark_failures, start_refused
from penstock.engine.bounded.spark.jvm_launcher import SparkJvm, launch


class OwnSpark:
    """A :class:`~penstock.engine.bounded.spark.application.SparkApplication` through the classic Py4J
    gateway.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Start it. BND-5001, 5002, 5007 or 5025 on failure; a virtual machine that cannot open a session is
        closed.
        """
        # PySpark is imported while Java starts
        self.jvm: SparkJvm = launch(settings, _import_pyspark)
        from pyspark.sql import SparkSession

        try:
            with _gateway_named(self.jvm):
                self._first: Any = SparkSession.builder.getOrCreate()
        except spark_failures() as error:
            refused = start_refused(error)  # while the machine can still be asked
            self.close()
            raise refused from None
        # Ctrl-C during the start must not leave a Java behind
        except BaseException:
            self.close()
            raise

    @property
    def alive(self) -> bool:
        return self.jvm.alive

    def gone(self) -> PenstockError | None:
        return None if self.jvm.alive else machine_gone(self.jvm.last_words())

    def busy(self) -> bool:
        return bool(self._first.sparkContext.statusTracker().getActiveStageIds())

    def abandon(self) -> None:
        self.jvm.kill()

    def session(self) -> Any:
        return self._first.newSession()

    def release(self, session: Any) -> None:
        """Nothing: an unreferenced session is garbage-collected."""

    def tag(self, session: Any, tag: str) -> None:
        """Tag the jobs, because only this thread could cancel a session's own tags."""
        # a context's tag, which any thread may cancel
        session.sparkContext.addJobTag(tag)

    def cancel(self, session: Any, tag: str) -> None:
        if self.alive:
            with contextlib.suppress(*spark_failures()):  # it has just ended, and with it what it ran
                session.sparkContext.cancelJobsWithTag(tag)

    def progress(self, session: Any) -> str | None:
        """Return the progress of the running stages, including those of this process's other queries."""
        if not self.alive:
            return None
        try:
            tracker = session.sparkContext.statusTracker()
            stages = [
                stage for stage in map(tracker.getStageInfo, tracker.getActiveStageIds()) if stage is not None
            ]
        except spark_failures():
            return None  # the query itself raises the error
        return stages_text({stage.stageId: (stage.numCompletedTasks, stage.numTasks) for stage in stages})

    def estimate_bytes(self, session: Any, frame: Any, text: str) -> int | None:
        # a Scala BigInt, which Py4J passes as an object
        return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    def reached_at(self, session: Any) -> str:
        return session.conf.get("spark.driver.host", "127.0.0.1")

    def last_words(self) -> str:
        return self.jvm.last_words()

    def close(self) -> None:
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        _hush(SparkContext._active_spark_context)
        # PySpark has no call that forgets a dead gateway; a new start would use these again
        gateway = SparkContext._gateway
        if gateway is not None:
            gateway.shutdown_callback_server(raise_exception=False)
            gateway.close()
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        self.jvm.close()


def _import_pyspark() -> None:
    """Import PySpark, which takes about as long as Java needs to listen."""
    import pyspark.sql  # noqa: F401


@contextlib.contextmanager
def _gateway_named(jvm: SparkJvm) -> Iterator[None]:
    """Export the gateway's address while PySpark reads it. A program we start later would otherwise treat it
    as its own ``spark-submit``.
    """
    named = {"PYSPARK_GATEWAY_PORT": str(jvm.port), "PYSPARK_GATEWAY_SECRET": jvm.secret}
    os.environ.update(named)
    try:
        yield
    finally:
        for key in named:
            os.environ.pop(key, None)


def _hush(context: Any) -> None:
    """Keep PySpark's accumulator server from printing a traceback when its virtual machine ends."""
    # a private attribute: without it there is nothing to silence
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.server_shutdown = True
        server.handle_error = lambda request, address: None
