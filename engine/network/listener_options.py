"""The address and ports of a listener, and the TLS of its connections."""

from __future__ import annotations

import errno
import ipaddress
import socket
import ssl
from dataclasses import dataclass

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.cluster_options import Certificates
from penstock.engine.network.errors import NEEDS_TLS


@dataclass(frozen=True)
class TlsContexts:
    """The TLS contexts of connections: ``server`` for accepted ones, ``client`` for dialled ones."""

    server: ssl.SSLContext
    client: ssl.SSLContext


@dataclass(frozen=True)
class Listening:
    """The address, and the first and last port to listen on (0: any). Without ``tls``, ``encrypted``
    restricts connections to loopback.
    """

    host: str = "127.0.0.1"
    ports: tuple[int, int] = (0, 0)
    tls: TlsContexts | None = None
    encrypted: bool = True

    def listener(self, backlog: int) -> socket.socket:
        """Return a listening socket on the first port that is free. NET-5012 off loopback without TLS,
        NET-5016 when no port is free.
        """
        self.check(self.host, "listen on")
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        first, last = self.ports
        for port in range(first, last + 1):
            try:
                return socket.create_server((self.host, port), family=family, backlog=backlog)
            except OSError as cause:
                # no other port would help
                if cause.errno != errno.EADDRINUSE:
                    raise _no_port(self.host, f"port {port}", str(cause.strerror)) from cause
        raise _no_port(self.host, f"ports {first}-{last}", "all are in use")

    def check(self, host: str, what: str) -> None:
        """Refuse to let rows leave the machine unencrypted: NET-5012."""
        try:
            inside = ipaddress.ip_address(host).is_loopback
        except ValueError:
            # any other name may resolve to an address off this machine
            inside = host == "localhost"
        if not inside and self.tls is None and self.encrypted:
            raise PenstockError(
                NEEDS_TLS,
                f"cannot {what} {host} without TLS: the address is not on this machine's loopback, "
                "and rows would travel readable by anyone",
                hint="give certificates for the connections between task managers, or use 127.0.0.1",
                kind=Kind.USER,
                sqlstate="28000",
            )


def _no_port(host: str, which: str, why: str) -> PenstockError:
    hint = "a wider range in 'taskmanager.port-range', another 'jobmanager.port', or 0 for any"
    return PenstockError(
        "NET-5016",
        f"cannot listen on {host}, {which}: {why}",
        hint=hint,
        kind=Kind.EXTERNAL,
        sqlstate="58000",
    )


def tls_contexts(files: Certificates) -> TlsContexts:
    """Return the contexts of both directions. NET-5015 for files that cannot be used. Names in certificates
    are not compared with addresses.
    """
    contexts = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in contexts:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # peers are identified by the job's token; certificates show that they belong to the cluster
        context.check_hostname = False
        # mutual TLS: the listener demands a certificate too
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_cert_chain(files.certificate, files.key, password=_no_password)
            context.load_verify_locations(files.authority)
        except (OSError, ValueError) as cause:
            message = f"the certificates for connections of workers cannot be used: {cause}"
            hint = (
                "'security.ssl.internal.certificate', '.key' and '.ca' name PEM files that every "
                "machine has, the key without a password"
            )
            raise PenstockError("NET-5015", message, hint=hint, kind=Kind.USER, sqlstate="28000") from cause
    return TlsContexts(*contexts)


def _no_password() -> str:
    """Fail instead of asking for a password on the terminal."""
    raise ValueError("the key has a password")
