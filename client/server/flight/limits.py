"""Limits of the Flight SQL listener: what a client may hold, send and leave behind."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FlightLimits:
    """What one client may take. Each has a figure that no usual tool reaches.

    ``message_bytes``: rows are cut into messages of about so much. Go drivers take 16 MiB. ``upload_bytes``:
    an upload into a table of the session, which is in memory. ``prepared``: open prepared statements of a
    session. ``tickets``: statements whose result was not read yet. ``unread_s``: a started result that nobody
    reads is stopped. ``idle_s``: a session without calls and open results is closed.
    """

    message_bytes: int = 4 << 20
    upload_bytes: int = 1 << 30
    prepared: int = 1_000
    tickets: int = 1_000
    unread_s: float = 10.0
    idle_s: float = 3_600.0
