"""The one Spark session of this process: started when a plan needs it, shared, stopped at exit."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import warnings
from collections.abc import Mapping
from typing import Any

from catalog.errors import Kind, PenstockError
from engine.bounded.spark_launcher import SparkJvm, launch

_QUIET_LOGGERS = ("py4j", "py4j.clientserver", "py4j.java_gateway", "pyspark", "SQLQueryContextLogger", "DataFrameQueryContextLogger")
_START_TIMEOUT_S = 180.0


class SparkSessions:
    """Gives sessions of one Spark application in a virtual machine of our own, or on the server SPARK_REMOTE names."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._session: Any = None
        self._jvm: SparkJvm | None = None

    @property
    def jvm(self) -> SparkJvm | None:
        """The virtual machine, ``None`` before the first session and with SPARK_REMOTE."""
        return self._jvm

    def new(self, time_zone: str, settings: Mapping[str, str] | None = None) -> Any:
        """Return a session of its own (temporary views, settings) on the shared application. BND-50xx when Spark cannot be started.

        ``settings``: what Spark is started with if it does not run yet, and else set in the session; BND-5013 for one that is too late.
        """
        wanted = settings or {}
        with self._lock:
            if self._jvm is not None and not self._jvm.alive:
                self._forget()
            if self._session is None:
                self._session = self._started(wanted)
            session = self._session.newSession()
        for key, value in wanted.items():
            _set(session, key, value)
        session.conf.set("spark.sql.session.timeZone", time_zone)
        return session

    def _started(self, settings: Mapping[str, str]) -> Any:
        """Return the first session; a virtual machine in which none could be made is not left behind."""
        try:
            return within(_START_TIMEOUT_S, lambda: self._start(settings), "start")
        except BaseException:
            self._forget()
            raise

    def _start(self, settings: Mapping[str, str]) -> Any:
        for name in _QUIET_LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        if not os.environ.get("SPARK_REMOTE"):
            self._jvm = launch(settings)
            os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"] = str(self._jvm.port), self._jvm.secret
            atexit.register(self.close)
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        from pyspark.sql import SparkSession

        if os.environ.get("SPARK_REMOTE"):
            return SparkSession.builder.remote(os.environ["SPARK_REMOTE"]).getOrCreate()
        return SparkSession.builder.getOrCreate()

    def close(self) -> None:
        """End the application and its virtual machine."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        """Let go of a virtual machine, dead or alive, so that the next session starts a new one."""
        jvm, self._jvm, self._session = self._jvm, None, None
        if jvm is None:
            return
        from pyspark import SparkContext
        from pyspark.sql import SparkSession

        _hush(SparkContext._active_spark_context)
        gateway = SparkContext._gateway
        if gateway is not None:
            gateway.shutdown_callback_server(raise_exception=False)
            gateway.close()
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None
        for key in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
            os.environ.pop(key, None)
        jvm.close()


def _set(session: Any, key: str, value: str) -> None:
    """Set what is not set already; a setting Spark reads only when it starts can no longer be."""
    from pyspark.errors import PySparkException

    if session.conf.get(key, None) == value:
        return
    try:
        session.conf.set(key, value)
    except PySparkException as error:
        message = f"Spark runs already, and {key} is read only when it starts"
        hint = "make the first statement that needs Spark one of a catalog or table with this setting"
        raise PenstockError("BND-5013", message, hint=hint, kind=Kind.USER, sqlstate="55000") from error


def _hush(context: Any) -> None:
    """Keep PySpark's accumulator server from printing a traceback when the virtual machine it listens to goes away."""
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.server_shutdown = True
        server.handle_error = lambda request, address: None


def within(timeout_s: float, work: Any, what: str) -> Any:
    """Return what ``work()`` returns, computed in a thread; BND-5005 when it does not return in time, so that a stuck call cannot hang us."""
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["value"] = work()
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
            outcome["error"] = error

    thread = threading.Thread(target=run, name=f"penstock-spark-{what}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        message = f"Spark did not answer a call to {what} for {timeout_s:.0f} s"
        raise PenstockError("BND-5005", message, kind=Kind.EXTERNAL, retriable=True, sqlstate="57014")
    if "error" in outcome:
        raise outcome["error"]
    return outcome["value"]


SESSIONS = SparkSessions()
