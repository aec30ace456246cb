"""Messages of a stream in their order, fetched by a consumer that JetStream forgets with the connection."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.connectors.nats.client import NatsServer, stream_info

# messages and bytes of one request; the server sends one message that is longer all the same
_MESSAGES = 4_096
_BYTES = 16 << 20
# a request without messages ends after this time, so that a closed reader ends
_WAIT_S = 0.5
# a consumer that nobody asks for so long is deleted by the server
_FORGOTTEN_S = 60
_NANOS = 1_000_000_000
# how a request for messages ends that has not failed: none came, or as many bytes as were asked for
_ENDS = ("404", "408", "409 Batch Completed", "409 Message Size Exceeds MaxBytes")


@dataclass(frozen=True)
class Fetched:
    """Messages in the order of their sequences. ``times``: microseconds since 1970; ``last``: up to which
    sequence nothing else is to be read; ``pending``: how many messages the stream had behind that.
    """

    values: pa.Array
    sequences: np.ndarray
    times: np.ndarray
    subjects: pa.Array
    headers: list[dict[str, str] | None]
    last: int
    pending: int

    def __len__(self) -> int:
        return len(self.sequences)

    def slice(self, first: int, count: int) -> Fetched:
        """Return so many messages from one on."""
        rows = slice(first, first + count)
        sequences = self.sequences[rows]
        whole = first + count >= len(self)
        return Fetched(
            self.values.slice(first, count),
            sequences,
            self.times[rows],
            self.subjects.slice(first, count),
            self.headers[rows],
            self.last if whole or not len(sequences) else int(sequences[-1]),
            self.pending,
        )

    def filter(self, kept: pa.Array) -> Fetched:
        """Return the messages that are kept; the others count as read."""
        rows = np.flatnonzero(np.asarray(kept))
        return Fetched(
            self.values.filter(kept),
            self.sequences[rows],
            self.times[rows],
            self.subjects.filter(kept),
            [self.headers[row] for row in rows],
            self.last,
            self.pending,
        )


def nothing_up_to(last: int) -> Fetched:
    """Return no messages: there are none up to a sequence."""
    none = np.array([], np.int64)
    return Fetched(pa.array([], pa.binary()), none, none, pa.array([], pa.string()), [], last, 0)


class StreamConsumer:
    """Reads a stream behind a sequence. It acknowledges nothing: the position is the reader's.

    Messages that were lost on the way are noticed by the consumer's own numbers; DAT-5901 then, and another
    consumer continues behind the last message.
    """

    def __init__(self, server: NatsServer, stream: str, subject: str | None, last: int) -> None:
        self._server, self._stream = server, stream
        config: dict[str, Any] = {
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": last + 1,
            "ack_policy": "none",
            "replay_policy": "instant",
            "inactive_threshold": _FORGOTTEN_S * _NANOS,
            "mem_storage": True,
            "num_replicas": 1,
        }
        if subject is not None:
            config["filter_subject"] = subject
        self._name, info = create_consumer(server, stream, config)
        self.pending = int(info["num_pending"])
        self._received = 0
        self._requested = 0
        self._status: str | None = None
        self._arrived: list[Any] = []
        self._changed = asyncio.Event()
        self._inbox: str | None = None

    def fetch(self) -> Fetched | None:
        """Return messages as soon as there are some; ``None`` when none came in half a second."""
        messages = self._server.call(self._fetch)
        return self._columns(messages) if messages else None

    async def _fetch(self, client: Any) -> list[Any]:
        if self._inbox is None:
            self._client, self._inbox = client, client.new_inbox()
            # there is never more than what a request asks for: the library need not drop any
            await client.subscribe(
                self._inbox, cb=self._add, pending_msgs_limit=2 * _MESSAGES, pending_bytes_limit=0
            )
        if client is not self._client:
            raise ConnectionError("the connection was opened again")
        if self._requested <= 0:
            await self._request(client)
        if not self._arrived and self._status is None:
            await asyncio.wait_for(self._changed.wait(), self._server.timeout_s + _WAIT_S)
        messages, self._arrived = self._arrived, []
        status, self._status = self._status, None
        self._changed.clear()
        if status is not None:
            self._requested = 0
            if not status.startswith(_ENDS):
                raise ConnectionError(status)
        return messages

    async def _request(self, client: Any) -> None:
        self._requested = _MESSAGES
        body = {
            "batch": _MESSAGES,
            "max_bytes": max(_BYTES, 2 * client.max_payload),
            "expires": int(_WAIT_S * _NANOS),
        }
        await client.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._name}", json.dumps(body).encode(), self._inbox
        )

    async def _add(self, message: Any) -> None:
        # a message has an address for acknowledgements, a status has none
        if message.reply:
            self._arrived.append(message)
            self._requested -= 1
        else:
            # the library keeps the description under a name of its own
            self._status = " ".join((message.headers or {"Status": "without a status"}).values())
        self._changed.set()

    def _columns(self, messages: list[Any]) -> Fetched:
        # the client makes an object of each message; here they become columns
        tokens = pc.split_pattern(pa.array([message.reply for message in messages], pa.string()), ".")
        # $JS.ACK.[domain.account.]stream.consumer.delivered.sequence.number.time.pending[.random]
        more = 0 if len(tokens[0]) == 9 else 2

        def numbers(place: int) -> np.ndarray:
            return np.asarray(pc.list_element(tokens, place + more).cast(pa.int64()))

        order, pending = numbers(6), numbers(8)
        if not np.array_equal(order, np.arange(self._received + 1, self._received + len(messages) + 1)):
            raise PenstockError(
                "DAT-5901",
                f"messages of the stream {self._stream} were lost on the way",
                hint="nothing is to be done: they are fetched again",
                kind=Kind.EXTERNAL,
                retriable=True,
                sqlstate="08006",
            )
        self._received += len(messages)
        self.pending = int(pending[-1])
        return Fetched(
            pa.array([message.data for message in messages], pa.binary()),
            numbers(5),
            numbers(7) // 1_000,
            pa.array([message.subject for message in messages], pa.string()),
            [message.headers for message in messages],
            int(numbers(5)[-1]),
            self.pending,
        )

    def reached(self) -> int | None:
        """Return a sequence up to which nothing can follow; ``None`` while there are messages to fetch."""
        last = int(stream_info(self._server, self._stream)["state"]["last_seq"])
        # 10014: the server has forgotten the consumer, and the next request for messages says so
        info = self._server.ask(f"$JS.API.CONSUMER.INFO.{self._stream}.{self._name}", {}, missing=10014)
        if (
            info is None
            or int(info["num_pending"])
            or int(info["delivered"]["consumer_seq"]) != self._received
        ):
            return None
        return last


def create_consumer(server: NatsServer, stream: str, config: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Make a consumer that JetStream names; return its name and what is known of it."""
    body = {"stream_name": stream, "config": config}
    info = server.ask(f"$JS.API.CONSUMER.CREATE.{stream}", body)
    assert info is not None, "an error was raised"
    return str(info["name"]), info
