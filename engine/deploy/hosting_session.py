"""The Spark session that hosts workers: Spark is started with the first one, our packages are shipped once, jobs are tagged to be cancelled."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from catalog.errors import Kind, PenstockError
from engine.bounded.spark_errors import spark_failures
from engine.bounded.spark_place import SparkPlace
from engine.bounded.spark_session import SESSIONS
from engine.deploy.shipped_code import shipped

HOSTING = {
    "spark.speculation": "false",
    "spark.python.task.killTimeout": "1s",
    "spark.executor.defaultJavaOptions": "-XX:+IgnoreUnrecognizedVMOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData",
}
"""What Spark is started with for hosting, unless the user has said otherwise: executors do little themselves and shall be up soon."""


class HostingSession:
    """One session for all workers of a pool, made anew when Spark has died. May be used from any thread."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)
        self._lock = threading.Lock()
        self._session: Any = None
        self._place: SparkPlace | None = None
        self._code = shipped()
        self.code_name = self._code.name

    def begin(self, tag: str) -> Any:
        """Return the session; what this thread runs in it has the tag. BND-50xx when there is no Spark, RUN-2923 when Spark speculates."""
        with self._lock:
            if self._place is None or self._place is not SESSIONS.place or not self._place.alive:
                self._start()
            assert self._place is not None
            self._place.tag(self._session, tag)
            return self._session

    def cancel(self, tag: str) -> None:
        """Cancel the jobs with a tag; without a Spark there are none."""
        place, session = self._place, self._session
        if place is not None and place.alive:
            try:
                place.cancel(session, tag)
            except spark_failures():
                return  # Spark ends just now, and its jobs with it

    def profile(self, cores: int) -> Any:
        """Return the resource profile of a task that takes so many cores; ``None`` where each takes what any task of this Spark takes."""
        from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

        master = str(self._session.conf.get("spark.master", ""))
        if cores == int(self._session.conf.get("spark.task.cpus", "1")) or master.startswith("local["):
            return None
        return ResourceProfileBuilder().require(TaskResourceRequests().cpus(cores)).build

    def _start(self) -> None:
        session = SESSIONS.new("UTC", self._settings, at_start=HOSTING)
        if str(session.conf.get("spark.speculation", "false")).lower() == "true":
            hint = "SET 'spark.speculation' = 'false' before Spark is started, or in spark-defaults.conf"
            message = "Spark speculates: it would start a worker that takes long a second time, and a worker takes as long as its job"
            raise PenstockError("RUN-2923", message, hint=hint, kind=Kind.USER, sqlstate="55000")
        if "connect" in type(session).__module__:
            session.addArtifacts(str(self._code), pyfile=True)
        else:
            session.sparkContext.addPyFile(str(self._code))
        self._session, self._place = session, SESSIONS.place
