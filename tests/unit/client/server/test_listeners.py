"""The registry of listeners: each is there, and takes the files of TLS in its own way."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme

from penstock.client.server.listeners import LISTENERS, TlsFiles, make_listener
from penstock.client.server.security.authenticators import OpenAuthenticator
from penstock.client.server.server_sessions import ServerSessions
from penstock.client.session import Session

ROOT = Path(__file__).resolve().parents[4]
# a listener that is not written yet has an entry and no file
THERE = [
    name
    for name, entry in LISTENERS.items()
    if (ROOT / entry.target.partition(":")[0].removeprefix("penstock.").replace(".", "/"))
    .with_suffix(".py")
    .exists()
]


@pytest.mark.parametrize("name", THERE)
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
