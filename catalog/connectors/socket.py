"""Options of the socket connector: lines of JSON that a TCP server sends."""

from __future__ import annotations

from penstock.catalog.connectors.connector import Boundedness, Connector
from penstock.catalog.connectors.option import Option, OptionKind

ON_RESTORE = "socket.on-restore"

SOCKET_OPTIONS = (
    Option("hostname", required=True, help="the machine that sends the lines"),
    Option("port", OptionKind.INT, None, "the port it listens on", required=True, minimum=1),
    Option(
        "on-error",
        OptionKind.ENUM,
        "fail",
        "what happens to a line that cannot be read; skipped lines are counted",
        ("fail", "skip"),
    ),
    Option(
        # A socket cannot be read again: a restore loses lines, and so fails unless allowed.
        ON_RESTORE,
        OptionKind.ENUM,
        "fail",
        "whether a job may resume although the lines sent since its last checkpoint are lost",
        ("fail", "continue"),
    ),
)

SOCKET = Connector(
    "socket",
    "lines of JSON that a TCP server sends",
    SOCKET_OPTIONS,
    holds_variant=True,
    source=True,
    # No option says how many lines a server sends.
    boundedness=lambda _table: Boundedness.UNBOUNDED,
)
