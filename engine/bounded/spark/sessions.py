"""The one Spark of this process: a plan starts it on demand, all share it, and it is released at exit."""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.slow_steps import SLOW_STEPS, SlowStep
from penstock.engine.bounded.spark.application import SparkApplication
from penstock.engine.bounded.spark.attached_application import (
    GATEWAY,
    Additions,
    SubmittedSpark,
    has_programs_spark,
    programs_spark,
)
from penstock.engine.bounded.spark.connect_application import SparkServer
from penstock.engine.bounded.spark.jvm_launcher import configured, spark_home
from penstock.engine.bounded.spark.keep_alive import daemon_states, lease_spark
from penstock.engine.bounded.spark.local_application import OwnSpark
from penstock.engine.bounded.spark.watchdog import SparkWatch, WatchedCall

# they log, with a stack, the same errors that the query raises
_QUIET_LOGGERS = (
    "py4j",
    "py4j.clientserver",
    "py4j.java_gateway",
    "pyspark",
    "SQLQueryContextLogger",
    "DataFrameQueryContextLogger",
)
# above START_TIMEOUT_S of the virtual machine, whose error has its log
_START_TIMEOUT_S = 180.0
NEWS = logging.getLogger("penstock.spark")
"""Messages about Spark's start, and about what Spark does. Command lines write them to stderr."""
# settings that a session accepts without any effect
_SILENTLY_IGNORED = ("spark.master",)


