"""The Spark session that hosts workers. It starts Spark for the first worker, ships our packages once, and
tags jobs so that they can be cancelled.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.bounded.spark.application import SparkApplication
from penstock.engine.bounded.spark.class_data_archive import executors_options
from penstock.engine.bounded.spark.errors import spark_failures
from penstock.engine.bounded.spark.java_runtime import find_java
from penstock.engine.bounded.spark.jvm_launcher import spark_home
from penstock.engine.bounded.spark.sessions import SESSIONS
from penstock.engine.deploy.spark import penstock_daemon
from penstock.engine.deploy.spark.code_archive import ROOT, shipped

# no second copy of a worker that takes long; a cancelled task's Python worker ends soon
_HOSTING = {"spark.speculation": "false", "spark.python.task.killTimeout": "100ms"}
_OPTIONS = "spark.executor.defaultJavaOptions"
_JAVA = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
)
"""Executors do little work themselves and must start fast."""
# Spark's default of spark.task.maxFailures
_ATTEMPTS = 4
# local, local[4], local[4, 3]: the number after the comma is that of attempts
_LOCAL = re.compile(r"local(?:\[[^,]*(?:,\s*(\d+))?\])?")
_DAEMON = "spark.python.daemon.module"
_FILES = "spark.files"


def hosting_additions(settings: Mapping[str, str]) -> Mapping[str, str]:
    """Return the settings that a hosting Spark is started with in addition to ``settings``. Executors of a
    cluster fork their Python workers from our daemon.
    """
    wanted = {**_HOSTING, _OPTIONS: " ".join([*_JAVA, *_archived()])}
    # the user's own settings win
    added = {key: value for key, value in wanted.items() if key not in settings}
    # executors of a cluster; a local Spark forks from its own daemon
    if _DAEMON not in settings and _LOCAL.fullmatch(settings.get("spark.master", "local")) is None:
        files = [settings[_FILES]] if settings.get(_FILES) else []
        added |= {_DAEMON: "penstock_daemon", _FILES: ",".join([*files, penstock_daemon.__file__])}
        added |= {f"spark.executorEnv.{penstock_daemon.ROOT}": str(ROOT)}
    return added


class HostingSession:
    """One session for all workers of a pool, recreated when Spark has died. Any thread may use it."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = dict(settings)
        self._lock = threading.Lock()
        self._session: Any = None
        self._profiles: dict[int, Any] = {}
        self._application: SparkApplication | None = None
        self._code = shipped()
        self.code_name = self._code.name
        self.attempts = _ATTEMPTS
        """How often Spark runs a task."""

    def begin(self, tag: str) -> Any:
        """Return the session; the jobs this thread runs in it get the tag. BND-50xx when there is no Spark,
        RUN-2923 when speculation is on.
        """
        with self._lock:
            # another part of the program may have started a new Spark after this one died
            if (
                self._application is None
                or self._application is not SESSIONS.application
                or not self._application.alive
            ):
                self._start()
            assert self._application is not None
            self._application.tag(self._session, tag)
            return self._session

    def cancel(self, tag: str) -> None:
        """Cancel the jobs with a tag; does nothing without a Spark."""
        application, session = self._application, self._session
        if application is not None and application.alive:
            try:
                application.cancel(session, tag)
            except spark_failures():
                return  # Spark ends just now, and its jobs with it

    def profile(self, cores: int) -> Any:
        """Return the resource profile of a task with this many cores; ``None`` where every task of this Spark
        has the same.
        """
        local = _LOCAL.fullmatch(str(self._session.conf.get("spark.master", "")))
        # a local Spark has no resource profiles
        if cores == int(self._session.conf.get("spark.task.cpus", "1")) or local is not None:
            return None
        with self._lock:
            if cores not in self._profiles:
                self._profiles[cores] = _profile(self._session, cores)
            return self._profiles[cores]

    def _start(self) -> None:
        session = SESSIONS.new("UTC", self._settings, additions=hosting_additions)
        if str(session.conf.get("spark.speculation", "false")).lower() == "true":
            hint = "SET 'spark.speculation' = 'false' before Spark is started, or in spark-defaults.conf"
            message = (
                "Spark speculates: it would start a worker that takes long a second time, and a worker "
                "takes as long as its job"
            )
            raise PenstockError("RUN-2923", message, hint=hint, kind=Kind.USER, sqlstate="55000")
        # Spark Connect uploads files; a classic session serves them from the driver
        if _is_remote(session):
            session.addArtifacts(str(self._code), pyfile=True)
        else:
            session.sparkContext.addPyFile(str(self._code))
        self._session, self._application, self._profiles = session, SESSIONS.application, {}
        local = _LOCAL.fullmatch(str(session.conf.get("spark.master", "")))
        self.attempts = (
            int(session.conf.get("spark.task.maxFailures", str(_ATTEMPTS)))
            if local is None
            else int(local[1] or 1)
        )

    def close(self) -> None:
        """Release the session."""
        with self._lock:
            if self._application is not None and self._application is SESSIONS.application:
                SESSIONS.release(self._session)
            self._session = self._application = None


def _archived() -> list[str]:
    try:
        return executors_options(find_java(), spark_home() / "jars")
    except PenstockError:  # Spark may be elsewhere
        return []


def _profile(session: Any, cores: int) -> Any:
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    profile = ResourceProfileBuilder().require(TaskResourceRequests().cpus(cores)).build
    if _is_remote(session):  # it is made by the session that is this thread's own, which none is yet
        session._set_default_and_active_session(session)
        assert profile.id
    return profile


def _is_remote(session: Any) -> bool:
    return "connect" in type(session).__module__
