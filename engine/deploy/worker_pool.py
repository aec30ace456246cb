"""The worker processes of a session: started when a job needs them, kept for the next one, watched, ended with the session."""

from __future__ import annotations

import contextlib
import hmac
import itertools
import shutil
import socket
import tempfile
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from engine.clock import Clock
from engine.deploy.control_connection import ControlConnection
from engine.deploy.control_messages import VERSION, Hello
from engine.deploy.worker_process import WorkerProcess, WorkerState
from engine.task_manager import IoThread

HELLO_S = 5.0
START_MS = 30_000.0
WATCH_S = 0.1
IDLE_TIMEOUT_MS = 5_000.0
OVERSLEPT_MS = 1_000.0


class WorkerPool:
    """Hands workers out to jobs and takes them back. Only who knows a worker's token can connect as that worker."""

    def __init__(self, clock: Clock) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="penstock-workers-"))
        self.refused = 0
        self._clock = clock
        self._workers: dict[int, WorkerProcess] = {}
        self._timeouts: dict[int, float] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()[:2]
        self._starter = IoThread("worker-starter")  # workers die with this thread, so it lives as long as the pool
        for target in (self._accept, self._watch):
            threading.Thread(target=target, name=f"workers-{target.__name__.strip('_')}", daemon=True).start()

    def take(self, count: int, timeout_ms: float) -> list[WorkerProcess]:
        """Return workers that nobody uses, started now where there are too few; silent for ``timeout_ms``, one counts as lost."""
        with self._lock:
            free = [worker for worker in self._workers.values() if worker.state is WorkerState.IDLE and worker.number not in self._timeouts]
            taken = free[:count]
            while len(taken) < count:
                number = next(self._numbers)
                worker = self._workers[number] = WorkerProcess(number, self._clock)
                self._starter.submit(partial(worker.start, self.address, self.scratch))
                taken.append(worker)
            for worker in taken:
                self._timeouts[worker.number] = timeout_ms
            return taken

    def give_back(self, workers: Sequence[WorkerProcess]) -> None:
        """Take workers back whose tasks are closed; lost ones are forgotten."""
        with self._lock:
            for worker in workers:
                worker.belongs_to(None, None)
                self._timeouts.pop(worker.number, None)
                if worker.state is WorkerState.LOST:
                    self._forget(worker)

    def workers(self) -> list[WorkerProcess]:
        """Return the workers there are."""
        with self._lock:
            return list(self._workers.values())

    def close(self) -> None:
        """End every worker and remove what was kept for them."""
        self._closed.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._starter.close()
        for worker in self.workers():
            worker.lose("the session has ended")
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _forget(self, worker: WorkerProcess) -> None:
        self._workers.pop(worker.number, None)

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                connected, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._greet, args=(connected,), name="worker-reader", daemon=True).start()

    def _greet(self, connected: socket.socket) -> None:
        """Find out which worker has connected; then read what it says until it ends."""
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = ControlConnection(connected, "worker-writer")
        worker = None
        with contextlib.suppress(Exception):  # whatever a stranger says is no reason to do more than hang up
            worker = self._known(connection.receive(HELLO_S))
        if worker is None:
            self.refused += 1
            connection.close()
            return
        worker.connected(connection)

    def _known(self, hello: object) -> WorkerProcess | None:
        if not isinstance(hello, Hello) or hello.version != VERSION:
            return None
        with self._lock:
            worker = self._workers.get(hello.worker)
        if worker is None or worker.state is not WorkerState.STARTING or not hmac.compare_digest(worker.token.encode(), hello.token.encode()):
            return None
        return worker

    def _watch(self) -> None:
        before_ms = self._clock.monotonic_ms()
        while not self._closed.wait(WATCH_S):
            now_ms = self._clock.monotonic_ms()
            overslept, before_ms = now_ms - before_ms > OVERSLEPT_MS, now_ms
            if overslept:  # this process was stopped: what the workers said meanwhile is still to be read
                continue
            for worker in self.workers():
                worker.check(self._timeouts.get(worker.number, IDLE_TIMEOUT_MS), START_MS)
                if worker.state is WorkerState.LOST and worker.on_lost is None:
                    with self._lock:
                        self._forget(worker)
