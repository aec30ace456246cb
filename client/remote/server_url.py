"""The URL of a server: ``penstock://user:password@host:port/catalog.database?token=..&tls=..&setting=..``, or
of a socket of this machine: ``penstock+unix:///path``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from penstock.catalog.errors import PenstockError

SCHEME = "penstock"
SOCKET_SCHEME = "penstock+unix"
DEFAULT_PORT = 8815
_FORM = "write penstock://host:port, as in penstock://127.0.0.1:8815"
_YES = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}


@dataclass(frozen=True)
class ServerUrl:
    """Where a server is and who connects. ``tls``: None without, else the file of the authority's
    certificate, or "" for those of the machine. ``settings``: what the session starts with. ``socket``: the
    path of a socket, in place of host and port.
    """

    host: str
    port: int = DEFAULT_PORT
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    tls: str | None = None
    catalog: str | None = None
    database: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    socket: str | None = None

    @property
    def location(self) -> str:
        """Where gRPC connects."""
        scheme = "grpc+unix" if self.socket is not None else "grpc" if self.tls is None else "grpc+tls"
        return f"{scheme}://{self.address}"

    @property
    def address(self) -> str:
        """Host and port, or the path of the socket, for messages."""
        if self.socket is not None:
            return self.socket
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def certificate(self) -> bytes | None:
        """The certificate that the server's is checked by; None for those of the machine. CLI-6240 for a file
        that cannot be read.
        """
        if not self.tls:
            return None
        try:
            return Path(self.tls).read_bytes()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            message = f"cannot read the certificate {self.tls}: {reason}"
            raise PenstockError(
                "CLI-6240", message, hint="tls= names a file in PEM", sqlstate="58030"
            ) from error


def parse_url(url: str) -> ServerUrl:
    """Return what a URL says. CLI-6240 for another scheme, no host, or a port that is none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise _refused(f"the URL of the server cannot be read: {error}") from error
    if parts.scheme == SOCKET_SCHEME and parts.path and not parts.netloc:
        return ServerUrl("", 0, socket=unquote(parts.path))
    if parts.scheme != SCHEME:
        raise _refused(f"{parts.scheme or 'a URL without a scheme'} is no scheme of a server")
    if not parts.hostname:
        raise _refused("the URL of the server has no host")
    words = dict(parse_qsl(parts.query, keep_blank_values=True))
    token, tls = words.pop("token", None), words.pop("tls", "false")
    catalog, database = _namespace(unquote(parts.path.strip("/")))
    return ServerUrl(
        parts.hostname,
        DEFAULT_PORT if port is None else port,
        None if parts.username is None else unquote(parts.username),
        None if parts.password is None else unquote(parts.password),
        token,
        _tls(tls),
        catalog,
        database,
        words,
    )


def host_url(text: str) -> str:
    """Return the URL of ``HOST``, ``HOST:PORT`` or a URL, as ``--host`` takes them."""
    return text if "://" in text else f"{SCHEME}://{text}"


def _namespace(path: str) -> tuple[str | None, str | None]:
    """Return catalog and database of ``catalog.database``; one word is a catalog."""
    catalog, _, database = path.partition(".")
    return catalog or None, database or None


def _tls(word: str) -> str | None:
    known = _YES.get(word.lower())
    # any other word is the file of a certificate
    return word if known is None else "" if known else None


def _refused(message: str) -> PenstockError:
    return PenstockError("CLI-6240", message, hint=_FORM, sqlstate="08001")
