"""A broker whose fetches wait for records, as those of Kafka do: a relay before the broker of the tests, in a
process of its own (``python tests/harness/kafka_long_poll.py PORT PAUSE_S``).

The broker of the tests answers a fetch without records at once, whatever ``fetch.wait.max.ms`` says. So each
idle reader asks it 10,000 times a second, and two readers take all the time of two processors. The relay
asks again each millisecond, and answers once there are records or the fetch has waited as long as it may.
It is for measurements of time, with topics of one partition.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

BEHIND, BEFORE = "127.0.0.1", "127.0.0.2"
"""The address of the broker, and that of the relay at the same port."""

_FETCH = 1
# from this version on a header has tagged fields
_FLEXIBLE_FETCH = 12
# an answer without records, of one partition, is shorter; a batch alone has 61 bytes and its records
_EMPTY_BYTES = 140
_AGAIN_S = 0.001
# answers without records are shorter, of up to 16 partitions
_SHORT_BYTES = 1000


def _frame(connection: socket.socket) -> bytes | None:
    """Return the next message with its length; ``None`` at the end."""
    head = _exactly(connection, 4)
    if head is None:
        return None
    body = _exactly(connection, int.from_bytes(head))
    return None if body is None else head + body


def _exactly(connection: socket.socket, count: int) -> bytes | None:
    pieces = []
    while count:
        piece = connection.recv(min(count, 1 << 20))
        if not piece:
            return None
        pieces.append(piece)
        count -= len(piece)
    return b"".join(pieces)


class _Relay:
    """One connection of a client, and that to the broker behind."""

    def __init__(self, client: socket.socket, port: int, pause_s: float) -> None:
        self._client, self._broker = client, socket.create_connection((BEHIND, port))
        self._pause_s = pause_s
        for end in (client, self._broker):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # fetches that are not answered: the request, and until when it waits
        self._fetches: dict[int, tuple[bytes, float]] = {}
        self._sending = threading.Lock()
        for act in (self._requests, self._answers):
            threading.Thread(target=self._until_end, args=(act,), daemon=True).start()

    def _until_end(self, act: Callable[[], None]) -> None:
        with contextlib.suppress(OSError):
            act()
        for end in (self._client, self._broker):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _requests(self) -> None:
        while (frame := _frame(self._client)) is not None:
            key, version, number = struct.unpack_from(">hhi", frame, 4)
            if key == _FETCH:
                (name,) = struct.unpack_from(">h", frame, 12)
                place = 14 + max(0, name) + (version >= _FLEXIBLE_FETCH) + 4
                (wait_ms,) = struct.unpack_from(">i", frame, place)
                self._fetches[number] = frame, time.monotonic() + wait_ms / 1e3
            self._send(frame)

    def _send(self, frame: bytes) -> None:
        with self._sending:
            self._broker.sendall(frame)

    def _answers(self) -> None:
        while (frame := _frame(self._broker)) is not None:
            (number,) = struct.unpack_from(">i", frame, 4)
            fetch = self._fetches.get(number)
            if fetch is not None and self._pause_s:
                if len(frame) < _SHORT_BYTES:
                    time.sleep(self._pause_s)
            elif fetch is not None and len(frame) < _EMPTY_BYTES and time.monotonic() < fetch[1]:
                time.sleep(_AGAIN_S)
                self._send(fetch[0])
                continue
            self._fetches.pop(number, None)
            # brokers tell their own address: clients shall come here
            answer = frame if fetch is not None else frame.replace(BEHIND.encode(), BEFORE.encode())
            self._client.sendall(answer)


def serve(port: int, pause_s: float) -> None:
    """Relay connections until standard input ends."""
    listening = socket.create_server((BEFORE, port))
    sys.stdout.write(f"{BEFORE}:{port}\n")
    sys.stdout.flush()
    threading.Thread(target=_accept, args=(listening, port, pause_s), daemon=True).start()
    sys.stdin.read()


def _accept(listening: socket.socket, port: int, pause_s: float) -> None:
    while True:
        client, _ = listening.accept()
        # a broker that is away refuses this client, and not those that come when it is back
        with contextlib.suppress(OSError), contextlib.ExitStack() as ends:
            ends.callback(client.close)
            _Relay(client, port, pause_s)
            ends.pop_all()


@contextlib.contextmanager
def long_polls(port: int, pause_s: float = 0.0) -> Iterator[str]:
    """Start the relay of a broker at a port of ``BEHIND``; yields its address, as bootstrap.servers has it."""
    # the file, not the module: a caller in another directory would not find that
    words = [sys.executable, Path(__file__), str(port), str(pause_s)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            if not address:
                raise RuntimeError("the relay before the broker has ended; standard error has its reason")
            yield address
        finally:
            process.stdin.close()


if __name__ == "__main__":
    serve(int(sys.argv[1]), float(sys.argv[2]))
