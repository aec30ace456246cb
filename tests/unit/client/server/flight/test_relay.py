"""What strangers may send to the Flight port: the counts, and a real message of 160 MB (600 MB in make soak)."""

from __future__ import annotations

import socket
import subprocess
import sys
import textwrap
from contextlib import ExitStack
from pathlib import Path

import pytest

import penstock
from penstock.client.server.flight import flight_listener as listener_module
from penstock.client.server.flight.stranger_limits import StrangerLimits, Strangers
from tests.harness.flight_server import TestAuthenticator, flight_listener
from tests.harness.length import of_length
from tests.harness.patience import await_that

ROOT = Path(__file__).resolve().parents[5]
TOKENS = {"good": "ann"}
SENT_MB = of_length(160, 600)
GROWTH_MB = 32
STRANGER = """
import sys
from pyarrow import flight
client = flight.connect(f"grpc://{sys.argv[1]}")
descriptor = flight.FlightDescriptor.for_command(b"x" * (int(sys.argv[2]) << 20))
options = flight.FlightCallOptions(headers=[(b"authorization", b"Bearer wrong")], timeout=100)
try:
    client.get_flight_info(descriptor, options)
except Exception as error:
    print(type(error).__name__)
"""
# a server of its own, whose memory is looked at
SERVER = """
import sys, time
from tests.harness.flight_server import TestAuthenticator, flight_listener
from penstock.client.server.flight import flight_listener as module
if sys.argv[1] == "without":
    module.is_supported = lambda: False
with flight_listener(TestAuthenticator(tokens={"good": "ann"})) as listener:
    print(listener.address, flush=True)
    sys.stdin.read()
    print(listener.refused_strangers, flush=True)
"""


def test_a_stranger_is_counted_until_it_is_trusted() -> None:
    strangers = Strangers(StrangerLimits(bytes=100, seconds=5, connections=2))
    assert strangers.admit(1, 0.0) is None and strangers.admit(2, 1.0) is None
    assert strangers.allowance(1) == 100 and strangers.count(1, 60) and strangers.allowance(1) == 40
    assert not strangers.count(1, 40)
    # whoever is trusted sends what it likes, as long as it likes
    strangers.trust(2)
    assert strangers.allowance(2) is None and strangers.count(2, 10**9)
    assert strangers.admit(3, 2.0) is None
    # few at once: the oldest goes
    assert strangers.admit(4, 2.0) == 1
    strangers.forget(4)
    assert strangers.overdue(4.9) == [] and strangers.overdue(5.0) == [1] and strangers.overdue(7.0) == [1, 3]
    strangers.forget(1)
    assert strangers.overdue(9.0) == [3] and strangers.refused == 6


def grown_mb(how: str) -> tuple[int, int]:
    """Return by how much the memory of a server grows under a stranger's message, and whom it refused."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, how],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None and server.stdin is not None
    with server:
        address = server.stdout.readline().strip()
        with _client(address) as client:
            assert client.execute("SELECT 1").fetchall() == [(1,)]
            before = peak_mb(server.pid)
            words = [sys.executable, "-c", textwrap.dedent(STRANGER), address, str(SENT_MB)]
            told = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
            assert told.startswith("Flight"), told
            after = peak_mb(server.pid)
            # honest clients go on
            assert client.execute("SELECT 2").fetchall() == [(2,)]
        server.stdin.close()
        return after - before, int(server.stdout.readline())


def _client(address: str) -> penstock.Connection:
    return penstock.connect(f"penstock://{address}?token=good")


def peak_mb(pid: int) -> int:
    """Return the most memory a process ever had."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("VmHWM"))


@pytest.mark.longer
def test_a_large_message_costs_a_server_nothing() -> None:
    grown, refused = grown_mb("with")
    assert grown <= GROWTH_MB and refused >= 1, (grown, refused)


@pytest.mark.at_length
def test_without_the_relay_it_costs_what_it_is_long() -> None:
    grown, refused = grown_mb("without")
    assert grown > SENT_MB and refused == 0


def test_silent_strangers_are_closed_and_sessions_have_their_clients_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = StrangerLimits(seconds=0.5)
    monkeypatch.setattr(listener_module, "StrangerLimits", lambda: limits)
    with flight_listener(TestAuthenticator(tokens=TOKENS)) as listener, _client(listener.address) as client:
        host, _, port = listener.address.rpartition(":")
        with socket.create_connection((host, int(port))) as silent:
            silent.settimeout(60)
            # the server's own preface comes first
            while silent.recv(4096):
                pass
        await_that(lambda: listener.refused_strangers >= 1, "the stranger is counted")
        # a client that is known stays
        assert client.execute("SELECT 1").fetchall() == [(1,)]
        (session,) = listener.clients.all()
        assert session.server.client.address.startswith("127.0.0.1:")
        # more than a stranger may send, both ways
        text = "x" * 900_000
        assert client.execute(f"SELECT LENGTH('{text}')").fetchall() == [(900_000,)]


def test_a_crowd_of_strangers_keeps_nobody_out() -> None:
    with flight_listener(TestAuthenticator(tokens=TOKENS)) as listener, ExitStack() as crowd:
        host, _, port = listener.address.rpartition(":")
        for _ in range(2 * StrangerLimits().connections):
            crowd.enter_context(socket.create_connection((host, int(port))))
        with _client(listener.address) as client:
            assert client.execute("SELECT 1").fetchall() == [(1,)]
        assert listener.refused_strangers >= StrangerLimits().connections
