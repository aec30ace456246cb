"""Causes and cures of errors: Redis."""

from __future__ import annotations

REDIS: dict[str, tuple[str, str]] = {
    "DAT-5800": ("The package of Redis' client is not installed.", "Run: pip install 'penstock[redis]'."),
    "DAT-5801": ("A Redis server does not answer.", "Start the server, or correct 'url' and 'timeout'."),
    "DAT-5802": (
        "A Redis server refuses a command.",
        "Read the detail; correct 'username', 'password' or 'stream', or ask for the right.",
    ),
    "DAT-5803": (
        "The server has trimmed entries of a stream that were not read.",
        "Keep more entries in the stream, or set 'scan.on-trimmed' = 'skip' and lose them.",
    ),
}
