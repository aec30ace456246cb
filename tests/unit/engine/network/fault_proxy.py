"""A TCP proxy that does to a connection what networks do: delay, lose, cut, change. One per connection
under test, on this machine only.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from dataclasses import dataclass

from tests.harness.patience import PATIENCE_S

UP, DOWN = "up", "down"  # from who dialled to who listens, and back


@dataclass(frozen=True)
class Fault:
    """What happens to one direction once ``after`` bytes have passed in it.

    ``kind``: ``delay`` (each piece waits ``amount`` s), ``throttle`` (``amount`` bytes/s), ``blackhole``
    (taken, never given on), ``drop`` (``amount`` bytes vanish), ``corrupt`` (one bit of the next byte),
    ``reset`` (RST to both), ``half-close`` (end of stream in this direction only), ``close`` (end of stream
    in both).
    """

    kind: str
    direction: str = UP
    after: int = 0
    amount: float = 0.0


class FaultProxy:
    """Listens on 127.0.0.1 and passes every connection on to ``target``; a context manager. ``fired`` says
    whether a fault has happened.
    """

    def __init__(self, target: tuple[str, int], *faults: Fault) -> None:
        self._target = target
        self._faults = faults
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._listener.getsockname()
        self.passed = {UP: 0, DOWN: 0}
        self.fired = False
        self._sockets: list[socket.socket] = []
        self._stopped = threading.Event()

    def __enter__(self) -> FaultProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stopped.set()
        for one in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
                self._sockets += [near, far]
                for one in (near, far):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._pump, args=(near, far, UP), daemon=True).start()
                threading.Thread(target=self._pump, args=(far, near, DOWN), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, direction: str) -> None:
        pending = [fault for fault in self._faults if fault.direction == direction]
        with contextlib.suppress(OSError):
            while data := bytearray(source.recv(16_384)):
                rest: list[Fault] = []
                for fault in pending:
                    due = self.passed[direction] + len(data) > fault.after
                    if not due or self._happen(
                        fault, data, source, sink, max(0, fault.after - self.passed[direction])
                    ):
                        rest.append(fault)
                pending = rest
                self.passed[direction] += len(data)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def _happen(
        self, fault: Fault, data: bytearray, source: socket.socket, sink: socket.socket, place: int
    ) -> bool:
        """Let a fault happen at a place in the data; return whether it goes on happening."""
        self.fired = True
        match fault.kind:
            case "delay":
                self._stopped.wait(fault.amount)
                return True
            case "throttle":
                self._stopped.wait(len(data) / fault.amount)
                return True
            case "blackhole":
                del data[place:]
                return True
            case "drop":
                del data[place : place + int(fault.amount)]
            case "corrupt":
                data[place] ^= 0x10
            case "reset":
                for one in (source, sink):
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    with contextlib.suppress(OSError):
                        one.shutdown(socket.SHUT_RD)
                    one.close()
                raise ConnectionResetError
            case "half-close" | "close":
                sink.sendall(bytes(data[:place]))
                sink.shutdown(socket.SHUT_WR)
                if fault.kind == "close":
                    source.shutdown(socket.SHUT_RDWR)
                    sink.close()
                self._stopped.wait()  # this direction is over, the other goes on
                raise ConnectionAbortedError
        return False


def wait_until(condition: object, seconds: float = PATIENCE_S) -> bool:
    """Wait for something to become true; return whether it has."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.005)
    return False
