"""Strangers at every listener: garbage, silence, a hello of one byte at a time, no descriptor left;
whoever belongs there is served afterwards.
"""

from __future__ import annotations

import errno
import json
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from penstock.client.monitoring.prometheus import MetricsServer
from penstock.engine.api.clock import ManualClock, SystemClock
from penstock.engine.api.stream_elements import Watermark
from penstock.engine.bounded.spark.keep_alive_daemon import SparkKeeper
from penstock.engine.bounded.spark_results.listener import RowListener
from penstock.engine.bounded.spark_results.push_task import HELLO
from penstock.engine.deploy.coordinator.launcher import OwnProcess, OwnProcesses
from penstock.engine.deploy.coordinator.worker_pool import WorkerPool
from penstock.engine.deploy.protocol.codec import encode
from penstock.engine.deploy.protocol.connection import MAX_HELLO_BYTES, ControlConnection
from penstock.engine.deploy.protocol.messages import VERSION, Hello
from penstock.engine.network.admission import CROWDED, LATE, UNKNOWN, Admission, AdmissionLimits
from penstock.engine.network.data_plane import DataPlane
from penstock.engine.network.frames import MAGIC, FrameWriter
from penstock.engine.network.handshake import Identity
from penstock.engine.network.listener_options import TlsContexts
from penstock.engine.network.tls_stream import SecureStream
from tests.harness.patience import PATIENCE_S
from tests.unit.engine.network.test_data_plane import certificates

ROOT = Path(__file__).resolve().parent.parent.parent.parent.parent
MEGABYTE = bytes(1 << 20)


@contextmanager
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


class Broken:
    """Stands for a listener whose next connections the system cannot accept."""

    def __init__(self, listener: socket.socket, faults: list[int]) -> None:
        self._listener = listener
        self.faults = faults

    def accept(self) -> tuple[socket.socket, Any]:
        if self.faults:
            raise OSError(self.faults.pop(0), "no")
        return self._listener.accept()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._listener, name)


def connected(listener: socket.socket) -> socket.socket:
    return socket.create_connection(listener.getsockname(), timeout=5)


def test_the_oldest_stranger_is_dropped_and_time_is_counted_from_the_first_byte() -> None:
    hung_up: list[str] = []
    clock = ManualClock()
    with listener() as at:
        admission: Admission[str] = Admission(at, clock, hung_up.append, limits=AdmissionLimits(2, 1000.0))
        for name in ("a", "b", "c"):
            admission.add(name)
            clock.advance(400)
        assert (hung_up, admission.refused) == (["a"], {CROWDED: 1})
        assert admission.admit("c") and not admission.admit("a")
        clock.advance(199)
        admission.check_time()
        assert hung_up == ["a"]
        clock.advance(1)
        admission.check_time()
        assert hung_up == ["a", "b"]
        admission.refuse("b", UNKNOWN)
        assert admission.refused == {CROWDED: 1, LATE: 1} and not admission.watching


@pytest.mark.parametrize("fault", ["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EINVAL"])
def test_a_listener_without_descriptors_rests_and_goes_on(fault: str) -> None:
    clock, hung_up = ManualClock(), []
    with listener() as at, selectors.DefaultSelector() as selector, connected(at):
        broken = Broken(at, [getattr(errno, fault)])
        admission: Admission[str] = Admission(broken, clock, hung_up.append, selector=selector)  # type: ignore[arg-type]
        admission.add("a")
        assert selector.select(5)
        assert admission.accept() is None
        assert (admission.faults, hung_up, admission.resting) == ({fault: 1}, ["a"], True)
        assert not selector.select(0), "a listener that is ready all the time must not be asked for a while"
        clock.advance(100)
        admission.check_time()
        assert selector.select(5)
        taken = admission.accept()
        assert taken is not None
        taken.close()
        admission.close()
        admission.close()


def test_a_connection_that_has_gone_again_is_no_reason_to_rest() -> None:
    with listener() as at, connected(at):
        admission: Admission[str] = Admission(Broken(at, [errno.ECONNABORTED]), ManualClock(), str)  # type: ignore[arg-type]
        assert admission.accept() is None and not admission.resting
        taken = admission.accept()
        assert taken is not None and admission.refusals.failed == 1
        taken.close()


def within(seconds: float, done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


@dataclass
class Door:
    """A listener of ours: where it is, how a hello to it begins, whether who belongs there is served, whom
    it has refused.
    """

    address: tuple[str, int]
    hello: bytes
    serves: Callable[[], bool]
    admission: Admission[Any]

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=10)


