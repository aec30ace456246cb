"""The worker processes of a session. A worker is started when a job needs it, kept for the next job, watched,
and ended with the session.
"""

from __future__ import annotations

import contextlib
import hmac
import itertools
import selectors
import shutil
import socket
import tempfile
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from penstock.engine.api.clock import Clock
from penstock.engine.deploy.coordinator.launcher import Address, Container, OwnProcesses, WorkerHost
from penstock.engine.deploy.coordinator.worker_handle import WorkerProcess, WorkerState
from penstock.engine.deploy.protocol.connection import ControlConnection
from penstock.engine.deploy.protocol.messages import VERSION, Hello
from penstock.engine.deploy.worker.registration import WorkerFacts, misfit, own_facts
from penstock.engine.network.admission import CROWDED, Admission
from penstock.engine.task_manager.task_manager import IoThread

# seconds between two looks at listeners and workers
ACCEPT_S = 0.1
WATCH_S = 0.1
# heartbeat timeout of a worker without a job; a job sets its own
IDLE_TIMEOUT_MS = 5_000.0
# ten missed turns of the watchdog (WATCH_S): this process was suspended, not the workers
OVERSLEPT_MS = 1_000.0
SPARE_MS = 30_000.0
"""How long a worker that reconnected by itself is kept for the job that will need it."""


