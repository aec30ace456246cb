"""The registry of error codes: what each means, and what to do.

A code that the product raises and the registry lacks fails a test, and so does one that nothing raises. The
command ``penstock explain-error`` and the page of errors are made of it.
"""

from __future__ import annotations

from penstock.catalog.error_codes.bounded import BOUNDED
from penstock.catalog.error_codes.client import CLIENT
from penstock.catalog.error_codes.connectors.cdc import CDC
from penstock.catalog.error_codes.connectors.http import HTTP
from penstock.catalog.error_codes.connectors.kafka import KAFKA
from penstock.catalog.error_codes.connectors.lakehouse import LAKEHOUSE
from penstock.catalog.error_codes.connectors.mqtt import MQTT
from penstock.catalog.error_codes.connectors.nats import NATS
from penstock.catalog.error_codes.connectors.object_storage import OBJECT_STORAGE
from penstock.catalog.error_codes.connectors.python_connectors import PYTHON_CONNECTORS
from penstock.catalog.error_codes.connectors.redis import REDIS
from penstock.catalog.error_codes.data import DATA
from penstock.catalog.error_codes.formats import FORMATS
from penstock.catalog.error_codes.provenance import PROVENANCE
from penstock.catalog.error_codes.runtime import RUNTIME
from penstock.catalog.error_codes.server.flight import FLIGHT
from penstock.catalog.error_codes.server.postgres_wire import POSTGRES_WIRE
from penstock.catalog.error_codes.server.security import SECURITY
from penstock.catalog.error_codes.server.sessions import SERVER
from penstock.catalog.error_codes.server.web import WEB
from penstock.catalog.error_codes.state import STATE
from penstock.catalog.error_codes.streaming import STREAMING
from penstock.catalog.error_codes.syntax import SYNTAX
from penstock.catalog.error_codes.tables import TABLES
from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean

# The letters of a code, and what its errors are about: the titles of the page.
FAMILIES = {
    "SQL": "Statements",
    "RUN": "Running jobs",
    "STA": "State and checkpoints",
    "DAT": "Data and connectors",
    "BND": "Bounded backends",
    "CLI": "Client, command line and shell",
    "NET": "Connections of workers",
    "VER": "VERIFY",
    "WHY": "EXPLAIN WHY",
    "INT": "Defects of penstock",
}


@dataclass(frozen=True)
class ErrorCode:
    """One code: why it is raised, and what leads to success."""

    code: str
    cause: str
    cure: str


# The order is that of FAMILIES, then of the numbers.
ERROR_CODES: dict[str, ErrorCode] = {
    code: ErrorCode(code, cause, cure)
    for code, (cause, cure) in sorted(
        (
            SYNTAX
            | TABLES
            | STREAMING
            | DATA
            | SERVER
            | FORMATS
            | HTTP
            | KAFKA
            | PYTHON_CONNECTORS
            | REDIS
            | SECURITY
            | NATS
            | MQTT
            | BOUNDED
            | CLIENT
            | FLIGHT
            | WEB
            | RUNTIME
            | STATE
            | LAKEHOUSE
            | OBJECT_STORAGE
            | CDC
            | POSTGRES_WIRE
            | PROVENANCE
        ).items(),
        key=lambda entry: (list(FAMILIES).index(entry[0][:3]), entry[0]),
    )
}


def error_code(name: str) -> ErrorCode:
    """Return a code, written in any case, with or without brackets; CLI-6160 when there is none."""
    # As it is copied from a terminal: error[SQL-1042]:
    found = ERROR_CODES.get(name.strip().rstrip(":").removeprefix("error").strip("[]").upper())
    if found is None:
        raise PenstockError(
            "CLI-6160",
            f"there is no error code {name}",
            hint=did_you_mean(
                next((code for code in ERROR_CODES if code[4:] == name), name.upper()), ERROR_CODES
            )
            or "penstock explain-error without a code lists all of them",
        )
    return found
