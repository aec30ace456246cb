"""The connection of a table to its broker, and its errors as sentences."""

from __future__ import annotations

import contextlib
import selectors
import ssl
from collections import deque
from typing import Any
from urllib.parse import unquote, urlsplit

from penstock.catalog.connectors.mqtt import VERSION_5
from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.secrets import redact_url
from penstock.catalog.tables import CatalogTable

_PORTS = {"mqtt": 1883, "mqtts": 8883}
# an answer is looked for this often
_LOOK_S = 0.05
# messages that are not acknowledged yet: what a broker takes at once by default is as many or more
_IN_FLIGHT = 1_000
# a broker answers a subscription it refuses with this or more
_REFUSED = 0x80


@dataclass(frozen=True)
class Arrived:
    """One message. ``number`` acknowledges it, on the connection that it came by."""

    connection: int
    number: int
    qos: int
    topic: str
    retain: bool
    payload: bytes
    properties: list[tuple[str, str]]


class MqttConnection:
    """A session at a broker. ``keeps``: the broker keeps it while we are away, and sends again what was not
    acknowledged; messages are acknowledged by ``acknowledge`` then.

    One thread at a time uses it, but ``acknowledge``, which any thread may call.
    """

    def __init__(self, table: CatalogTable, client_id: str, *, keeps: bool) -> None:
        try:
            from paho.mqtt import client, enums, properties, reasoncodes
        except ImportError as error:
            raise PenstockError(
                "DAT-6000",
                "the connector 'mqtt' needs the package paho-mqtt",
                hint="pip install 'penstock[mqtt]'",
                sqlstate="0A000",
            ) from error
        self._library, self._properties, self._reasons = client, properties, reasoncodes
        self._table, self._client_id, self._keeps = table, client_id, keeps
        self._shown = redact_url(table.options["url"])
        self._is_5 = option(table, "version") == VERSION_5
        self.timeout_s = int(str(option(table, "timeout"))) / 1e3
        self._connections = 0
        self._connected: Any = None
        self._subscribed: list[Any] | None = None
        self.session_present = False
        self._arrived: list[Arrived] = []
        self._acknowledged: deque[tuple[int, int]] = deque()
        self.redelivered = 0
        self._api = enums.CallbackAPIVersion.VERSION2
        self.client = self._made(keeps)

    def _made(self, keeps: bool) -> Any:
        kept: dict[str, Any] = {} if self._is_5 else {"clean_session": not keeps}
        protocol = self._library.MQTTv5 if self._is_5 else self._library.MQTTv311
        made = self._library.Client(
            self._api, client_id=self._client_id, protocol=protocol, manual_ack=keeps, **kept
        )
        made.max_inflight_messages_set(_IN_FLIGHT)
        options, parts = self._table.options, urlsplit(self._table.options["url"])
        name = options.get("username", None if parts.username is None else unquote(parts.username))
        word = options.get("password", None if parts.password is None else unquote(parts.password))
        if name is not None:
            made.username_pw_set(name, word)
        if parts.scheme == "mqtts":
            made.tls_set_context(self._tls())
        made.connect_timeout = self.timeout_s
        made.on_connect, made.on_subscribe, made.on_message = self._on_connect, self._on_subscribe, self._add
        return made

    def _tls(self) -> ssl.SSLContext:
        options = self._table.options
        try:
            context = ssl.create_default_context(cafile=options.get("tls.ca-file"))
            if "tls.certificate-file" in options:
                context.load_cert_chain(options["tls.certificate-file"], options.get("tls.key-file"))
        except OSError as error:
            raise self.refused(f"a file of the options tls.* cannot be read: {error}") from error
        return context

    def connect(self) -> None:
        """Connect and wait for the broker's answer. DAT-6001 and DAT-6002."""
        self._connections += 1
        self._open(self.client, self._keeps)

    def _open(self, client: Any, keeps: bool) -> None:
        parts = urlsplit(self._table.options["url"])
        asked: dict[str, Any] = {}
        if self._is_5:
            asked = {"clean_start": not keeps, "properties": self._expiry(keeps)}
        self._connected = None
        try:
            client.connect(
                parts.hostname,
                parts.port or _PORTS[parts.scheme],
                keepalive=max(1, int(str(option(self._table, "keep-alive"))) // 1_000),
                **asked,
            )
        except ssl.SSLError as error:
            raise self.refused(str(error)) from error
        except OSError as error:
            raise self.unanswered(str(error)) from error
        if not self._await(client, lambda: self._connected is not None):
            raise self.unanswered("it does not speak MQTT of this version, or is busy")
        if self._connected.is_failure:
            raise self.refused(str(self._connected))

    def _expiry(self, keeps: bool) -> Any:
        made = self._properties.Properties(self._properties.PacketTypes.CONNECT)
        made.SessionExpiryInterval = int(str(option(self._table, "session-expiry"))) // 1_000 if keeps else 0
        return made

    def subscribe(self, topic: str, qos: int) -> None:
        """Ask for a topic. DAT-6002."""
        self._subscribed = None
        self.client.subscribe(topic, qos)
        if not self._await(self.client, lambda: self._subscribed is not None):
            raise self.unanswered("it did not answer a subscription")
        answered: list[Any] = self._subscribed or []
        for reason in answered:
            if reason.value >= _REFUSED:
                raise self.refused(f"topic {topic}: {reason}")

    def _await(self, client: Any, answered: Any) -> bool:
        for _ in range(max(1, round(self.timeout_s / _LOOK_S))):
            # an error ends the connection, and an answer with a refusal was read before
            if self._exchange(client) or answered():
                break
        return bool(answered())

    def _exchange(self, client: Any) -> int:
        """Wait a short while for the broker, read and write what can be. Return the library's error, or 0.

        The library's own ``loop`` waits with ``select()``, which refuses descriptors from 1024 on.
        """
        connection = client.socket()
        if connection is None:
            return int(self._library.MQTT_ERR_NO_CONN)
        # bytes that TLS has decrypted already make no descriptor ready
        pending = isinstance(connection, ssl.SSLSocket) and connection.pending() > 0
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.want_write() else 0)
        with selectors.DefaultSelector() as selector:
            selector.register(connection, events)
            ready = selector.select(0 if pending else _LOOK_S)
        readable = pending or any(mask & selectors.EVENT_READ for _, mask in ready)
        ended = client.loop_read() if readable else 0
        # what was read may have queued answers
        if not ended and client.want_write():
            ended = client.loop_write()
        return int(ended or client.loop_misc())

    def receive(self, most: int) -> list[Arrived]:
        """Return what has come, at most about ``most``; nothing after a short while. DAT-6001 when the
        connection broke.
        """
        self._send_acknowledgements()
        ended = self._exchange(self.client)
        count = -1
        # the library reads one packet a call
        while not ended and count < len(self._arrived) < most:
            count = len(self._arrived)
            ended = self.client.loop_read()
        arrived, self._arrived = self._arrived, []
        if ended and not arrived:
            raise self.unanswered(self._library.error_string(ended))
        return arrived

    def _send_acknowledgements(self) -> None:
        while self._acknowledged:
            connection, number = self._acknowledged.popleft()
            # a number is of its connection: what another one sent is sent again with a number of its own
            if connection == self._connections:
                self.client.ack(number, 1)

    def acknowledge(self, message: Arrived) -> None:
        """Let the broker forget a message, with the next ``receive``."""
        if message.qos == 1 and self._keeps:
            self._acknowledged.append((message.connection, message.number))

    def forget_session(self) -> None:
        """Let the broker forget the session: the next connection finds none."""
        with contextlib.suppress(PenstockError):
            other = self._made(False)
            self._open(other, False)
            other.disconnect()

    def _on_connect(self, _client: Any, _data: Any, flags: Any, reason: Any, _properties: Any) -> None:
        self._connected, self.session_present = reason, bool(flags.session_present)

    def _on_subscribe(self, _client: Any, _data: Any, _number: int, reasons: Any, _properties: Any) -> None:
        self._subscribed = list(reasons)

    def _add(self, _client: Any, _data: Any, message: Any) -> None:
        self.redelivered += bool(message.dup)
        self._arrived.append(
            Arrived(
                self._connections,
                message.mid,
                message.qos,
                message.topic,
                bool(message.retain),
                bytes(message.payload),
                list(getattr(message.properties, "UserProperty", ())),
            )
        )

    def unanswered(self, detail: str) -> PenstockError:
        """Return the error of a broker that is away."""
        return PenstockError(
            "DAT-6001",
            f"the broker {self._shown} does not answer",
            detail=detail[:200],
            hint="start the broker, or correct 'url'",
            kind=Kind.EXTERNAL,
            retriable=True,
            sqlstate="08001",
        )

    def refused(self, detail: str) -> PenstockError:
        """Return the error of a broker that does not do what it is asked."""
        return PenstockError(
            "DAT-6002",
            f"the broker {self._shown} refuses a request",
            detail=detail[:200],
            hint="correct 'username', 'password', 'topic' or 'version', or ask for the right",
            kind=Kind.EXTERNAL,
            sqlstate="08004",
        )

    def close(self) -> None:
        """Disconnect; the broker keeps the session."""
        with contextlib.suppress(OSError, ValueError):
            self._send_acknowledgements()
            self.client.disconnect()
