"""The control socket of a running ``penstock run``: other command lines of its user see and stop its jobs.

Beside the state is a record of the process. The socket itself is in a directory of its own, because the path
of a socket has at most about 100 bytes. Only the owner may read the record and use the socket.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError
from penstock.client.server.security.authenticators import OpenAuthenticator
from penstock.client.server.server_sessions import ServerSessions
from penstock.client.session import Session
from penstock.engine.api.clock import Clock
from penstock.engine.storage.local import open_private

RECORD = "control.json"
_SOCKET = "flight.sock"
_PREFIX = "penstock-"


@dataclass(frozen=True)
class ControlRecord:
    """Which process runs the jobs of a state directory, and the socket it listens on."""

    socket: str
    pid: int
    host: str
    started_ms: int


class ControlSocket:
    """Listens until ``close``. Sessions over the socket share the engine of ``session``. They see its jobs
    and permanent tables, and have settings of their own.
    """

    def __init__(self, session: Session, state_dir: Path, clock: Clock, host: str) -> None:
        # Flight: only where somebody may ask
        from penstock.client.server.flight.flight_listener import FlightListener

        engine = session.state.engine
        sessions = ServerSessions(lambda settings: Session(settings, engine=engine), clock.wall_ms)
        _remove_left_behind(state_dir, host)
        # mode 0700
        self._directory = Path(tempfile.mkdtemp(prefix=_PREFIX))
        self._record = state_dir / RECORD
        socket = self._directory / _SOCKET
        self._listener = FlightListener(sessions, OpenAuthenticator(), "", 0, socket=socket, clock=clock)
        try:
            self._listener.start()
            state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(self._record, ControlRecord(str(socket), os.getpid(), host, clock.wall_ms()))
        except (PenstockError, OSError):
            self.close()
            raise

    def close(self) -> None:
        """End the connections and remove the record, unless another process has written its own since."""
        self._listener.close()
        record = read_record(self._record.parent)
        if record is not None and record.pid == os.getpid():
            self._record.unlink(missing_ok=True)
        shutil.rmtree(self._directory, ignore_errors=True)


def read_record(state_dir: Path) -> ControlRecord | None:
    """Return the record of a state directory; None where there is none, or none that can be read."""
    try:
        fields = json.loads((state_dir / RECORD).read_text(encoding="utf-8"))
        return ControlRecord(
            str(fields["socket"]), int(fields["pid"]), str(fields["host"]), int(fields["started_ms"])
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def control_url(state_dir: Path, this_host: str, is_alive: Callable[[int], bool]) -> str:
    """Return the URL of the process that runs the jobs of a state directory. CLI-6200 where there is none,
    where it has died, or where it is on another machine.
    """
    record = read_record(state_dir)
    if record is None:
        raise _unreachable(
            f"no process runs the jobs of {state_dir}, or it has no control socket",
            "penstock jobs --state lists the jobs; the socket needs pip install 'penstock[server]'",
        )
    if record.host != this_host:
        raise _unreachable(
            f"the jobs of {state_dir} run on {record.host}, in process {record.pid}",
            f"run the command on {record.host}",
        )
    if not is_alive(record.pid):
        raise _unreachable(
            f"process {record.pid}, which ran the jobs of {state_dir}, has ended",
            f"penstock recover --state {state_dir} runs on the jobs it left unfinished",
        )
    return f"penstock+unix://{record.socket}"


def is_alive(pid: int) -> bool:
    """Return whether a process of this machine runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # of another user: it is there
        return True
    return True


def _remove_left_behind(state_dir: Path, host: str) -> None:
    """Remove the directory of the socket of a process that was killed, which could not."""
    record = read_record(state_dir)
    if record is None or record.host != host or is_alive(record.pid):
        return
    directory = Path(record.socket).parent
    # the record is a file of the user's: only what was made here is removed
    if directory.name.startswith(_PREFIX) and {path.name for path in directory.glob("*")} <= {_SOCKET}:
        shutil.rmtree(directory, ignore_errors=True)


def _write(path: Path, record: ControlRecord) -> None:
    fresh = path.with_suffix(".json.new")
    with open_private(fresh) as file:
        file.write(json.dumps(asdict(record)).encode())
    fresh.replace(path)


def _unreachable(message: str, hint: str) -> PenstockError:
    return PenstockError("CLI-6200", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="08001")
