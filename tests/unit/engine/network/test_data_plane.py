"""Data planes over real sockets: under each fault of a network the consumer gets every element exactly in
order, or the loss is reported.
"""

from __future__ import annotations

import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import ManualClock
from penstock.engine.api.stream_elements import EndOfInput, Watermark
from penstock.engine.exchange.channel import no_wakeup
from penstock.engine.network.listener_options import Listening, TlsContexts
from tests.harness.patience import PATIENCE_S
from tests.unit.engine.network.fault_proxy import DOWN, UP, Fault, FaultProxy, wait_until
from tests.unit.engine.network.planes import LIMITS, number_of, numbered, plane, stream

COUNT = 120
LOSSES = [
    Fault("blackhole", UP, 20_000),
    Fault("blackhole", DOWN, 400),
    Fault("blackhole", UP, 0),
    Fault("reset", UP, 20_000),
    Fault("reset", DOWN, 300),
    Fault("half-close", UP, 20_000),
    Fault("half-close", DOWN, 300),
    Fault("close", UP, 20_000),
    Fault("corrupt", UP, 30_000),
    Fault("corrupt", UP, 50),
    Fault("corrupt", DOWN, 300),
    Fault("drop", UP, 30_000, 1),
    Fault("drop", UP, 30_000, 500),
    Fault("drop", DOWN, 300, 3),
]


@pytest.mark.parametrize(
    "fault",
    [Fault("delay", UP, 0, 0.01), Fault("delay", DOWN, 0, 0.01), Fault("throttle", UP, 0, 2e6)],
    ids=str,
)
def test_slow_networks_lose_nothing(fault: Fault) -> None:
    outcome = stream(COUNT, fault)
    assert outcome.fired and outcome.complete and not outcome.lost
    assert outcome.numbers == list(range(COUNT))


@pytest.mark.parametrize("fault", LOSSES, ids=str)
def test_what_breaks_a_connection_is_reported_by_both_and_nothing_wrong_comes_out(fault: Fault) -> None:
    outcome = stream(COUNT, fault)
    assert outcome.fired
    assert outcome.numbers == list(range(len(outcome.numbers)))
    assert not outcome.complete
    assert sorted((name, peer) for name, peer, _ in outcome.lost) == [("a", "b"), ("b", "a")]
    assert all(cause.code.startswith("NET-50") and cause.retriable for _, _, cause in outcome.lost)


def test_without_the_checksum_a_corrupted_byte_gets_through() -> None:
    """What the tests above would not notice if they looked away: the same fault without the check gives
    other rows.
    """
    wrong = 0
    for after in (30_000, 30_400, 30_800, 31_200):
        outcome = stream(COUNT, Fault("corrupt", UP, after), checksum=False)
        wrong += outcome.numbers != list(range(len(outcome.numbers)))
    assert wrong


def test_a_peer_that_cannot_be_reached_is_reported_once() -> None:
    lost: list[tuple[str, str, PenstockError]] = []
    a, gone = plane("a", lost), plane("b", lost)
    gone.close()
    a.connect("b", gone.address)
    assert wait_until(lambda: len(lost) == 1)
    b = plane("b", lost)
    b.connect("a", a.address)  # who would dial is not told of b
    assert wait_until(lambda: len(lost) == 2)
    assert [(name, peer, cause.code) for name, peer, cause in lost] == [
        ("a", "b", "NET-5013"),
        ("b", "a", "NET-5013"),
    ]
    for each in (a, b):
        each.close()


def test_a_wrong_token_is_refused_and_both_sides_count_or_report_it() -> None:
    lost: list[tuple[str, str, PenstockError]] = []
    a, b = plane("a", lost, token="guess"), plane("b", lost)
    a.connect("b", b.address)
    assert wait_until(lambda: lost)
    assert [(name, peer, cause.code) for name, peer, cause in lost] == [("a", "b", "NET-5007")]
    assert b.refused == {"NET-5007": 1}
    a.close()
    b.close()


def test_three_planes_all_ways() -> None:
    """One connection per pair, channels both ways on it, receivers before and after the connection."""
    lost: list[tuple[str, str, PenstockError]] = []
    names = ("a", "b", "c")
    planes = {name: plane(name, lost) for name in names}
    ways = [(one, other, n) for one in names for other in names if one != other for n in range(3)]
    receivers = {
        (one, other, n): planes[other].receiver(f"{one}>{other}:{n}", 4, no_wakeup)
        for one, other, n in ways
        if n
    }
    senders = {
        (one, other, n): planes[one].sender(f"{one}>{other}:{n}", other, no_wakeup) for one, other, n in ways
    }
    for one in names:
        for other in names:
            if one != other:
                planes[one].connect(other, planes[other].address)
    receivers |= {
        (one, other, n): planes[other].receiver(f"{one}>{other}:{n}", 4, no_wakeup)
        for one, other, n in ways
        if not n
    }
    taken: dict[tuple[str, str, int], list[object]] = {way: [] for way in ways}
    put = dict.fromkeys(ways, 0)

    def turn() -> bool:
        for way in ways:
            while put[way] <= 30 and not senders[way].full:
                senders[way].put(numbered(put[way]) if put[way] < 30 else EndOfInput())
                put[way] += 1
            while len(receivers[way]):
                element = receivers[way].take()
                taken[way].append("end" if isinstance(element, EndOfInput) else number_of(element))
        return all(numbers[-1:] == ["end"] for numbers in taken.values())

    assert wait_until(turn)
    assert all(numbers == [*range(30), "end"] for numbers in taken.values()) and not lost
    assert planes["a"].counters().elements_in == planes["a"].counters().elements_out == 6 * 31
    for each in planes.values():
        each.close()
    assert not lost  # every channel had ended: to leave is no loss


