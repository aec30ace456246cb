"""The audit log: who connected, what each ran, and what was refused, as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable
from enum import StrEnum

from penstock.catalog.secrets import masked
from penstock.client.server.principal import Principal

_LONGEST_STATEMENT = 2_000
"""Letters of a statement in a line: what it does is in its beginning."""


class AuditEvent(StrEnum):
    """What a line tells."""

    LOGGED_IN = "logged_in"
    LOGIN_REFUSED = "login_refused"
    LOGGED_OUT = "logged_out"
    STATEMENT = "statement"
    STATEMENT_REFUSED = "statement_refused"


class AuditLog:
    """Writes a line per event by ``write``. Secrets are masked; a statement is cut at 2,000 letters."""

    def __init__(self, write: Callable[[str], None], wall_ms: Callable[[], int]) -> None:
        self._write = write
        self._wall_ms = wall_ms

    def record(
        self,
        event: AuditEvent,
        principal: Principal | None = None,
        client: str = "",
        *,
        user: str = "",
        session: str = "",
        text: str = "",
        code: str = "",
    ) -> None:
        """Write a line. ``user`` is the name of a client that is not authenticated. ``client`` is where
        the client comes from, ``text`` a statement, ``code`` that of the error by which it
        was refused.
        """
        line = {
            "at_ms": self._wall_ms(),
            "event": event.value,
            "user": user if principal is None else principal.name,
            "client": client,
            "session": session,
            "text": masked(text)[:_LONGEST_STATEMENT],
            "code": code,
        }
        # an empty part says nothing
        self._write(
            json.dumps({key: value for key, value in line.items() if value != ""}, ensure_ascii=False)
        )
