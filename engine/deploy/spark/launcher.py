"""The host that starts workers as tasks of Spark. Each container is a Spark job of one task, submitted by its
own thread; the task's Python process runs the worker. An error of the job is translated here.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
import socket
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.cluster_options import ClusterOptions
from penstock.engine.bounded.spark.errors import spark_failures
from penstock.engine.deploy.coordinator.launcher import Address, Container
from penstock.engine.deploy.spark.code_archive import ROOT
from penstock.engine.deploy.spark.entry_point import SCHEMA, worker_function
from penstock.engine.deploy.spark.hosting_session import HostingSession
from penstock.engine.network.listener_options import Listening, tls_contexts
from penstock.engine.network.tls_stream import SecureStream

LEAVE_S = 3.0
"""How long a task may take to return once its worker is dismissed; then its job is cancelled."""
# what Spark reports when its workers cannot be used at all: a retry would fail alike
_VERSIONS = re.compile(r"PYTHON_VERSION_MISMATCH\]?\s*(.*)", re.DOTALL)
_LACKING = re.compile(r"ModuleNotFoundError: (No module named '[^']+')")
_TAGS = itertools.count(1)


class SparkTask:
    """One Spark job. When its Python worker or its executor dies, Spark runs the task again and the worker
    reconnects, up to Spark's limit of attempts.
    """

    pid: int | None = None

    def __init__(self, number: int, session: HostingSession, options: ClusterOptions) -> None:
        self.number = number
        self.token = secrets.token_hex(32)
        self.fault: PenstockError | None = None
        self.unwanted = False
        self._lost = 0
        self._session = session
        self._options = options
        self._tag = f"penstock-worker-{os.getpid()}-{next(_TAGS)}"
        self._outcome: str | None = None
        self._ended = threading.Event()

    def start(self, address: Address, scratch: Path) -> None:
        threading.Thread(
            target=self._run, args=(address,), name=f"spark-task-{self.number}", daemon=True
        ).start()

    @property
    def running(self) -> bool:
        """Whether Spark runs or queues it, so that its worker may connect."""
        return not self.unwanted and not self._ended.is_set() and self._lost < self._session.attempts

    def ended(self) -> str | None:
        return self._outcome if self._ended.is_set() else None

    def disconnected(self) -> str:
        # Spark runs the task again until it has failed as often as its limit
        self._lost += 1
        return "its Python worker ended"

    def kill(self) -> None:
        if not self.unwanted:
            self.unwanted = True
            # in a thread: a call into a hung Spark must not block the watchdog
            threading.Thread(target=self._cancel, name="spark-cancel", daemon=True).start()

    def leave(self) -> None:
        if not self.unwanted:
            self.unwanted = True
            # the worker leaves by itself when its connection ends; cancel only if it does not
            timer = threading.Timer(LEAVE_S, self._cancel)
            timer.daemon = True
            timer.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end of its Spark job; return whether it ended in time."""
        return self._ended.wait(timeout_s)

    def _run(self, address: Address) -> None:
        """Run the Spark job; returns when it has ended."""
        outcome = "its Spark job ended"
        try:
            # it may have been dismissed before its thread began
            if not self.unwanted:
                session = self._session.begin(self._tag)
                function = worker_function(self._orders(address))
                rows = (
                    # one row in one partition: one task, which is the worker
                    session.range(0, 1, 1, 1)
                    .mapInArrow(function, SCHEMA, profile=self._session.profile(self._options.slots))
                    .collect()
                )
                outcome = str(rows[0]["said"])
        # no Spark, or one with wrong settings: other containers would fail alike
        except PenstockError as error:
            outcome, self.fault = error.message, error
        except spark_failures() as error:
            outcome, self.fault = _failure_of(error)
        except Exception as error:  # noqa: BLE001 - whatever Spark's client raises is the end of this worker
            outcome = f"its Spark job failed: {type(error).__name__}: {str(error)[:300]}"
        finally:
            self._outcome = outcome
            self._ended.set()

    def _orders(self, address: Address) -> dict[str, Any]:
        files = self._options.certificates
        return {
            "worker": self.number,
            "token": self.token,
            "address": list(address),
            "ports": list(self._options.ports),
            "certificates": None if files is None else [files.certificate, files.key, files.authority],
            "encrypted": self._options.encrypted,
            # relative paths of tables mean the same in the task
            "directory": str(Path.cwd()),
            "code": self._session.code_name,
            "root": str(ROOT),
        }

    def _cancel(self) -> None:
        if not self._ended.is_set():
            self._session.cancel(self._tag)