def test_nobody_is_kept_out_by_those_who_say_nothing() -> None:
    """200 connections that say nothing, one that says HTTP: others are served meanwhile, and all of them
    are dropped and counted. Their time is over when the test says so: a peer would be late too, on a machine
    that runs twenty other programs. The peer's own time passes, but it is patient.
    """
    import socket

    lost: list[tuple[str, str, PenstockError]] = []
    clock, limits = ManualClock(), replace(LIMITS, silence_ms=60_000.0)
    patient = replace(LIMITS, hello_ms=PATIENCE_S * 1e3, silence_ms=PATIENCE_S * 1e3)
    a, b = plane("a", lost, limits=patient), plane("b", lost, clock=clock, limits=limits)
    idle = [socket.create_connection(b.address) for _ in range(200)]
    browser = socket.create_connection(b.address)
    browser.sendall(b"GET / HTTP/1.1\r\n\r\n")
    sender, receiver = a.sender("k", "b", no_wakeup), b.receiver("k", 4, no_wakeup)
    a.connect("b", b.address)
    sender.put(Watermark(5))
    assert wait_until(lambda: len(receiver))
    browser.settimeout(PATIENCE_S)
    assert browser.recv(10) == b""
    assert not b.refused["NET-5009"]
    clock.advance(limits.hello_ms)
    assert wait_until(lambda: b.refused["NET-5009"] == 200) and b.refused["NET-5001"] == 1
    idle[0].settimeout(PATIENCE_S)
    assert idle[0].recv(10) == b""
    for one in (*idle, browser):
        one.close()
    sender.put(Watermark(6))
    assert wait_until(lambda: len(receiver) == 2) and not lost
    a.close()
    b.close()


def test_a_hello_byte_by_byte_is_dropped_in_time() -> None:
    import socket

    lost: list[tuple[str, str, PenstockError]] = []
    b = plane("b", lost)
    slow = socket.create_connection(b.address)
    stop = threading.Event()

    def drip() -> None:
        for byte in b"PSK1" + bytes([1]) + bytes(15):
            try:
                slow.send(bytes([byte]))
            except OSError:
                return
            if stop.wait(0.1):
                return

    thread = threading.Thread(target=drip)
    thread.start()
    assert wait_until(lambda: b.refused["NET-5009"] == 1)
    stop.set()
    thread.join()
    slow.close()
    b.close()


def certificates(folder: Path) -> TlsContexts:
    import ssl

    key, certificate = folder / "key.pem", folder / "cert.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
        "-days",
        "2",
    ]
    subprocess.run(
        [*command, "-subj", "/CN=penstock", "-addext", "subjectAltName=IP:127.0.0.1"],
        check=True,
        capture_output=True,
    )
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in (server, client):
        context.load_cert_chain(certificate, key)
        context.load_verify_locations(certificate)
        context.verify_mode = ssl.CERT_REQUIRED
    return TlsContexts(server, client)


def test_over_tls(tmp_path: Path) -> None:
    tls = certificates(tmp_path)
    outcome = stream(COUNT, Fault("delay", UP, 0, 0.001), tls=tls)
    assert outcome.complete and outcome.numbers == list(range(COUNT)) and not outcome.lost
    # TLS has a checksum of its own
    broken = stream(COUNT, Fault("corrupt", UP, 30_000), tls=tls, checksum=False)
    assert not broken.complete and broken.lost and broken.numbers == list(range(len(broken.numbers)))
    lost: list[tuple[str, str, PenstockError]] = []
    open_to_all = plane("a", lost)
    b = plane("b", lost, listening=Listening(tls=tls))
    with FaultProxy(b.address) as proxy:
        open_to_all.connect("b", proxy.address)
        assert wait_until(lambda: lost)
    open_to_all.close()
    b.close()


def test_rows_do_not_leave_the_machine_without_tls() -> None:
    lost: list[tuple[str, str, PenstockError]] = []
    for host in ("0.0.0.0", "192.0.2.1", "::", "example.org"):
        with pytest.raises(PenstockError, match="without TLS") as caught:
            plane("a", lost, listening=Listening(host))
        assert caught.value.code == "NET-5012" and "certificates" in (caught.value.hint or "")
    a = plane("a", lost)
    with pytest.raises(PenstockError, match=r"cannot connect to 192\.0\.2\.1 without TLS"):
        a.connect("b", ("192.0.2.1", 1))
    a.close()
