"""``python -m bench.network``: what the data plane carries between two processes over loopback, and how
long a small batch takes there and back.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.api.clock import SystemClock
from penstock.engine.api.stream_elements import Batch, EndOfInput, Idle
from penstock.engine.exchange.channel import no_wakeup
from penstock.engine.network.data_plane import DataPlane
from penstock.engine.network.handshake import Identity

TOKEN = "bench"


def _plane(name: str) -> DataPlane:
    def lost(peer: str, cause: Exception) -> None:
        print(f"{name} lost {peer}: {cause}", file=sys.stderr, flush=True)

    return DataPlane(Identity(name, "bench", 1, 1, TOKEN), SystemClock(), lost)


def _rows(count: int) -> pa.RecordBatch:
    """Four columns: two of 8-byte integers, one of doubles, one of short strings."""
    return pa.record_batch(
        {
            "id": np.arange(count),
            "t": np.arange(count) * 1000,
            "x": np.arange(count) * 0.5,
            "name": [f"name-{n % 1000}" for n in range(count)],
        }
    )


def _take(channel: Any, there: threading.Event) -> Any:
    while not len(channel):
        there.wait(0.5)
        there.clear()
    return channel.take()


def _put(channel: Any, room: threading.Event, element: Any) -> None:
    while channel.full:
        room.wait(0.5)
        room.clear()
    channel.put(element)


def consume(port: int) -> None:
    """The other process: takes everything of ``stream``, answers every element of ``ask`` on ``answer``."""
    plane = _plane("a")
    there = threading.Event()
    stream, ask, answer = (
        plane.receiver("stream", 16, there.set),
        plane.receiver("ask", 16, there.set),
        plane.sender("answer", "b", no_wakeup),
    )
    plane.connect("b", ("127.0.0.1", port))
    for channel, replies in ((stream, False), (ask, True)):
        while not isinstance(element := _take(channel, there), EndOfInput):
            if replies:
                answer.put(element)
        answer.put(EndOfInput() if replies else Idle())
    plane.close()


def report(seconds: float = 3.0) -> None:
    """Print a table: batch size, rows/s, MB/s of payload; then the round trip of batches of one row."""
    plane = _plane("b")
    room, there = threading.Event(), threading.Event()
    stream, ask = plane.sender("stream", "a", room.set), plane.sender("ask", "a", room.set)
    answer = plane.receiver("answer", 16, there.set)
    peer = subprocess.Popen([sys.executable, "-m", "bench.network", "--consume", str(plane.address[1])])
    print(
        f"{'data plane, two processes, loopback':38} {'rows/s':>14} {'MB/s':>9} {'batches/s':>11}", flush=True
    )
    for size in (8192, 512, 16):
        batch = Batch(_rows(size))
        _put(stream, room, batch)
        bytes_before, start, count = plane.counters().bytes_out, time.perf_counter(), 0
        while (spent := time.perf_counter() - start) < seconds:
            _put(stream, room, batch)
            count += 1
        sent = plane.counters().bytes_out - bytes_before
        print(
            f"{f'batches of {size} rows':38} {size * count / spent:14,.0f} {sent / spent / 1e6:9,.1f} {count / spent:11,.0f}",
            flush=True,
        )
    _put(stream, room, EndOfInput())
    _take(answer, there)
    small, times = Batch(_rows(1)), []
    for _ in range(2000):
        start = time.perf_counter()
        _put(ask, room, small)
        _take(answer, there)
        times.append((time.perf_counter() - start) * 1e6)
    middle, worst = np.percentile(times, [50, 99])
    print(
        f"{'1 row there and back, microseconds':38} {f'p50 {middle:,.0f}':>14} {f'p99 {worst:,.0f}':>9}",
        flush=True,
    )
    _put(ask, room, EndOfInput())
    _take(answer, there)
    peer.wait(10)
    plane.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="how long each size is measured (3)")
    parser.add_argument("--consume", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.consume:
        consume(arguments.consume)
    else:
        report(arguments.seconds)