class Absent(OwnProcess):
    """A worker's process that is not started: the test speaks for it."""

    def start(self, address: tuple[str, int], scratch: Path) -> None:
        """Nothing to do."""


class Hosts(OwnProcesses):
    def __init__(self, tls: TlsContexts | None = None) -> None:
        self.tls = tls

    def container(self, number: int) -> Absent:
        return Absent(number)

    def accepted(self, connected: socket.socket) -> socket.socket | SecureStream:
        return connected if self.tls is None else SecureStream(connected, self.tls.server, server=True)


@contextmanager
def worker_pool(clock: ManualClock, tls: TlsContexts | None = None) -> Iterator[Door]:
    pool = WorkerPool(clock, Hosts(tls))

    def serves() -> bool:
        (worker,) = pool.take(1, 600_000)
        plain = socket.create_connection(pool.address)
        connection = ControlConnection(
            plain if tls is None else SecureStream(plain, tls.client, server=False), "test"
        )
        connection.send(Hello(worker.number, VERSION, worker.container.token))
        served = within(PATIENCE_S, lambda: worker.state.value == "idle")
        connection.close()
        return served

    try:
        # or a handshake's first bytes
        yield Door(pool.address, MAGIC if tls is None else b"\x16\x03\x01\x02", serves, pool.admission)
    finally:
        pool.close()


@contextmanager
def worker_pool_over_tls(clock: ManualClock) -> Iterator[Door]:
    """As workers on Spark connect: the handshake is part of the hello."""
    with tempfile.TemporaryDirectory() as folder:
        tls = certificates(Path(folder))
        tls.client.check_hostname = False
        with worker_pool(clock, tls) as door:
            yield door


class Greeted:
    """A receiver that notes who was greeted."""

    def __init__(self) -> None:
        self.count = threading.Semaphore(0)

    def greeted(self, wire: Any) -> None:
        self.count.release()

    def closed(self, wire: Any) -> None:
        """Nothing to do."""


@contextmanager
def row_listener(clock: ManualClock) -> Iterator[Door]:
    rows, told, token = RowListener(clock=clock), Greeted(), b"t" * 32
    rows.enter(token, told)  # type: ignore[arg-type]
    address = ("127.0.0.1", rows.port)

    def serves() -> bool:
        with socket.create_connection(address, timeout=10) as task:
            task.sendall(HELLO.pack(token, 0, 0, 0))
            return told.count.acquire(timeout=10)

    yield Door(address, token[:31], serves, rows.admission)
    rows.leave(token)


@contextmanager
def data_plane(clock: ManualClock) -> Iterator[Door]:
    mine, theirs = (Identity(name, "job", 1, 1, "secret") for name in ("b", "a"))
    b = DataPlane(mine, clock, lambda *_: None)
    others = []

    def serves() -> bool:
        a = DataPlane(theirs, SystemClock(), lambda *_: None)
        others.append(a)
        receiver = b.receiver("k", 4, lambda: None)
        a.sender("k", "b", lambda: None).put(Watermark(5))
        a.connect("b", b.address)
        return within(PATIENCE_S, lambda: len(receiver) > 0)

    yield Door(b.address, MAGIC, serves, b.admission)
    for each in (*others, b):
        each.close()


@contextmanager
def metrics_server(clock: ManualClock) -> Iterator[Door]:
    server = MetricsServer(list, 0, clock)
    address = ("127.0.0.1", server.port)

    def serves() -> bool:
        with socket.create_connection(address, timeout=10) as reader:
            reader.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            return reader.makefile("rb").readline().split()[1:2] == [b"200"]

    yield Door(address, b"GET /metrics", serves, server.admission)
    server.close()


class StandingJvm:
    """Stands for a Java process that is there."""

    alive = True
    port, secret = 7, "s"
    process = type("Process", (), {"pid": 7})


@contextmanager
def keeper(clock: ManualClock) -> Iterator[Door]:
    at = socket.create_server(("127.0.0.1", 0))
    address = at.getsockname()
    keeper = SparkKeeper(at, StandingJvm(), 600_000, clock)  # type: ignore[arg-type]
    running = threading.Thread(target=keeper.run, daemon=True)
    running.start()

    def answer(what: str) -> bytes:
        with socket.create_connection(address, timeout=10) as wire:
            wire.sendall(json.dumps({"do": what}).encode())
            return wire.makefile("rb").readline()

    yield Door(address, b"", lambda: b'"token"' in answer("status"), keeper.admission)
    answer("stop")
    running.join(10)
    assert not running.is_alive()
    at.close()


DOORS = [worker_pool, worker_pool_over_tls, row_listener, data_plane, metrics_server, keeper]


