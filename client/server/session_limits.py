"""Limits of a server on its sessions: how many there are, and what they run at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from penstock.catalog.errors import Kind, PenstockError
from penstock.planner.statements import nodes

# statements that may take much memory; the others inspect and stop what runs
_COMPUTING = (
    nodes.Query,
    nodes.Subscribe,
    nodes.Insert,
    nodes.ExecuteStatementSet,
    nodes.CreateTableAs,
    nodes.CreateMaterializedView,
    nodes.ExplainWhy,
    nodes.Verify,
)


@dataclass(frozen=True)
class SessionLimits:
    """Limits of a server; 0 means none. ``statements``: that are executed at once, by all sessions.
    ``results``: that one session reads at once. ``idle_s``: after so long without a statement or an open
    result a session is closed. ``memory_bytes``: while the process has more, it starts no further query.
    ``session_memory_bytes``: what the results of one session may take; the largest ends beyond it.
    """

    sessions: int = 2_000
    statements: int = 500
    results: int = 100
    idle_s: float = 0
    memory_bytes: int = 0
    session_memory_bytes: int = 0


class StatementGate:
    """Counts the statements that are executed, and refuses those beyond the limits. ``is_short_of_memory`` is
    set by whoever watches the process.
    """

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._lock = threading.Lock()
        self.running = 0
        self.is_short_of_memory = False

    @contextmanager
    def admit(self, node: nodes.Statement) -> Iterator[None]:
        """Count a statement while it is executed. CLI-6205 beyond a limit; what stops jobs is never
        refused.
        """
        if isinstance(node, _COMPUTING):
            self._check()
        with self._lock:
            self.running += 1
        try:
            yield
        finally:
            with self._lock:
                self.running -= 1

    def _check(self) -> None:
        most = self._limits.statements
        if most and self.running >= most:
            raise _refused(f"{most} statements are executed already", "--max-statements", "53400")
        if self.is_short_of_memory:
            size = f"{self._limits.memory_bytes / 1e6:,.0f} MB"
            raise _refused(f"the server uses more than {size} of memory", "--max-memory", "53200")


def _refused(why: str, flag: str, sqlstate: str) -> PenstockError:
    return PenstockError(
        "CLI-6205",
        f"the statement is not started: {why}",
        hint=f"run it again when others have ended; penstock serve {flag} is the limit",
        kind=Kind.EXTERNAL,
        retriable=True,
        sqlstate=sqlstate,
    )


def too_many_sessions(most: int) -> PenstockError:
    """Return the error for a session beyond the limit."""
    return PenstockError(
        "CLI-6202",
        f"the server has {most} sessions, which is its limit",
        hint="close a session and connect again; penstock serve --max-sessions is the limit",
        kind=Kind.EXTERNAL,
        retriable=True,
        sqlstate="53300",
    )


def shutting_down() -> PenstockError:
    """Return the error for a client whose connection the server ends."""
    return PenstockError(
        "CLI-6201",
        "the server is shutting down",
        hint="connect again in a moment: jobs of INSERT and views are resumed by the next server",
        kind=Kind.EXTERNAL,
        retriable=True,
        sqlstate="57P01",
    )


def not_accepting(why: str) -> PenstockError:
    """Return the error for a client that connects while the server waits or ends."""
    return PenstockError(
        "CLI-6201",
        f"the server accepts no clients now: {why}",
        hint="connect again in a moment",
        kind=Kind.EXTERNAL,
        retriable=True,
        sqlstate="57P03",
    )
