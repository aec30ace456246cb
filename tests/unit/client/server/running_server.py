"""A server in this process, and the clients of a test."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.client.connection import Connection
from penstock.client.server.principal import LOCAL
from penstock.client.server.security.authenticators import OpenAuthenticator
from penstock.client.server.server import Server, ServerOptions
from penstock.client.server.server_sessions import ClientAddress, ServerSession

PATIENCE_S = 60.0
CLIENT = ClientAddress("test", "here")


class RunningServer:
    """A server that runs in a thread. ``events`` has what it logged."""

    def __init__(self, state: Path, *, waits: bool = True, **options: Any) -> None:
        self.events: list[tuple[str, dict[str, object]]] = []
        self._logged = threading.Condition()
        self.exits: list[int] = []
        settings = {"bounded.backend": "duckdb", **options.pop("settings", {})}
        self.server = Server(
            ServerOptions(state, settings=settings, **options),
            OpenAuthenticator(),
            self._log,
            exit_process=self.exits.append,
        )
        self._failure: list[BaseException] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        if waits:
            assert self.wait_ready(), (self.events, self._failure)

    def _run(self) -> None:
        try:
            self.server.run()
        except BaseException as error:  # noqa: BLE001 - the test asks for it
            self._failure.append(error)

    def _log(self, event: str, fields: Mapping[str, object] | None = None, *, level: str = "info") -> None:
        with self._logged:
            self.events.append((event, dict(fields or {})))
            self._logged.notify_all()

    def await_event(self, name: str) -> dict[str, object]:
        """Return the fields of an event, waiting for it."""
        with self._logged:
            assert self._logged.wait_for(lambda: self.fields_of(name), PATIENCE_S), self.events
            return next(fields for event, fields in self.events if event == name)

    def fields_of(self, name: str) -> list[dict[str, object]]:
        return [fields for event, fields in self.events if event == name]

    def wait_ready(self) -> bool:
        return self.server.ready.wait(PATIENCE_S)

    def session(self, settings: Mapping[str, str] | None = None) -> ServerSession:
        return self.server.sessions.open(LOCAL, CLIENT, settings)

    def connect(self, settings: Mapping[str, str] | None = None) -> Connection:
        return self.session(settings).connection

    def join(self) -> list[BaseException]:
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()
        return self._failure

    def stop(self) -> list[BaseException]:
        self.server.stop()
        return self.join()

    def __enter__(self) -> RunningServer:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.stop() == []
