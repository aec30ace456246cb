"""What is received from one server: answers, events or messages of a websocket, as records."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import CatalogTable
from penstock.engine.connectors.http.event_stream import server_events
from penstock.engine.connectors.http.http_client import HttpAnswer, HttpClient, headers_of, missing_package
from penstock.engine.connectors.http.records import records_of
from penstock.engine.metrics.operator_metrics import OperatorMetrics

RECONNECT_MS = 1_000
"""The pause before a connection is opened again, unless the server names another."""


@dataclass(frozen=True)
class Received:
    """Records that came together. ``kind`` and ``last_id`` are of an event, ``checksum`` of an answer."""

    records: pa.Array
    kind: str | None = None
    last_id: str | None = None
    checksum: int | None = None


class HttpReceiver:
    """Reads from one server until it is closed. ``close`` may be called in another thread."""

    def __init__(self, table: CatalogTable, metrics: OperatorMetrics) -> None:
        self._table, self._metrics = table, metrics
        self._client = HttpClient(table, metrics)
        self._url = table.options["url"]
        self._limit = int(str(option(table, "max-answer-size")))
        self._stopped = threading.Event()
        # what a blocked read reads from: closing it ends the read
        self._open: HttpAnswer | Any = None

    def answers(self) -> Iterator[Received]:
        """Yield the records of one answer, and of each later one that is not the same, every
        ``poll-interval``.
        """
        interval_ms = option(self._table, "poll-interval")
        seen: int | None = None
        validators: dict[str, str] = {}
        while not self._stopped.is_set():
            answer = self._client.request("GET", validators)
            body = answer.body()
            # 304: nothing has changed since the answer with these validators
            if answer.status != 304:
                checksum = zlib.crc32(body)
                validators = _validators(answer)
                if checksum != seen:
                    yield Received(self._records(body, answer), checksum=checksum)
                seen = checksum
            if interval_ms is None:
                return
            self._stopped.wait(int(str(interval_ms)) / 1e3)

    def _records(self, body: bytes, answer: HttpAnswer) -> pa.Array:
        # a page to log in, most often
        if answer.header("Content-Type").startswith("text/html") and self._table.options.get(
            "format", self._table.options.get("value.format")
        ) not in ("raw", "csv"):
            raise self._client.strange(
                "a page (text/html), no records",
                hint="correct 'url'; where it asks to log in, set a token in 'headers.Authorization'",
            )
        try:
            return records_of(body, str(option(self._table, "records")), answer.header("Content-Type"))
        except ValueError as error:
            raise PenstockError(
                "DAT-4201",
                f"{redact_url(self._url)}: the answer is no whole JSON array",
                detail=str(error),
                hint="it may be cut off; where it is no array, set 'records' to 'lines' or 'single'",
                kind=Kind.EXTERNAL,
                sqlstate="22000",
            ) from error

    def events(self, last_id: str) -> Iterator[Received]:
        """Yield server-sent events; where a connection ends, another asks for those after the last id."""
        pause_ms = RECONNECT_MS
        while not self._stopped.is_set():
            headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
            answer = self._open = self._client.request(
                "GET", headers | ({"Last-Event-ID": last_id} if last_id else {})
            )
            # the standard's way to say that no event follows
            if answer.status == 204:
                return
            kind = answer.header("Content-Type").partition(";")[0].strip().lower()
            # the standard: another kind ends the stream for good
            if kind != "text/event-stream":
                answer.close()
                raise self._client.strange(
                    f"{kind or 'an answer without a Content-Type'}, no events (text/event-stream)",
                    hint="correct 'url', or read its answers with 'mode' = 'poll'",
                )
            try:
                for event in server_events(answer.pieces(), last_id, self._limit):
                    last_id = event.last_id
                    pause_ms = pause_ms if event.retry_ms is None else event.retry_ms
                    if event.data is not None:
                        yield Received(pa.array([event.data], pa.binary()), event.kind, last_id or None)
            except ValueError as error:
                raise self._client.too_long() from error
            except PenstockError:
                # the connection broke: as the standard says, another is opened
                if self._stopped.is_set():
                    return
            self._metrics.count("http_reconnects")
            self._stopped.wait(pause_ms / 1e3)

    def messages(self) -> Iterator[Received]:
        """Yield the messages of a websocket; where a connection ends, another is opened."""
        try:
            from websockets.exceptions import ConnectionClosed, InvalidHandshake, WebSocketException
            from websockets.sync.client import connect
        except ImportError as error:
            raise missing_package() from error
        failures, most = 0, int(str(option(self._table, "max-retries")))
        seconds = int(str(option(self._table, "timeout"))) / 1e3
        while not self._stopped.is_set():
            try:
                with connect(
                    self._url,
                    additional_headers=headers_of(self._table),
                    open_timeout=seconds,
                    max_size=self._limit,
                ) as socket:
                    self._open = socket
                    failures = 0
                    for message in socket:
                        data = message.encode() if isinstance(message, str) else message
                        yield Received(pa.array([data], pa.binary()))
            except (OSError, WebSocketException) as error:
                # 1009, RFC 6455 section 7.4.1: this side has closed it, the message is too big
                if isinstance(error, ConnectionClosed) and error.sent and error.sent.code == 1009:
                    raise self._client.too_long() from error
                failures += 1
                if isinstance(error, InvalidHandshake) and failures > most:
                    raise self._client.strange("no answer of a websocket", str(error)) from error
                if self._stopped.is_set():
                    return
                if failures > most:
                    raise self._client.unanswered(error) from error
            self._metrics.count("http_reconnects")
            self._stopped.wait(RECONNECT_MS / 1e3)

    def close(self) -> None:
        """End what is read."""
        self._stopped.set()
        if self._open is not None:
            self._open.close()
        self._client.close()


def _validators(answer: HttpAnswer) -> dict[str, str]:
    pairs = (("If-None-Match", answer.header("ETag")), ("If-Modified-Since", answer.header("Last-Modified")))
    return {name: value for name, value in pairs if value}
