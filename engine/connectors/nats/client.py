"""The connection of a table to its server, and its errors as sentences. The client's library is asynchronous:
one thread of the process runs its event loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import ssl
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.threads import EngineThread, close_at_exit
from penstock.engine.metrics.operator_metrics import OperatorMetrics

Answer = TypeVar("Answer")

_CLOSING_S = 0.5
# JetStream's codes for what may pass: no leader, no quorum, not enough resources, storage being recovered
_PASSING = frozenset((10005, 10008, 10009, 10023, 10077))


class _Loop:
    """The event loop of all connections, in a thread that is started with the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Coroutine[Any, Any, Answer]) -> concurrent.futures.Future[Answer]:
        """Run a coroutine in the loop's thread."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                EngineThread(target=self._loop.run_forever, name="nats").start()
                close_at_exit(self._stop, serves_jobs=True)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _stop(self) -> None:
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)


_LOOP = _Loop()


class NatsServer:
    """One connection, opened by the first call and again by the first one after it broke. Its methods are
    called in one thread; ``close`` may be called in another.
    """

    def __init__(self, table: CatalogTable, metrics: OperatorMetrics) -> None:
        try:
            from nats import errors
            from nats.aio.client import Client
        except ImportError as error:
            raise PenstockError(
                "DAT-5900",
                "the connector 'nats' needs the package nats-py",
                hint="pip install 'penstock[nats]'",
                sqlstate="0A000",
            ) from error
        self._errors, self._make = errors, Client
        self._table, self._metrics = table, metrics
        self._servers = [part.strip() for part in table.options["url"].split(",")]
        self.shown = ", ".join(map(redact_url, self._servers))
        self.timeout_s = int(str(option(table, "timeout"))) / 1e3
        self._client: Any = None
        self._broken = asyncio.Event()
        self._opened = False
        self._closed = False
        # what the library reported last, of the server or of a connection
        self._reported: Exception | None = None

    def call(self, work: Callable[[Any], Coroutine[Any, Any, Answer]]) -> Answer:
        """Run a coroutine over the connection. DAT-5901 and DAT-5902."""

        async def whole() -> Answer:
            self._reported = None
            client = await self._connected()
            answer = asyncio.ensure_future(work(client))
            # a request over a connection that breaks would wait to its timeout
            broken = asyncio.ensure_future(self._broken.wait())
            await asyncio.wait((answer, broken), return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                broken.cancel()
                return answer.result()
            answer.cancel()
            raise ConnectionError(str(self._reported or "the connection broke"))

        try:
            return _LOOP.run(whole()).result()
        except PenstockError:
            raise
        except Exception as error:
            raise self._failure(error) from error

    def ask(self, subject: str, body: dict[str, Any], *, missing: int | None = None) -> dict[str, Any] | None:
        """Return JetStream's answer to a request; ``None`` for an error of the code ``missing``."""
        reply = self.call(lambda client: self.request(client, subject, json.dumps(body).encode(), None))
        answer: dict[str, Any] = json.loads(reply)
        error = answer.get("error")
        if error is None:
            return answer
        if missing is not None and error.get("err_code") == missing:
            return None
        raise self.refusal(error)

    async def request(
        self, client: Any, subject: str, payload: bytes, headers: dict[str, str] | None
    ) -> bytes:
        """Return the server's answer to one message."""
        reply = await client.request(subject, payload, timeout=self.timeout_s, headers=headers)
        return bytes(reply.data)

    async def _connected(self) -> Any:
        if self._client is not None and self._client.is_connected:
            return self._client
        if self._closed:
            raise ConnectionError("the connection was closed")
        if self._opened:
            self._metrics.count("nats_reconnects")
        self._client = client = self._make()
        self._broken = broken = asyncio.Event()

        async def closed() -> None:
            broken.set()

        # a connection that breaks is not mended by the library: a request must not be sent again unasked
        await asyncio.wait_for(
            client.connect(
                self._servers,
                allow_reconnect=False,
                max_reconnect_attempts=1,
                reconnect_time_wait=0,
                connect_timeout=max(1, round(self.timeout_s)),
                error_cb=self._note,
                closed_cb=closed,
                name="penstock",
                **self._identity(),
            ),
            self.timeout_s,
        )
        self._opened = True
        return client

    async def _note(self, error: Exception) -> None:
        self._reported = error

    def _identity(self) -> dict[str, Any]:
        named = {"username": "user", "password": "password", "token": "token"}
        named |= {"credentials-file": "user_credentials", "nkey-seed-file": "nkeys_seed"}
        options = self._table.options
        for key in ("credentials-file", "nkey-seed-file"):
            if key in options and not Path(options[key]).is_file():
                raise PenstockError(
                    "DAT-5902",
                    f"option '{key}': there is no file {options[key]}",
                    hint="correct the path",
                    kind=Kind.USER,
                    sqlstate="08004",
                )
        identity: dict[str, Any] = {name: options[key] for key, name in named.items() if key in options}
        if any(key.startswith("tls.") for key in options) or "tls://" in options["url"]:
            identity["tls"] = self._tls()
        return identity

    def _tls(self) -> ssl.SSLContext:
        options = self._table.options
        try:
            context = ssl.create_default_context(cafile=options.get("tls.ca-file"))
            if "tls.certificate-file" in options:
                context.load_cert_chain(options["tls.certificate-file"], options.get("tls.key-file"))
        except OSError as error:
            raise PenstockError(
                "DAT-5902",
                "a file of the options tls.* cannot be read",
                detail=str(error),
                hint="correct 'tls.ca-file', 'tls.certificate-file' or 'tls.key-file'",
                kind=Kind.USER,
                sqlstate="08004",
            ) from error
        return context

    def _failure(self, error: BaseException) -> PenstockError:
        errors = self._errors
        reported = self._reported
        said = str(error if str(error) else reported or type(error).__name__)
        denied = (errors.AuthorizationError, errors.InvalidUserCredentialsError, ssl.SSLError)
        if (
            isinstance(error, denied)
            or isinstance(reported, denied)
            or "ermissions violation" in str(reported)
            or "uthorization" in said + str(reported)
        ):
            return self._refused(str(reported or error))
        # nobody answers a request of JetStream: the server runs without it, or has no leader yet
        if isinstance(error, errors.NoRespondersError):
            said = "nobody answers requests of JetStream; a server has it with the flag -js"
        elif isinstance(error, errors.NoServersError | TimeoutError | asyncio.TimeoutError) and reported:
            said = str(reported)
        return PenstockError(
            "DAT-5901",
            f"the server {self.shown} does not answer",
            detail=said[:200],
            hint="start the server, or correct 'url'",
            kind=Kind.EXTERNAL,
            retriable=True,
            sqlstate="08001",
        )

    def refusal(self, error: dict[str, Any]) -> PenstockError:
        """Return JetStream's error as a sentence."""
        found = self._refused(str(error.get("description", "")))
        found.retriable = error.get("err_code") in _PASSING
        return found

    def _refused(self, detail: str) -> PenstockError:
        return PenstockError(
            "DAT-5902",
            f"the server {self.shown} refuses a request",
            detail=detail[:200],
            hint="correct 'username', 'password', 'token' or 'stream', or ask for the right",
            kind=Kind.EXTERNAL,
            sqlstate="08004",
        )

    def close(self) -> None:
        """Close the connection, which ends a request that waits."""
        self._closed = True

        async def closed() -> None:
            if self._client is not None:
                await self._client.close()

        # a connection that has failed may not close by itself, and nobody waits for it
        with contextlib.suppress(Exception):
            _LOOP.run(asyncio.wait_for(closed(), _CLOSING_S)).result(2 * _CLOSING_S)


def stream_info(server: NatsServer, stream: str) -> dict[str, Any]:
    """Return what JetStream knows of a stream. DAT-5904 when there is none."""
    found = server.ask(f"$JS.API.STREAM.INFO.{stream}", {}, missing=10059)
    if found is None:
        raise PenstockError(
            "DAT-5904",
            f"the server {server.shown} has no stream {stream}",
            hint=f"make it, for example: nats stream add {stream} --subjects '{stream.lower()}.>' --defaults",
            kind=Kind.EXTERNAL,
            sqlstate="42P01",
        )
    return found
