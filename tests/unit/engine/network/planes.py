"""Two data planes in this process, a numbered stream from one to the other, and what its consumer saw."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import SystemClock
from penstock.engine.api.stream_elements import Batch, Element, EndOfInput, Watermark
from penstock.engine.network.data_plane import DataPlane
from penstock.engine.network.handshake import Identity
from penstock.engine.network.link import LinkLimits
from penstock.engine.network.listener_options import Listening, TlsContexts
from tests.unit.engine.network.fault_proxy import Fault, FaultProxy, wait_until

LIMITS = LinkLimits(hello_ms=600.0, ping_ms=50.0, silence_ms=400.0, close_ms=300.0)
ROWS = 50


def numbered(number: int) -> Element:
    """The element that stands at a place of the stream: its content says which."""
    if number % 10 == 9:
        return Watermark(number)
    return Batch(
        pa.record_batch({"v": np.full(ROWS, number), "s": [f"row {number}"] * ROWS}),
        np.full(ROWS, number, np.int64),
    )


def number_of(element: Element) -> int | str:
    """Which element of the stream this is, or what is wrong with it."""
    if isinstance(element, Watermark):
        return element.time_us if element.time_us % 10 == 9 else "a wrong watermark"
    if not isinstance(element, Batch) or element.weights is None or element.num_rows != ROWS:
        return "a wrong element"
    number = int(element.weights[0])
    good = element.rows.to_pydict() == {"v": [number] * ROWS, "s": [f"row {number}"] * ROWS} and set(
        element.weights.tolist()
    ) == {number}
    return number if good else "wrong rows"


def plane(name: str, lost: list[tuple[str, str, PenstockError]], **options: object) -> DataPlane:
    identity = Identity(name, "job", 1, 1, str(options.pop("token", "secret")))
    options = {"limits": LIMITS, "clock": SystemClock(), **options}
    return DataPlane(identity, link_lost=lambda peer, cause: lost.append((name, peer, cause)), **options)  # type: ignore[arg-type]


@dataclass
class Outcome:
    """What the consumer took, in order, whether it was all, and which losses were reported (by whom, of
    whom, why).
    """

    numbers: list[int | str] = field(default_factory=list)
    complete: bool = False
    lost: list[tuple[str, str, PenstockError]] = field(default_factory=list)
    fired: bool = False


def stream(
    count: int, *faults: Fault, checksum: bool = True, tls: TlsContexts | None = None, capacity: int = 4
) -> Outcome:
    """Send ``count`` numbered elements through a proxy with faults, until all have come or a loss was
    reported.
    """
    outcome, lost = Outcome(), list[tuple[str, str, PenstockError]]()
    a = plane("a", lost, checksum=checksum, listening=Listening(tls=tls))
    b = plane("b", lost, checksum=checksum, listening=Listening(tls=tls))
    wake_producer, wake_consumer = threading.Event(), threading.Event()
    try:
        with FaultProxy(b.address, *faults) as proxy:
            sender, receiver = (
                a.sender("k", "b", wake_producer.set),
                b.receiver("k", capacity, wake_consumer.set),
            )
            a.connect("b", proxy.address)
            b.connect("a", a.address)
            number = 0
            while not outcome.complete and not lost:
                while number <= count and not sender.full:
                    sender.put(numbered(number) if number < count else EndOfInput())
                    number += 1
                wake_consumer.wait(0.02)
                wake_consumer.clear()
                while len(receiver):
                    element = receiver.take()
                    outcome.complete = isinstance(element, EndOfInput)
                    if not outcome.complete:
                        outcome.numbers.append(number_of(element))
            if lost:
                wait_until(lambda: {name for name, _, _ in lost} == {"a", "b"}, 2.0)
                while len(receiver):
                    outcome.numbers.append(number_of(receiver.take()))
            outcome.fired, outcome.lost = proxy.fired, list(lost)  # before the proxy itself goes
    finally:
        b.close()
        a.close()
    return outcome
