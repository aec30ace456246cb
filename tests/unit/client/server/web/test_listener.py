"""The life of a web listener: its address, a port that is taken, draining and its end."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from pathlib import Path

import pytest
import trustme

from penstock.catalog.errors import PenstockError
from penstock.client.server.server_sessions import ServerSessions
from penstock.client.server.web.listener import WebListener
from penstock.client.session import Session
from tests.harness.patience import PATIENCE_S
from tests.harness.web_listener import TestAuthenticator, web_server


def test_a_port_that_is_taken() -> None:
    with web_server(Session()) as server:
        port = int(server.listener.address.rpartition(":")[2])
        sessions = ServerSessions(lambda settings: server.session, lambda: 0)
        other = WebListener(sessions, TestAuthenticator(required=False), "127.0.0.1", port)
        with pytest.raises(PenstockError) as refused:
            other.start()
        assert refused.value.code == "CLI-6203"
        assert str(port) in refused.value.message
        other.close()


def test_draining_is_reported_to_open_connections() -> None:
    with web_server(Session()) as server:
        kept = server.connect()
        kept.request("GET", "/ready")
        assert kept.getresponse().read() == b"ready\n"
        server.listener.stop_accepting()
        kept.request("GET", "/ready")
        answer = kept.getresponse()
        assert (answer.status, answer.read()) == (503, b"draining\n")
        kept.close()


def test_close_ends_streams_and_frees_the_port() -> None:
    with web_server(Session()) as server:
        host, _, port = server.listener.address.rpartition(":")
        with server.events("GET", "/api/v1/jobs/stream") as events:
            assert next(events)[0] == "jobs"
            server.listener.close()
            # the end of the stream, or of its connection
            with contextlib.suppress(OSError, http.client.HTTPException):
                list(events)
        with socket.create_server((host, int(port))):
            pass


def test_tls_makes_the_cookie_secure(tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(str(chain))
    issued.private_key_pem.write_to_path(str(key))
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with web_server(Session(), authenticated=True, tls=(chain, key)) as server:
        address = server.listener.address
        connection = http.client.HTTPSConnection(address, timeout=PATIENCE_S, context=context)
        body = '{"user": "ann", "password": "open sesame"}'
        connection.request("POST", "/api/v1/login", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status == 200
        assert "; Secure" in answer.headers["Set-Cookie"]
        connection.close()