class SparkTasks:
    """Has Spark start workers. Each occupies as many cores as it has slots, for as long as a job needs it."""

    def __init__(self, options: ClusterOptions) -> None:
        self.start_ms = float(options.registration_timeout_ms)
        self.idle_ms: float | None = float(options.idle_timeout_ms)
        self._options = options
        self._tls = None if options.certificates is None else tls_contexts(options.certificates)
        self._session = HostingSession(dict(options.spark))
        self._tasks: list[SparkTask] = []

    def listen(self) -> tuple[socket.socket, Address]:
        options = self._options
        listening = Listening(options.bind_host, (options.port, options.port), self._tls, options.encrypted)
        listener = listening.listener(backlog=64)
        host, port = listener.getsockname()[:2]
        return listener, (options.host or host, port)

    def accepted(self, connected: socket.socket) -> socket.socket | SecureStream:
        return connected if self._tls is None else SecureStream(connected, self._tls.server, server=True)

    def container(self, number: int) -> Container:
        task = SparkTask(number, self._session, self._options)
        # forget those that have ended
        self._tasks = [*(each for each in self._tasks if not each.wait(0)), task]
        return task

    def lasting(self) -> Sequence[Container]:
        return [task for task in self._tasks if task.running]

    def late(self, worker: int) -> PenstockError | None:
        seconds = f"{self.start_ms / 1e3:g} s"
        return PenstockError(
            "RUN-2925",
            f"worker {worker} has not registered within {seconds}: Spark has too few free cores, or "
            "tasks do not reach this process",
            hint="a worker takes 'taskmanager.slots' cores; 'jobmanager.host' is where tasks connect to, "
            "'taskmanager.registration-timeout' how long",
            kind=Kind.USER,
            sqlstate="53000",
        )

    def close(self) -> None:
        for task in self._tasks:
            if task.running:
                task.leave()
        # all were asked to leave before the first is waited for
        for task in self._tasks:
            task.wait(LEAVE_S + 2.0)
        self._session.close()


def _failure_of(error: BaseException) -> tuple[str, PenstockError | None]:
    """Return why a Spark job failed, with an error when a retry cannot succeed."""
    try:
        text = str(error)
    except spark_failures():  # which is asked of the virtual machine
        return "the Java virtual machine of Spark is gone", None
    versions, lacking = _VERSIONS.search(text), _LACKING.search(text)
    # environment errors stop the job with a hint; any other end of a task is a lost worker
    what = None if versions is None else f"have another Python: {' '.join(versions[1].split())[:200]}"
    if lacking is not None:
        what = f"have a Python without ours: {lacking[1]}"
    if what is not None:
        hint = "set PYSPARK_PYTHON on the workers, or ship an environment with 'spark.archives'"
        return f"workers of Spark {what}", PenstockError(
            "RUN-2921", f"workers of Spark {what}", hint=hint, kind=Kind.USER, sqlstate="55000"
        )
    if "cancelled" in text:
        return "its Spark job was cancelled", None
    return f"its Spark job failed: {_sentence(text)}", None


def _sentence(text: str) -> str:
    """Return the line of a Java or Python trace that names the error."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    blamed = [line for line in lines if re.match(r"(\w+\.)*\w*(Error|Exception)\b.*:", line)]
    return (blamed[-1] if blamed else lines[0] if lines else "no reason given")[:300]
