"""Who a client is, and what it may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PrincipalRole(StrEnum):
    """What a principal may do; each role includes the ones above it."""

    READ = "read"
    """Query tables, views and the system tables."""
    RUN = "run"
    """Also change the catalog, and start, stop and rescale jobs."""
    ADMIN = "admin"
    """Also end the sessions of others, create functions and stop the server."""


_ORDER = tuple(PrincipalRole)


@dataclass(frozen=True)
class Principal:
    """A user or token that a server has authenticated."""

    name: str
    role: PrincipalRole

    def may(self, role: PrincipalRole) -> bool:
        """Return whether this principal's role includes ``role``."""
        return _ORDER.index(self.role) >= _ORDER.index(role)


LOCAL = Principal("local", PrincipalRole.ADMIN)
"""Whoever connects to a server without authentication, which serves the loopback interface only."""
