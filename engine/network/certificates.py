"""Contexts of TLS between processes of one job: both ends show a certificate, and check that the other's
was signed by the same authority.
"""

from __future__ import annotations

import ssl

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.cluster_options import Certificates
from penstock.engine.network.listener_options import TlsContexts


def tls_contexts(files: Certificates) -> TlsContexts:
    """Return the contexts of both directions. NET-5015 for files that cannot be used; names in
    certificates are not compared with addresses.
    """
    contexts = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for context in contexts:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.check_hostname = False
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
    """Answer what would else be asked on the terminal."""
    raise ValueError("the key has a password")