class SparkSessions:
    """The Spark application of this process. It runs on the server SPARK_REMOTE names, on one kept alive, in
    the program's own Spark, or in a virtual machine of ours.

    ``keep_alive_ms``: how long a virtual machine outlives its last process; 0 for one that ends with this
    process. ``settings``: Spark settings of the session that starts it. Both are read when Spark is started.
    """

    def __init__(self) -> None:
        self.keep_alive_ms = 0
        self.settings: Mapping[str, str] = {}
        self._lock = threading.Lock()
        self._application: SparkApplication | None = None
        self._process = os.getpid()
        self._started_with: Mapping[str, str] = {}

    @property
    def application(self) -> SparkApplication | None:
        """The running Spark application, ``None`` before the first session."""
        return self._application

    def new(
        self, time_zone: str, settings: Mapping[str, str] | None = None, additions: Additions | None = None
    ) -> Any:
        """Return a new session (temporary views, settings) on the shared application. BND-50xx when Spark
        cannot be started.

        ``settings``: they start Spark if it does not run yet, else they are set in the session. BND-5013 for
        one that only a start can set. ``additions``: returns the additional settings of a Spark that is
        started now.
        """
        wanted = settings or {}
        # settings of the catalog or table override those of the session
        application = self._running({**self.settings, **wanted}, additions or _nothing)
        # Spark writes some in its own way
        wanted = {key: value for key, value in wanted.items() if self._started_with.get(key) != value}
        return SparkWatch(application).call("open a session", lambda: _opened(application, time_zone, wanted))

    def is_up(self, keep_alive_ms: int) -> bool:
        """Return whether a new session would start no Spark: one runs here, or there is one to join."""
        if self._application is not None:
            return self._application.alive
        if os.environ.get("SPARK_REMOTE") or GATEWAY in os.environ or has_programs_spark():
            return True
        # only a session that keeps Sparks alive joins one
        return bool(keep_alive_ms) and bool(daemon_states())

    def release(self, session: Any) -> None:
        """Release a session that is no longer needed."""
        if self._application is not None:
            self._application.release(session)

    def watch(self, idle_s: float | None = None) -> SparkWatch:
        """Return a watch over calls into the Spark that runs."""
        assert self._application is not None
        return SparkWatch(self._application) if idle_s is None else SparkWatch(self._application, idle_s)

    def _running(self, settings: Mapping[str, str], additions: Additions) -> SparkApplication:
        with self._lock:
            # it is that of the process before a fork, or died after an earlier query: start another
            if self._application is not None and not (self._is_own and self._application.alive):
                self._forget()
            if self._application is None:
                self._application = _within_timeout("start", lambda: self._start(settings, additions))
                self._process = os.getpid()
                atexit.register(self.close)
            return self._application

    def _start(self, settings: Mapping[str, str], additions: Additions) -> SparkApplication:
        for name in _QUIET_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        # else Spark's workers run whatever ``python3`` is on PATH
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        self._started_with = {}
        warnings.filterwarnings(
            "ignore", message="PySpark does not yet fully support pandas", category=FutureWarning
        )
        # in this order: a server, a Spark of this program, spark-submit, one kept alive, one of ours
        if os.environ.get("SPARK_REMOTE"):
            return SparkServer(os.environ["SPARK_REMOTE"])
        # its settings are the program's: none of ours was used for its start
        if (programs := programs_spark()) is not None:
            return programs
        self._started_with = settings
        if GATEWAY in os.environ:
            return SubmittedSpark(settings, additions)
        settings = {**settings, **additions(configured(spark_home(), settings))}
        began_ms = SLOW_STEPS.now_ms()
        NEWS.info("Spark is being started")
        if self.keep_alive_ms:
            self._started_with = {}  # it may be there already
            application: SparkApplication = lease_spark(self.keep_alive_ms, settings)
        else:
            application = OwnSpark(settings)
        NEWS.info("Spark runs, after %.1f s", SLOW_STEPS.ended(SlowStep.SPARK, began_ms))
        return application

    def close(self) -> None:
        """End the application and its virtual machine, unless it is kept alive."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        """Release Spark, dead or alive, so that the next session starts a new one."""
        application, self._application = self._application, None
        if application is not None:
            atexit.unregister(self.close)
            if self._is_own:
                application.close()

    @property
    def _is_own(self) -> bool:
        """Whether this process has started it: a fork leaves the Spark of the process before it alone."""
        return self._process == os.getpid()


def _nothing(settings: Mapping[str, str]) -> Mapping[str, str]:
    return {}


def _opened(application: SparkApplication, time_zone: str, settings: Mapping[str, str]) -> Any:
    session = application.session()
    for key, value in settings.items():
        _set(session, key, value)
    session.conf.set("spark.sql.session.timeZone", time_zone)
    return session


def _set(session: Any, key: str, value: str) -> None:
    """Set the settings that differ. One that Spark reads only at its start can no longer be set."""
    from pyspark.errors import PySparkException

    # equal values are not set again: Spark refuses even that for a setting of its start
    known = session.conf.get(key, None)
    # to which Spark adds its own
    if known is not None and (
        _plain(known) == _plain(value) or (key.endswith("JavaOptions") and value in known)
    ):
        return
    refused: PySparkException | None = None
    try:
        if key not in _SILENTLY_IGNORED:
            session.conf.set(key, value)
            return
    except PySparkException as error:
        refused = error
    message = f"Spark runs already, and {key} is read only when it starts"
    hint = "make the first statement that needs Spark one of a catalog, table or job with this setting"
    raise PenstockError("BND-5013", message, hint=hint, kind=Kind.USER, sqlstate="55000") from refused


def _plain(value: str) -> str:
    """A setting in its original form: Spark rewrites paths as URLs."""
    return re.sub(r"\bfile:/+", "/", value)


def _within_timeout(what: str, work: Callable[[], Any]) -> Any:
    """Return what ``work()`` returns. BND-5005 on timeout."""
    call = WatchedCall(what, work)
    # the call continues in its thread: nothing can interrupt a call into Py4J
    if not call.done.wait(_START_TIMEOUT_S):
        message = f"Spark did not {what} within {_START_TIMEOUT_S:.0f} s"
        raise PenstockError("BND-5005", message, kind=Kind.EXTERNAL, retriable=True, sqlstate="57014")
    return call.result()


SESSIONS = SparkSessions()
