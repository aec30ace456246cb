"""Errors of ``penstock serve`` itself, CLI-620x: its sessions, listeners and lease."""

from __future__ import annotations

SERVER = {
    "CLI-6206": (
        "A session of a server sets what is read once for all sessions.",
        "Set it where the server is started: penstock serve --set key=value.",
    ),
}
