"""The faults of a connection. Each has its own code, and ends the connection it occurred on."""

from __future__ import annotations

from penstock.catalog.errors import Kind, PenstockError

BAD_MAGIC = "NET-5001"
TOO_LONG = "NET-5002"
CHECKSUM = "NET-5003"
SEQUENCE = "NET-5004"
CUT = "NET-5005"
PAYLOAD = "NET-5006"
TOKEN = "NET-5007"
STALE = "NET-5008"
SILENT = "NET-5009"
CREDIT = "NET-5010"
UNEXPECTED = "NET-5011"
NEEDS_TLS = "NET-5012"
UNREACHABLE = "NET-5013"
LEFT = "NET-5014"
INTERNAL = "NET-9001"


def network_error(
    code: str, message: str, hint: str | None = None, detail: str | None = None
) -> PenstockError:
    """Return the error of a connection. It is retriable: a new attempt uses new connections."""
    return PenstockError(
        code, message, hint=hint, detail=detail, kind=Kind.EXTERNAL, retriable=True, sqlstate="08006"
    )
