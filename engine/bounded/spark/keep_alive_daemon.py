"""The daemon that keeps a Spark alive for the command line. It owns the virtual machine and ends it after an
idle time.

Clients find it through a Unix socket in a directory that only its user can enter. A request is a line of
JSON, ``{"do": "lease" | "status" | "stop", "keep_alive_ms": n}``. So is the response: URL, token, process
ids, other leases. A lease lasts as long as its connection.

Measured on a count of 1,000 rows by the command line, on a busy machine (``python -m bench startup``). It
takes 3.8 s with a Spark kept alive, 9.6 s with one started from its archive, 15.5 s cold.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import secrets
import selectors
import signal
import socket
import sys
import tempfile
from pathlib import Path

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.bounded.spark.jvm_launcher import SparkJvm, await_start, start_machine
from penstock.engine.network.admission import Admission

_SERVER = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
# seconds between two looks at the virtual machine; also the unit of idle time
_LOOK_S = 0.5
# PR_SET_PDEATHSIG of prctl(2)
_DIE_WITH_PARENT = 1
# bytes of a request; no request comes near it
_LONGEST_LINE = 4096


def start_server(settings: dict[str, str]) -> SparkJvm:
    """Start a Spark Connect server at ``localhost`` with its ``secret`` as token. BND-5001, 5002 or 5007 on
    failure.
    """
    port, token = _free_port(), secrets.token_hex(32)
    where = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        # else every session starts Python workers of its own
        "spark.sql.artifact.isolation.enabled": "false",
    }
    directory = Path(tempfile.mkdtemp(prefix="penstock-spark-"))
    jvm = start_machine(
        directory,
        {**settings, **where},
        _SERVER,
        {"SPARK_CONNECT_AUTHENTICATE_TOKEN": token},
        _end_with_parent,
    )
    jvm.port, jvm.secret = port, token
    # the server opens its port when it can serve
    await_start(jvm, lambda: _listens(port))
    return jvm


class SparkKeeper:
    """Serves leases to processes that need a Spark; for one thread."""

    def __init__(
        self, listener: socket.socket, jvm: SparkJvm, keep_alive_ms: int, clock: Clock | None = None
    ) -> None:
        self._jvm = jvm
        self._keep_alive_s = keep_alive_ms / 1000
        self._idle_s = 0.0
        self._stopped = False
        self._leases: set[socket.socket] = set()
        self._selector = selectors.DefaultSelector()
        self.admission: Admission[socket.socket] = Admission(
            listener, clock or SystemClock(), self._leave, selector=self._selector
        )

    def run(self) -> None:
        """Serve until the virtual machine ends, a client sends stop, or no lease was open for the time the
        last one requested.
        """
        while self._jvm.alive and not self._stopped and self._idle_s < self._keep_alive_s:
            ready = self._selector.select(_LOOK_S)
            if not ready:
                # idle time passes only while no lease is open
                self._idle_s = 0.0 if self._leases else self._idle_s + _LOOK_S
            for key, _ in ready:
                if key.data is self.admission:
                    self._welcome()
                elif key.fileobj.fileno() >= 0:  # type: ignore[union-attr]  # not hung up on a moment ago
                    self._hear(key.fileobj)  # type: ignore[arg-type]
            self.admission.check_time()

    def _welcome(self) -> None:
        connection = self.admission.accept()
        if connection is not None:
            connection.settimeout(1.0)
            self._selector.register(connection, selectors.EVENT_READ)
            self.admission.add(connection)

    def _hear(self, connection: socket.socket) -> None:
        try:
            # an empty line: the client has closed, which ends its lease
            line = connection.recv(_LONGEST_LINE)
            wanted = json.loads(line) if line and connection not in self._leases else None
            keep_alive_s = (
                int(wanted["keep_alive_ms"]) / 1000
                if wanted is not None and wanted["do"] == "lease"
                else None
            )
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            wanted = None
        # the end of a lease, a second request on one connection, or no JSON object
        if not isinstance(wanted, dict):
            self._leave(connection)
            return
        self.admission.admit(connection)
        self._stopped = wanted["do"] == "stop"
        if keep_alive_s is not None:
            self._leases.add(connection)
            # the last lease decides how long Spark outlives it
            self._idle_s, self._keep_alive_s = 0.0, keep_alive_s
        # a client that has left already shows up as readable at the next select
        with contextlib.suppress(OSError):
            connection.sendall(json.dumps(self._state()).encode() + b"\n")

    def _leave(self, connection: socket.socket) -> None:
        self._leases.discard(connection)
        self.admission.refuse(connection)
        self._selector.unregister(connection)
        connection.close()

    def _state(self) -> dict[str, object]:
        return {
            "url": f"sc://localhost:{self._jvm.port}",
            "token": self._jvm.secret,
            "pid": os.getpid(),
            "java_pid": self._jvm.process.pid,
            "leases": len(self._leases),
            "idle_s": round(self._idle_s),
            "keep_alive_s": round(self._keep_alive_s),
        }


def _free_port() -> int:
    # another process could take the port before Java does; await_start then reports it
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _end_with_parent() -> None:
    """Make the kernel end a virtual machine whose daemon has died (Linux only; elsewhere a killed daemon
    leaves one running).
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGTERM)


def main(path: str) -> None:
    """Keep a Spark behind the socket at ``path``; the settings come on stdin. Exits at once when another
    daemon owns the socket.
    """
    socket_path = Path(path)
    request = json.loads(sys.stdin.readline())
    with socket_path.with_suffix(".lock").open("w") as lock:
        try:
            # the lock ends with the process, however it ends; a socket file would remain
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        # a socket of a daemon that was killed: the lock is ours, so nobody listens there
        socket_path.unlink(missing_ok=True)
        # as SystemExit, so that ``finally`` ends the virtual machine
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            jvm = start_server(request["settings"])
        except PenstockError as error:
            # stdout is the log the process that asked reads
            sys.stdout.write(json.dumps({"error": error.as_dict()}) + "\n")
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                listener.bind(path)
                listener.listen(16)
                SparkKeeper(listener, jvm, request["keep_alive_ms"]).run()
        finally:
            socket_path.unlink(missing_ok=True)
            jvm.close()


if __name__ == "__main__":
    main(sys.argv[1])
