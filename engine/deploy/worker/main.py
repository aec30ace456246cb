"""A worker process: ``python -m penstock.engine.deploy.worker.main``. It connects to its coordinator, runs
the tasks deployed to it, and dies with it.

One line of JSON on standard input holds the coordinator's address, the token and the worker's number.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.deploy.protocol.connection import ControlConnection
from penstock.engine.deploy.protocol.messages import (
    VERSION,
    Alive,
    DeploymentId,
    FromTasks,
    Hello,
    Prepare,
    ReleaseTasks,
    ToTasks,
)
from penstock.engine.deploy.worker.deployment import WorkerTasks
from penstock.engine.deploy.worker.environment import ProcessMeans, WorkerMeans
from penstock.engine.deploy.worker.python_modules import FunctionNames

_PR_SET_PDEATHSIG = 1


def on_parents_death(parent: int, leave: Callable[[], None]) -> None:
    """Call ``leave`` when the process ``parent`` is gone. Linux sends a signal; elsewhere the control
    connection ends.

    Call it from the main thread. Keyboard interrupts are ignored: the parent handles them.
    """
    # Ctrl-C reaches the whole process group; the coordinator ends its workers in order
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # so does SIGQUIT, which Ctrl-T sends to ask for a status
    signal.signal(signal.SIGQUIT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: leave())
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # gone before the kernel was asked
        leave()


# also the heartbeat's interval
METRICS_EVERY_S = 0.2
LEAVE_POLL_S = 0.02


class Worker:
    """Processes the coordinator's messages in order. Per job it runs the newest deployment, and refuses
    messages of older ones.
    """

    def __init__(
        self, connection: ControlConnection, clock: Clock, means: WorkerMeans, *, fenced: bool = True
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._means = means
        self._fenced = fenced
        self._current: WorkerTasks | None = None
        # by job: (epoch, attempt) of the newest deployment seen
        self._newest: dict[str, tuple[int, int]] = {}
        self.stale = 0
        self._ended = threading.Event()

    def run(self) -> None:
        """Process messages until the coordinator is gone."""
        threading.Thread(target=self._beat_on, name="worker-beat", daemon=True).start()
        while (message := self._next()) is not None:
            self.take(message)
        self._ended.set()

    def leave(self, timeout_s: float) -> bool:
        """Close the tasks of a process that outlives its worker; return whether they closed in time."""
        current, pause = self._current, threading.Event()
        # no deployment has come: nothing to close
        if current is None:
            return True
        current.release()
        for _ in range(int(timeout_s / LEAVE_POLL_S)):
            if current.ended:
                break
            pause.wait(LEAVE_POLL_S)
        return current.ended

    def _next(self) -> Any | None:
        """Return the next message. A message that cannot be read, such as one with a function that cannot be
        imported, fails its deployment.
        """
        while True:
            try:
                return self._connection.receive()
            except PenstockError as error:
                # a broken connection ends the worker; a broken message only its deployment
                if error.code.startswith("NET-") or self._current is None:
                    raise
                self._current.fail(error)

    def take(self, message: Any) -> None:
        """Act on one message."""
        if not isinstance(message, ToTasks):
            return
        deployment = message.deployment
        current = self._current
        # the current deployment: nothing to check
        if current is not None and current.deployment == deployment:
            self._pass_message(current, message.body)
            return
        order = (deployment.epoch, deployment.attempt)
        # an older epoch or attempt of this job: its coordinator does not know it is superseded
        if self._fenced and order <= self._newest.get(deployment.job_id, (-1, -1)):
            self.stale += 1
            return
        self._newest[deployment.job_id] = order
        if current is not None:
            # a newer deployment has taken over; the coordinator no longer asks about this one
            current.release()
        self._current = current = WorkerTasks(deployment, self._clock, self._sender(deployment), self._means)
        self._pass_message(current, message.body)

    def _pass_message(self, tasks: WorkerTasks, body: Any) -> None:
        if isinstance(body, Prepare):
            # before the graph arrives: decoding it imports the modules of functions
            sys.path += [path for path in body.path if path not in sys.path]
            self._connection.find_function = FunctionNames(body.modules).find
        if isinstance(body, ReleaseTasks):
            tasks.release()
        else:
            tasks.take(body)

    def _sender(self, deployment: DeploymentId) -> Callable[[Any], None]:
        return lambda body: self._connection.send(FromTasks(deployment, body))

    def beat(self) -> None:
        """Send a heartbeat, and the figures of the current tasks."""
        self._connection.send(Alive(self.stale, self._means.refusals()))
        current = self._current
        if current is not None and not current.ended:
            self._sender(current.deployment)(current.numbers())

    def _beat_on(self) -> None:
        while not self._ended.wait(METRICS_EVERY_S):
            self.beat()


def main() -> None:
    """Run a worker until its coordinator is gone."""
    orders = json.loads(sys.stdin.buffer.readline())
    scratch = Path(orders["scratch"])

    def leave() -> None:
        gone = threading.Event()
        # the kernel closes the connection of a process that dies a moment before it gives its children away
        for _ in range(20):
            if os.getppid() != orders["parent"]:
                shutil.rmtree(scratch, ignore_errors=True)  # another worker may be at it too
                break
            gone.wait(0.02)
        os._exit(0)  # slots may be in the middle of anything; nothing here has to be ended in order

    on_parents_death(orders["parent"], leave)
    connected = socket.create_connection(tuple(orders["address"]), timeout=5)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection = ControlConnection(connected, "worker-control")
    connection.send(Hello(orders["worker"], VERSION, orders["token"]))
    clock = SystemClock()
    Worker(connection, clock, ProcessMeans(clock)).run()
    leave()


if __name__ == "__main__":
    main()
