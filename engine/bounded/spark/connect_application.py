"""Spark on a Spark Connect server: the one SPARK_REMOTE names, or one kept alive on this machine."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import warnings
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.bounded.spark.application import stages_text
from penstock.engine.bounded.spark.errors import machine_gone, spark_failures
from penstock.engine.bounded.spark.jvm_launcher import CONFIGURATION

_DEFAULT_PORT = 15002
# seconds to connect; a server on the local network answers at once
_PROBE_S = 5.0
_RETRIES, _LONGEST_PAUSE_MS = 16, 1_000  # some 15 s; of itself the client would try for ten minutes
_OURS = (
    "spark.sql.shuffle.partitions",
    "spark.sql.adaptive.enabled",
    "spark.sql.ansi.enabled",
    "spark.sql.files.maxPartitionBytes",
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.timeType.enabled",
    "spark.sql.cteRecursionLevelLimit",
    "spark.sql.cteRecursionRowLimit",
)
"""Session settings that our queries rely on, or are faster with."""
# units of sizes in EXPLAIN COST
_UNITS = {
    "B": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "PiB": 1 << 50,
    "EiB": 1 << 60,
}


class SparkServer:
    """A :class:`~penstock.engine.bounded.spark.application.SparkApplication` reached by a URL
    ``sc://host:port/;key=value``.
    """

    def __init__(self, url: str, lease: socket.socket | None = None, token: str | None = None) -> None:
        """``lease``: a connection that keeps a server alive while it is open. ``token``: the server's token,
        when the URL has none.
        """
        parts = urlsplit(url)
        self._url = url if token is None else f"{url}/;token={token}"
        self._host, self._port = parts.hostname or "localhost", parts.port or _DEFAULT_PORT
        self._lease = lease
        # set by a failed probe and never reset: the next query makes a new application
        self._dead = False
        # session id to its running stages: number to (tasks done, tasks)
        self._stages: dict[str, dict[int, tuple[int, int]]] = {}

    @property
    def alive(self) -> bool:
        # the daemon closes the lease's connection when its virtual machine ends
        return not self._dead and (self._lease is None or _is_open(self._lease))

    def gone(self) -> PenstockError | None:
        # an open lease proves nothing about the server's port, and a server of others has no lease
        if self.alive:
            return None
        # a Spark of ours that was kept alive; the next query leases or starts another
        if self._lease is not None:
            return machine_gone(None)
        message = f"the server of Spark Connect at {self._host}:{self._port} is gone"
        return PenstockError(
            "BND-5008",
            message,
            hint="SPARK_REMOTE names it",
            kind=Kind.EXTERNAL,
            retriable=True,
            sqlstate="58000",
        )

    def busy(self) -> bool:
        """Check that the server can be reached, and return True: it does not report what it runs."""
        self._probe()
        return True

    def _probe(self) -> None:
        try:
            socket.create_connection((self._host, self._port), timeout=_PROBE_S).close()
        except OSError:
            self._dead = True
            raise

    def abandon(self) -> None:
        """Nothing: pending calls end when the server does."""

    def session(self) -> Any:
        """Return a session. BND-5008 when no server listens there: Spark's own client would retry for ten
        minutes.
        """
        if self.alive:
            with contextlib.suppress(OSError):
                self._probe()
        if (gone := self.gone()) is not None:
            raise gone
        from pyspark.sql.connect.session import SparkSession

        # pyspark's functions look there for what they are to make
        os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
        # a server of another version may not know one of them
        warnings.filterwarnings("ignore", module="pyspark.sql.connect.conf")
        # one kept alive was started with our configuration; any other gets what a session may set
        ours = {} if self._lease is not None else {key: CONFIGURATION[key] for key in _OURS}
        made = SparkSession.builder.config(map=ours).remote(self._url).create()
        made.client.set_retry_policies([_retries(lambda: self.alive)])
        made.registerProgressHandler(self._progress_handler(str(made.session_id)))
        return made

    def _progress_handler(self, session_id: str) -> Any:
        def handler(stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:
            running = {
                stage.stage_id: (stage.num_completed_tasks, stage.num_tasks)
                for stage in stages or ()
                # a finished stage would count twice once the next one starts
                if not stage.done
            }
            self._stages[session_id] = {} if done else running

        return handler

    def release(self, session: Any) -> None:
        """Drop the session's views and settings. A dead server is not asked, because that would delay the end
        of this process.
        """
        with contextlib.suppress(*spark_failures()):
            if self.alive:
                session.stop()
            else:
                session.client.close()
        self._stages.pop(str(session.session_id), None)

    def tag(self, session: Any, tag: str) -> None:
        session.addTag(tag)

    def cancel(self, session: Any, tag: str) -> None:
        if self.alive:
            with contextlib.suppress(*spark_failures()):
                session.interruptTag(tag)

    def progress(self, session: Any) -> str | None:
        return stages_text(self._stages.get(str(session.session_id), {}))

    def estimate_bytes(self, session: Any, frame: Any, text: str) -> int | None:
        """Return the first size in ``EXPLAIN COST``, which is that of the whole result."""
        # Connect has no access to the optimized plan's statistics, only to their text
        (row,) = session.sql(f"EXPLAIN COST {text}").collect()
        match = re.search(r"sizeInBytes=([0-9.E+]+) (\w+)", row[0])
        return int(float(match[1]) * _UNITS[match[2]]) if match is not None and match[2] in _UNITS else None

    def reached_at(self, session: Any) -> str:
        """This machine's address towards the server. Where tasks run on other networks,
        ``spark.results.host`` overrides it.
        """
        # a UDP socket picks the local address of the route to the server
        with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
            towards.connect((self._host, self._port))  # sends nothing
            return towards.getsockname()[0]
        return "127.0.0.1"

    def last_words(self) -> str:
        return ""

    def close(self) -> None:
        if self._lease is not None:
            self._lease.close()


def _retries(alive: Callable[[], bool]) -> Any:
    """Return the client's retry policy: none where the server is known to be dead, since a program could not
    end before the last retry.
    """
    from pyspark.sql.connect.client.retries import DefaultPolicy

    class WhileAlive(DefaultPolicy):
        def can_retry(self, e: BaseException) -> bool:
            return alive() and super().can_retry(e)

    return WhileAlive(max_retries=_RETRIES, max_backoff=_LONGEST_PAUSE_MS)


def _is_open(lease: socket.socket) -> bool:
    """Whether the other side of a non-blocking socket has not disconnected."""
    try:
        # b"": closed by the other side. BlockingIOError: open, and nothing to read.
        return lease.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
