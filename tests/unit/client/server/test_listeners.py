"""The registry of listeners: each is there, and takes the files of TLS in its own way."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme
import urllib3

from penstock.catalog.errors import PenstockError
from penstock.client.server.listeners import LISTENERS, TlsFiles, make_listener
from penstock.client.server.security.authenticators import OpenAuthenticator
from penstock.client.server.server_sessions import ServerSessions
from penstock.client.session import Session


@pytest.mark.parametrize("name", LISTENERS)
@pytest.mark.parametrize("with_tls", [False, True])
def test_each_listens_on_a_free_port(name: str, with_tls: bool, tmp_path: Path) -> None:
    certificate = trustme.CA().issue_cert("localhost", "127.0.0.1")
    files = TlsFiles(tmp_path / "cert.pem", tmp_path / "key.pem")
    certificate.cert_chain_pems[0].write_to_path(str(files.certificate))
    certificate.private_key_pem.write_to_path(str(files.key))
    sessions = ServerSessions(lambda settings: Session(settings), lambda: 0)
    tls = files if with_tls else None
    listener = make_listener(name, sessions, OpenAuthenticator(), "127.0.0.1", 0, tls)
    listener.start()
    try:
        assert listener.name == name
        host, _, port = listener.address.rpartition(":")
        assert host == "127.0.0.1" and int(port) > 0
    finally:
        listener.stop_accepting()
        listener.close()


def test_a_server_that_waits_is_alive_and_not_ready() -> None:
    sessions = ServerSessions(lambda settings: Session(settings), lambda: 0)
    listener = make_listener("web", sessions, OpenAuthenticator(), "127.0.0.1", 0)
    listener.start()
    try:
        answers = []
        for refusal in ("it waits for the server there:1", ""):
            sessions.refusal = refusal
            answers += [
                urllib3.request("GET", f"http://{listener.address}/{page}").status
                for page in ("health", "ready")
            ]
        assert answers == [200, 503, 200, 200]
    finally:
        listener.stop_accepting()
        listener.close()


def test_files_of_tls_that_are_none_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("nothing")
    sessions = ServerSessions(lambda settings: Session(settings), lambda: 0)
    with pytest.raises(PenstockError) as raised:
        files = TlsFiles(tmp_path / "cert.pem", tmp_path / "cert.pem")
        make_listener("postgres", sessions, OpenAuthenticator(), "127.0.0.1", 0, files)
    assert raised.value.code == "CLI-6209"
