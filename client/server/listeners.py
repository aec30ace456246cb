"""The registry of listeners: by name the class that serves it, imported when its port is set."""

from __future__ import annotations

import importlib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.client.server.listener import Authenticator, Listener
from penstock.client.server.server_sessions import ServerSessions


@dataclass(frozen=True)
class ListenerEntry:
    """One listener. ``target`` is module and class; ``needs_context``: its constructor takes an SSL context,
    not the files of one.
    """

    target: str
    needs_context: bool = False


LISTENERS: Mapping[str, ListenerEntry] = {
    "flight": ListenerEntry("penstock.client.server.flight.flight_listener:FlightListener"),
    "postgres": ListenerEntry(
        "penstock.client.server.postgres.listener:PostgresListener", needs_context=True
    ),
    "web": ListenerEntry("penstock.client.server.web.listener:WebListener"),
}


@dataclass(frozen=True)
class TlsFiles:
    """The files of a certificate chain and of its key, in PEM."""

    certificate: Path
    key: Path


def make_listener(
    name: str,
    sessions: ServerSessions,
    authenticator: Authenticator,
    host: str,
    port: int,
    tls: TlsFiles | None = None,
) -> Listener:
    """Return a listener that is not started. CLI-6208 when what it needs is not installed, CLI-6209 for files
    of TLS that are none.
    """
    entry = LISTENERS[name]
    path, _, word = entry.target.partition(":")
    try:
        made = getattr(importlib.import_module(path), word)
    except ImportError as error:
        raise PenstockError(
            "CLI-6208",
            f"the {name} listener cannot be started: {error.name or error} is not installed",
            hint="pip install 'penstock[server]', or leave its port out",
            sqlstate="0A000",
        ) from error
    try:
        listener: Listener = made(sessions, authenticator, host, port, **_tls_arguments(entry, tls))
    except OSError as error:
        raise PenstockError(
            "CLI-6209",
            f"the files of TLS cannot be used: {error.strerror or error}",
            hint="--tls-cert takes a certificate chain in PEM and --tls-key its private key",
            sqlstate="58030",
        ) from error
    return listener


def _tls_arguments(entry: ListenerEntry, tls: TlsFiles | None) -> dict[str, Any]:
    if tls is None:
        return {}
    if not entry.needs_context:
        return {"tls": (tls.certificate, tls.key)}
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(tls.certificate, tls.key)
    return {"tls": context, "requires_tls": True}
