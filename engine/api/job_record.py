"""What another process needs to run a job on, written into the job's directory."""

from __future__ import annotations

from dataclasses import replace

from penstock.catalog.frozen_dataclass import dataclass

RUNNING = "RUNNING"


@dataclass(frozen=True)
class JobRecord:
    """A job's name, the statements before its own, its own, and the settings they are read under.

    ``status``: RUNNING until it has ended; a job whose process died stays so. ``withheld``: statements hold
    secrets, which are not written down.
    """

    name: str
    statements: tuple[str, ...]
    statement: str
    settings: tuple[tuple[str, str], ...]
    started_at_ms: int = 0
    epoch: int = 0
    status: str = RUNNING
    withheld: bool = False

    def ended(self, status: str) -> JobRecord:
        """Return the record of the job with its end."""
        return replace(self, status=status)
