"""The connection of a table to its server, and its errors as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import CatalogTable


class RedisServer:
    """One connection, used by one thread; ``client`` is the library's."""

    def __init__(self, table: CatalogTable) -> None:
        try:
            import redis
        except ImportError as error:
            raise PenstockError(
                "DAT-5800",
                "the connector 'redis-stream' needs the package redis",
                hint="pip install 'penstock[redis]'",
                sqlstate="0A000",
            ) from error
        self._library = redis
        self._shown = redact_url(table.options["url"])
        self.timeout_ms = int(str(option(table, "timeout")))
        named = {name: table.options[name] for name in ("username", "password") if name in table.options}
        with self.translated_errors():
            self.client: Any = redis.Redis.from_url(
                table.options["url"],
                socket_timeout=self.timeout_ms / 1e3,
                socket_connect_timeout=self.timeout_ms / 1e3,
                single_connection_client=True,
                # answers have one shape in every release of the library
                protocol=2,
                **named,
            )

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Raise the library's errors as DAT-5801, where trying again may help, and DAT-5802."""
        errors = self._library.exceptions
        try:
            yield
        # a refused password is an error of the connection, too
        except (errors.AuthenticationError, errors.ResponseError) as error:
            raise PenstockError(
                "DAT-5802",
                f"the server {self._shown} refuses a command",
                detail=str(error),
                hint="correct 'username', 'password' or 'stream', or ask for the right",
                kind=Kind.EXTERNAL,
                # the server is loading its data, or has no memory left for now
                retriable=str(error).startswith(("LOADING", "OOM", "READONLY", "MASTERDOWN", "BUSY")),
                sqlstate="08004",
            ) from error
        except (errors.RedisError, OSError) as error:
            raise PenstockError(
                "DAT-5801",
                f"the server {self._shown} does not answer",
                detail=str(error)[:200],
                hint="start the server, or correct 'url'",
                kind=Kind.EXTERNAL,
                retriable=True,
                sqlstate="08001",
            ) from error

    def close(self) -> None:
        """Close the connection, which ends a read that blocks."""
        self.client.close()