@pytest.fixture(params=DOORS, ids=lambda door: door.__name__)
def clock_and_door(request: pytest.FixtureRequest) -> Iterator[tuple[ManualClock, Door]]:
    clock = ManualClock()
    with request.param(clock) as door:
        yield clock, door


def is_closed(wire: socket.socket) -> bool:
    """Read until the other side ends the connection; False when it does not within the socket's timeout."""
    try:
        while wire.recv(4096):
            pass
    except TimeoutError:
        return False
    except OSError:
        return True
    return True


def test_garbage_is_not_read_to_its_end(clock_and_door: tuple[ManualClock, Door]) -> None:
    """Of 64 MB a listener takes what fits in the socket's buffers, and no more: sending fails."""
    _, door = clock_and_door
    sent = 0
    with door.connect() as wire:
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        with pytest.raises(OSError) as ended:
            while sent < 64 * len(MEGABYTE):
                sent += wire.send(MEGABYTE)
    assert not isinstance(ended.value, TimeoutError) and sent < 16 * len(MEGABYTE)
    assert door.serves()


def test_who_says_nothing_or_a_byte_a_second_is_hung_up_on(clock_and_door: tuple[ManualClock, Door]) -> None:
    """The time is that of the whole hello. A connection that broke and one in silence are counted alike."""
    clock, door = clock_and_door
    silent, slow = door.connect(), door.connect()
    assert within(PATIENCE_S, lambda: len(door.admission._strangers) == 2)
    door.connect().close()
    for byte in door.hello[:12].ljust(12, b"?") if door.hello else b"":
        clock.advance(1000)
        try:
            slow.send(bytes([byte]))
        except OSError:  # hung up on, as must be
            break
    clock.advance(12_000)
    assert is_closed(silent) and is_closed(slow)
    assert within(PATIENCE_S, lambda: door.admission.refusals.refused >= 2)
    assert door.serves()
    for wire in (silent, slow):
        wire.close()


def test_no_descriptor_left_ends_no_listener(clock_and_door: tuple[ManualClock, Door]) -> None:
    clock, door = clock_and_door
    broken = Broken(door.admission._listener, [errno.EMFILE, errno.ECONNABORTED, errno.ENFILE])
    door.admission._listener = broken  # type: ignore[assignment]
    waiting = door.connect()
    for rest in ("EMFILE", "ENFILE"):  # the connection that was aborted between them is no reason for one
        assert within(
            PATIENCE_S, lambda rest=rest: door.admission.faults[rest] == 1 and door.admission.resting
        )
        clock.advance(100)
    assert within(PATIENCE_S, lambda: not door.admission.resting)
    assert door.serves()
    assert door.admission.faults == {"EMFILE": 1, "ECONNABORTED": 1, "ENFILE": 1}
    waiting.close()


def framed(payload: bytes) -> bytes:
    return b"".join(FrameWriter().encode(64, parts=[payload]))


def test_a_stranger_cannot_have_a_message_parsed() -> None:
    """Neither one longer than a hello, nor one that is not a hello: the first four bytes of a length would
    allocate 2 GiB.
    """
    with worker_pool(ManualClock()) as door:
        huge = framed(bytes(MAX_HELLO_BYTES + 1))
        other = encode(replace(Hello(1, VERSION, "x")))  # a text without the parts of a message
        for said in (huge[:24], huge, framed(other), framed(bytes(64)), framed(b"")):
            with door.connect() as wire:
                wire.sendall(said)
                assert is_closed(wire)
        assert within(PATIENCE_S, lambda: door.admission.refused == {UNKNOWN: 5})
        assert door.serves()


CROWD = """
import resource, time
from penstock.engine.api.clock import SystemClock
from penstock.engine.deploy.coordinator.worker_pool import WorkerPool
resource.setrlimit(resource.RLIMIT_NOFILE, (80, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
pool = WorkerPool(SystemClock())
print(pool.address[1], flush=True)
while pool.admission.refusals.refused < 80:
    time.sleep(0.01)
(worker,) = pool.take(1, 60_000)
while worker.state.value != "idle":
    assert worker.state.value != "lost", worker.why_lost
    time.sleep(0.01)
print("there", flush=True)
pool.close()
"""


def test_strangers_do_not_take_every_descriptor() -> None:
    """More idle connections than the process may have files: those that say nothing go, the worker comes."""
    with subprocess.Popen(
        [sys.executable, "-c", CROWD], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        port = int(program.stdout.readline())
        idle = [socket.create_connection(("127.0.0.1", port), timeout=10) for _ in range(100)]
        assert program.stdout.readline() == "there\n"
        for wire in idle:
            wire.close()
        assert program.wait(PATIENCE_S) == 0