class WorkerPool:
    """Leases workers to jobs. A worker connects with its token, once; nobody else can connect in its name."""

    def __init__(self, clock: Clock, host: WorkerHost | None = None) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="penstock-workers-"))
        self._clock = clock
        self._host: WorkerHost = host or OwnProcesses()
        self._workers: dict[int, WorkerProcess] = {}
        # heartbeat timeout in ms by the number of a leased worker; a worker that is not here is free
        self._timeouts: dict[int, float] = {}
        # containers whose worker has connected once
        self._came: set[int] = set()
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        listener, self.address = self._listening()
        self._selector = selectors.DefaultSelector()
        self.admission: Admission[socket.socket] = Admission(
            listener, clock, _hang_up, selector=self._selector
        )
        # workers die with this thread, so it ends with the pool
        self._starter = IoThread("worker-starter")
        self._acceptor = threading.Thread(target=self._accept, name="workers-accept", daemon=True)
        self._acceptor.start()
        threading.Thread(target=self._watch, name="workers-watch", daemon=True).start()

    def take(self, count: int, timeout_ms: float) -> list[WorkerProcess]:
        """Return ``count`` unused workers, and start them where there are too few. A worker silent for
        ``timeout_ms`` counts as lost.
        """
        with self._lock:
            free = [
                worker
                for worker in self._workers.values()
                if worker.state is WorkerState.IDLE and worker.number not in self._timeouts
            ]
            leased = free[:count]
            # containers without a worker come before new ones: their worker is about to reconnect
            for container in self._vacant()[: count - len(leased)]:
                leased.append(self._in(container))
            while len(leased) < count:
                number = next(self._numbers)
                worker = self._in(self._host.container(number), number)
                # on the starter's thread, which must outlive the process it starts
                self._starter.submit(partial(worker.start, self.address, self.scratch))
                leased.append(worker)
            for worker in leased:
                self._timeouts[worker.number] = timeout_ms
            return leased

    def return_workers(self, workers: Sequence[WorkerProcess]) -> None:
        """Accept workers whose tasks are closed; lost ones are forgotten."""
        with self._lock:
            for worker in workers:
                worker.belongs_to(None, None)
                self._timeouts.pop(worker.number, None)
                if worker.state is WorkerState.LOST:
                    self._forget(worker)
        self._dismiss_idle()

    def workers(self) -> list[WorkerProcess]:
        """Return the workers of the pool."""
        with self._lock:
            return list(self._workers.values())

    def close(self) -> None:
        """End every worker and remove its files."""
        # stop accepting first: a worker that connects now would not be dismissed
        self._closed.set()
        self._acceptor.join()
        self.admission.close()
        self._selector.close()
        self._starter.close()
        for worker in self.workers():
            worker.dismiss()
        self._host.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _listening(self) -> tuple[socket.socket, Address]:
        try:
            return self._host.listen()
        except BaseException:
            shutil.rmtree(self.scratch, ignore_errors=True)
            raise

    def _in(self, container: Container, number: int | None = None) -> WorkerProcess:
        """Return a new worker in a container."""
        worker = WorkerProcess(next(self._numbers) if number is None else number, self._clock, container)
        self._workers[worker.number] = worker
        return worker

    def _vacant(self) -> list[Container]:
        """Return the containers that outlive their worker and have none now."""
        occupied = {
            worker.container.number
            for worker in self._workers.values()
            if worker.state is not WorkerState.LOST
        }
        return [container for container in self._host.lasting() if container.number not in occupied]

    def _forget(self, worker: WorkerProcess) -> None:
        self._workers.pop(worker.number, None)

    def _accept(self) -> None:
        """Accept connections until the pool is closed; no error of the system ends the loop."""
        while not self._closed.is_set():
            self._selector.select(ACCEPT_S)
            # a thread for each connection: a stranger that is silent must not delay others
            while (connected := self.admission.accept()) is not None:
                self.admission.add(connected)
                try:
                    threading.Thread(
                        target=self._greet, args=(connected,), name="worker-reader", daemon=True
                    ).start()
                except RuntimeError:  # no thread is to be had
                    self.admission.refuse(connected, CROWDED)
                    connected.close()
            self.admission.check_time()

    def _greet(self, connected: socket.socket) -> None:
        """Authenticate a connection; then read its worker's messages until it ends."""
        connection, hello, worker, known = None, None, None, False
        with contextlib.suppress(Exception):  # whatever a stranger says is no reason to do more than hang up
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = ControlConnection(self._host.accepted(connected), "worker-writer", stranger=True)
            # only these classes are built from what a stranger sends
            hello = connection.receive(only=(Hello, WorkerFacts))
            worker = self._known(hello)
            known = worker is not None and self.admission.admit(connected)
        if worker is None or connection is None or not isinstance(hello, Hello) or not known:
            self.admission.refuse(connected)
            (connection or connected).close()
            return
        # authenticated: from here on messages may be large
        connection.trust()
        wrong = None if hello.facts is None else misfit(hello.facts, own_facts())
        if wrong is not None:
            connection.close()
            worker.lose(wrong.message, wrong)
            return
        # of a worker that came once, a later loss is no failed registration
        self._came.add(worker.container.number)
        worker.connected(connection, hello.facts)

    def _known(self, hello: object) -> WorkerProcess | None:
        """Return the worker that a hello comes from; its token proves it. A container that has lost its
        worker may send another, which becomes a new worker.
        """
        # another protocol, or a worker of another version of this program
        if not isinstance(hello, Hello) or hello.version != VERSION:
            return None
        with self._lock:
            living = [
                each
                for each in self._workers.values()
                if each.state is not WorkerState.LOST and each.container.number == hello.worker
            ]
            vacant = [] if living else [each for each in self._vacant() if each.number == hello.worker]
            containers = [*(each.container for each in living), *vacant]
            # constant time: a comparison must not reveal how much of a token is right
            if not containers or not hmac.compare_digest(containers[0].token.encode(), hello.token.encode()):
                return None
            if not living:
                # Spark has run the task again, and its new Python process connects
                return self._in(vacant[0])
        return living[0] if living[0].state is WorkerState.STARTING else None

    def _watch(self) -> None:
        before_ms = self._clock.monotonic_ms()
        while not self._closed.wait(WATCH_S):
            now_ms = self._clock.monotonic_ms()
            overslept, before_ms = now_ms - before_ms > OVERSLEPT_MS, now_ms
            if overslept:  # this process was stopped: what the workers said meanwhile is still to be read
                continue
            for worker in self.workers():
                late = worker.check(self._timeouts.get(worker.number, IDLE_TIMEOUT_MS), self._host.start_ms)
                if late is not None:
                    # a host explains why workers do not connect at all; for one that came before, it cannot
                    worker.lose(
                        late,
                        None if worker.container.number in self._came else self._host.late(worker.number),
                    )
                # a lost worker of a job stays until the job returns it
                if worker.state is WorkerState.LOST and worker.on_lost is None:
                    with self._lock:
                        self._forget(worker)
            self._dismiss_idle()

    def _dismiss_idle(self) -> None:
        """Dismiss workers that have been without a job for longer than ``idle_ms``. A worker that reconnected
        by itself is kept for the job that will need it.
        """
        kept_ms = self._host.idle_ms
        if kept_ms is None:
            return
        with self._lock:
            wanted = bool(self._timeouts)
            # a container without a worker still occupies cores of Spark
            vacant = [] if wanted else self._vacant()
        for worker in self.workers():
            if worker.number in self._timeouts:
                continue
            # it reconnected and had no job yet, while other workers have one
            spare = wanted and not worker.used
            idle = worker.state is WorkerState.IDLE and worker.idle_ms >= max(kept_ms, SPARE_MS * spare)
            if idle or (worker.state is WorkerState.STARTING and worker.used):
                worker.dismiss()
        for container in vacant:
            container.kill()


def _hang_up(connected: socket.socket) -> None:
    """Shut down a connection that another thread reads: that thread sees its end."""
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
