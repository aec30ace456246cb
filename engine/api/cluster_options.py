"""Options of worker processes on other machines: addresses, ports, certificates, timeouts, and the Spark
settings that start them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.catalog.errors import PenstockError

_LAST_PORT = 65535


class SettingValues(Protocol):
    """What cluster options are read from: typed values by setting key, and what was set of Spark's own."""

    def get(self, key: str) -> Any:
        """Return the typed value of a setting."""

    def of_spark(self) -> dict[str, str]:
        """Return what was set of Spark's own settings."""


@dataclass(frozen=True)
class Certificates:
    """Paths of PEM files, the same on every machine: both ends of a connection show ``certificate`` and check
    that ``authority`` has signed the other's.
    """

    certificate: str
    key: str
    authority: str


@dataclass(frozen=True)
class ClusterOptions:
    """``host``: the address workers connect to; empty: ``bind_host``. ``ports``: first and last port workers
    may listen on, 0 for any.

    ``encrypted``: without certificates no byte leaves the machine. Times are milliseconds.
    """

    host: str = ""
    bind_host: str = "127.0.0.1"
    port: int = 0
    ports: tuple[int, int] = (0, 0)
    certificates: Certificates | None = None
    encrypted: bool = True
    registration_timeout_ms: int = 300_000
    idle_timeout_ms: int = 0
    slots: int = 1
    spark: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_settings(cls, settings: SettingValues) -> ClusterOptions:
        """Return the options of a session's settings. SQL-1402 for a range of ports that is none, SQL-1406
        when only some of the three certificate paths are set.
        """
        return cls(
            host=settings.get("jobmanager.host"),
            bind_host=settings.get("jobmanager.bind-host"),
            port=settings.get("jobmanager.port"),
            ports=read_ports(settings.get("taskmanager.port-range")),
            certificates=_certificates(settings),
            encrypted=settings.get("security.ssl.internal.required"),
            registration_timeout_ms=settings.get("taskmanager.registration-timeout"),
            idle_timeout_ms=settings.get("taskmanager.idle-timeout"),
            slots=settings.get("taskmanager.slots"),
            spark=tuple(sorted(settings.of_spark().items())),
        )


def read_ports(text: str) -> tuple[int, int]:
    """Return the first and the last port of ``50100-50199`` or ``0``. SQL-1402 for anything else."""
    parsed = re.fullmatch(r"\s*(\d{1,5})\s*(?:-\s*(\d{1,5})\s*)?", text)
    first, last = (int(parsed[1]), int(parsed[2] or parsed[1])) if parsed is not None else (1, 0)
    # 0 alone is any port; 0-100 is no range
    if first > last or last > _LAST_PORT or (first == 0 and last > 0):
        message = f"'{text[:40]}' is no value for setting 'taskmanager.port-range'"
        raise PenstockError(
            "SQL-1402", message, hint="it takes a range of ports such as 50100-50199, or 0 for any"
        )
    return first, last


def _certificates(settings: SettingValues) -> Certificates | None:
    paths = [str(settings.get(f"security.ssl.internal.{name}")) for name in ("certificate", "key", "ca")]
    # no certificates: workers of this machine only, unless encryption is turned off
    if not any(paths):
        return None
    if not all(paths):
        message = (
            "the connections of workers need a certificate, its key and the certificate of who has signed it"
        )
        raise PenstockError(
            "SQL-1406",
            message,
            hint="set 'security.ssl.internal.certificate', '.key' and '.ca', or none of them",
        )
    return Certificates(*paths)
