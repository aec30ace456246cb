"""A server: one engine over one state, the sessions of its clients, and the listeners they connect to."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.settings import Settings
from penstock.client.execution.access_control import AccessControl
from penstock.client.execution.engine_state import EngineState
from penstock.client.server.job_keeper import JobKeeper
from penstock.client.server.listener import Authenticator, Listener
from penstock.client.server.listeners import TlsFiles, make_listener
from penstock.client.server.principal import Principal
from penstock.client.server.security.audit_log import AuditLog
from penstock.client.server.server_catalog import ServerCatalog
from penstock.client.server.server_sessions import ClientAddress, ServerSessions
from penstock.client.server.session_limits import SessionLimits
from penstock.client.server.state_lease import LeaseHolder, StateLease
from penstock.client.session import Session
from penstock.engine.api.clock import Clock, SystemClock
from penstock.engine.api.locations import Location
from penstock.engine.api.threads import EngineThread
from penstock.engine.storage.locations import storage_at

# the server's own files in a state; no job has a directory of this name
SERVER_FILES = "_server"
INIT = "init.txt"
_RUNNING = b"running\n"
# the lease is renewed long before the 30 s of silence after which another server takes it
RENEW_S = 2.0
# a query that sums a million rows a second may take 100 MB a second
_LOOK_S = 0.25


class EventLog(Protocol):
    """Takes what happens to a server: ``event`` is a name of few words, ``fields`` are facts about it."""

    def __call__(
        self, event: str, fields: Mapping[str, object] | None = None, *, level: str = "info"
    ) -> None:
        """Log an event."""


@dataclass(frozen=True)
class ServerOptions:
    """What a server is started with. ``ports``: by name of the listener, 0 for any free port. ``settings``:
    those that every session begins with. ``init_script``: run once, when the state is new.
    """

    state_dir: Location
    host: str = "127.0.0.1"
    ports: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    limits: SessionLimits = field(default_factory=SessionLimits)
    tls: TlsFiles | None = None
    init_script: Path | None = None


class Server:
    """Starts in three steps: it waits for the lease of its state, loads the catalog and resumes the jobs, and
    accepts clients. ``stop`` may be called from any thread; ``run`` returns after the end. ``access_for``
    and ``audit``: see ``ServerSessions``.
    """

    def __init__(
        self,
        options: ServerOptions,
        authenticator: Authenticator,
        log: EventLog,
        clock: Clock | None = None,
        access_for: Callable[[Principal, ClientAddress, str], AccessControl] | None = None,
        audit: AuditLog | None = None,
        exit_process: Callable[[int], None] = os._exit,
    ) -> None:
        self.options = options
        self._authenticator = authenticator
        self._log = log
        self._clock = clock or SystemClock()
        self._exit = exit_process
        self._stopping = threading.Event()
        self.ready = threading.Event()
        self.on_ready: Callable[[], None] = lambda: None
        self._lease: StateLease | None = None
        defaults = {"execution.checkpointing.interval": "1 s"}
        self.engine = EngineState(
            Settings({**defaults, **options.settings}),
            options.state_dir,
            report=lambda sentence: log("job", {"message": sentence}, level="warning"),
            is_shared=True,
        )
        self.sessions = ServerSessions(
            lambda settings: Session(settings, engine=self.engine),
            self._clock.wall_ms,
            access_for,
            options.limits,
            audit,
        )
        self.sessions.refusal = "it is starting"
        self.engine.system_tables.provide("sessions", self._session_rows)
        self.listeners: list[Listener] = []

    @property
    def addresses(self) -> dict[str, str]:
        """Where each listener listens."""
        return {listener.name: listener.address for listener in self.listeners}

    def _session_rows(self) -> pa.Table:
        """Return the rows of system.sessions."""
        from penstock.client.monitoring.system_rows import system_rows

        rows = [
            {
                "session": one.session_id,
                "principal": one.principal.name,
                "role": str(one.principal.role),
                "listener": one.client.listener,
                "address": one.client.address,
                "opened_at": one.opened_ms,
            }
            for one in self.sessions.all()
        ]
        return system_rows("sessions", rows)

    @property
    def is_stopping(self) -> bool:
        """Whether it was asked to end."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """Ask the server to end in order. Not for a signal handler: it may interrupt ``run`` in this lock."""
        self._stopping.set()

    def run(self) -> None:
        """Serve until ``stop``, then end in order. Raises PenstockError when the server cannot start."""
        try:
            if self._start():
                self._stopping.wait()
        finally:
            self._end()

    def _start(self) -> bool:
        lease = StateLease(storage_at(self.options.state_dir / SERVER_FILES), self._clock)
        self._lease = lease
        made = [
            make_listener(name, self.sessions, self._authenticator, self.options.host, port, self.options.tls)
            for name, port in self.options.ports.items()
        ]
        if not lease.acquire(self._stopping, lambda holder: self._standby(holder, made)):
            return False
        self._log("lease acquired", {"epoch": lease.holder.epoch, "state": str(self.options.state_dir)})
        EngineThread(target=self._watch, name="penstock-server").start()
        self._load(lease)
        for listener in made:
            # one that a server in standby could start listens already
            if listener not in self.listeners:
                listener.start()
                self.listeners.append(listener)
        lease.publish_addresses(self.addresses)
        self.sessions.refusal = ""
        self._log("ready", {"addresses": self.addresses})
        self.ready.set()
        self.on_ready()
        return True

    def _standby(self, holder: LeaseHolder | None, made: list[Listener]) -> None:
        """Tell clients and the log whom this server waits for."""
        who = "another server" if holder is None else f"the server {holder.text}"
        self.sessions.refusal = f"it waits for {who}"
        since = {} if holder is None else {"holder": holder.text, "since_ms": holder.since_ms}
        self._log("waits for the lease", {**since, "state": str(self.options.state_dir)})
        for listener in made:
            if listener not in self.listeners:
                # on the same machine the other server may have the address: it is asked for again later
                with contextlib.suppress(PenstockError):
                    listener.start()
                    self.listeners.append(listener)

    def _load(self, lease: StateLease) -> None:
        views = self.engine.views
        catalog = ServerCatalog(lease, lambda: {name: v.settings for name, v in list(views.by_name.items())})
        loader = Session({}, engine=self.engine)
        # nobody else has the state of these jobs: whoever had it lost the lease
        loader.state.take_over = True
        script = self.options.init_script if not catalog.is_stored else None
        catalog.fill(loader, self._report)
        # only now: a file that cannot be read is not overwritten
        self.engine.stores[catalog.catalog] = catalog
        for name, view in list(views.by_name.items()):
            self._log("view resumed", {"view": name, "job": view.job.job_id})
        for error in JobKeeper(self.engine, self._log).resume_all():
            self._report(error)
        if script is not None:
            self._run_script(lease, script)
        elif lease.read(INIT) == _RUNNING:
            self._log(
                "init was interrupted", {"message": "the state has a part of its script"}, level="error"
            )
        # a state is new until its catalog is stored
        self.engine.save_catalogs()

    def _run_script(self, lease: StateLease, path: Path) -> None:
        """Run a script in a session of its own. Its first error ends the start."""
        lease.write(INIT, _RUNNING)
        session = Session({"table.dml-sync": "false"}, engine=self.engine)
        try:
            for statement in session.parse(path.read_text(encoding="utf-8"), str(path)):
                self._log("init", {"statement": statement.ordinal, "note": session.run(statement).note or ""})
        except OSError as error:
            raise PenstockError(
                "CLI-6209",
                f"the script {path} cannot be read: {error.strerror}",
                hint="--init takes a file of statements",
                kind=Kind.EXTERNAL,
                sqlstate="58030",
            ) from error
        finally:
            session.close()
        lease.write(INIT, b"done\n")

    def _report(self, error: PenstockError) -> None:
        fields = {"code": error.code, "message": error.message, "hint": error.hint or ""}
        self._log("not restored", fields, level="error")

    def _watch(self) -> None:
        """Renew the lease, close idle sessions and watch the memory, until the server ends."""
        renewed_ms = self._clock.monotonic_ms()
        while not self._stopping.wait(_LOOK_S):
            self.sessions.look_at_memory()
            now_ms = self._clock.monotonic_ms()
            if now_ms - renewed_ms >= RENEW_S * 1e3:
                renewed_ms = now_ms
                assert self._lease is not None
                if not self._lease.renew():
                    self._leave()
                    return
            for session in self.sessions.close_idle(now_ms):
                self._log("session closed", {"session": session.session_id, "reason": "idle"})
            limit = self.sessions.limits.memory_bytes
            self.sessions.gate.is_short_of_memory = bool(limit) and resident_bytes() > limit

    def _leave(self) -> None:
        """Another server has the state: end at once, so that no client sees two of them."""
        assert self._lease is not None
        error = self._lease.lost()
        self.sessions.refusal = error.message
        self._log("lease lost", {"code": error.code, "message": error.message}, level="error")
        # every checkpoint and commit of this process is refused by now; its memory is of no use
        self._exit(1)

    def _end(self) -> None:
        self.sessions.refusal = "it is shutting down"
        self._stopping.set()
        for listener in self.listeners:
            listener.stop_accepting()
        # also after a start that failed: a job that is merely cancelled would stay so
        if self.engine.jobs.all():
            self._log("draining", {"sessions": len(self.sessions.all())})
            JobKeeper(self.engine, self._log).suspend_all()
        for listener in self.listeners:
            listener.close()
        for session in self.sessions.all():
            session.close()
        self.engine.stop_metrics_server()
        self.engine.close()
        # last: the next server begins when nothing of this one is left
        if self._lease is not None:
            self._lease.close()
        self._log("stopped")


def resident_bytes() -> int:
    """Return the memory of this process, 0 where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
