"""Messages of clients, and the reader that cuts them out of received bytes. It does no I/O."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from penstock.catalog.errors import Kind, PenstockError

PROTOCOL_3 = 196608
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
STARTUP_BYTES = 10_000
"""The longest message before a client is authenticated, as PostgreSQL limits its start-up packet."""


@dataclass(frozen=True)
class Startup:
    """The first message: the protocol's version and the client's parameters (user, database, ..)."""

    version: int
    parameters: dict[str, str]


@dataclass(frozen=True)
class EncryptionRequest:
    """Asks for TLS before the start-up, or for GSS, which is always refused."""

    tls: bool


@dataclass(frozen=True)
class CancelRequest:
    """Cancels the statement of another connection, which has this number and key."""

    process: int
    key: int


@dataclass(frozen=True)
class Credentials:
    """A password, or a message of SCRAM: which, the state of the handshake decides."""

    payload: bytes


@dataclass(frozen=True)
class SimpleQuery:
    """Statements to run one after the other, their rows as text."""

    sql: str


@dataclass(frozen=True)
class Parse:
    """Prepare a statement. ``oids`` are the types of its first parameters, 0 where not known."""

    name: str
    sql: str
    oids: tuple[int, ...]


@dataclass(frozen=True)
class Bind:
    """Make a portal of a prepared statement and values. ``formats`` and ``result_formats`` have no entry
    (text), one for all, or one each; 1 is binary.
    """

    portal: str
    statement: str
    formats: tuple[int, ...]
    values: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


@dataclass(frozen=True)
class DescribeRequest:
    """Asks for the columns of a statement (``S``) or a portal (``P``)."""

    kind: str
    name: str


@dataclass(frozen=True)
class Execute:
    """Run a portal for up to ``rows`` rows (0: all)."""

    portal: str
    rows: int


@dataclass(frozen=True)
class Close:
    """Forget a statement (``S``) or a portal (``P``)."""

    kind: str
    name: str


@dataclass(frozen=True)
class CopyData:
    """Bytes of a COPY FROM STDIN."""

    payload: bytes


@dataclass(frozen=True)
class CopyFail:
    """The client gives up its COPY FROM STDIN."""

    reason: str


@dataclass(frozen=True)
class CopyDone:
    """The client has sent all of its COPY FROM STDIN."""


@dataclass(frozen=True)
class Sync:
    """The end of a batch of the extended protocol: errors before it skip to here."""


@dataclass(frozen=True)
class Flush:
    """Send what is buffered."""


@dataclass(frozen=True)
class Terminate:
    """The client leaves."""


@dataclass(frozen=True)
class FastPathCall:
    """A call by the fast path of PostgreSQL 7, which is refused."""


Message = (
    Startup
    | EncryptionRequest
    | CancelRequest
    | Credentials
    | SimpleQuery
    | Parse
    | Bind
    | DescribeRequest
    | Execute
    | Close
    | CopyData
    | CopyFail
    | CopyDone
    | Sync
    | Flush
    | Terminate
    | FastPathCall
)


def violation(message: str) -> PenstockError:
    """Return the error of bytes that are no message of the protocol: the connection ends with it."""
    return PenstockError(
        "CLI-6220",
        message,
        hint="the client speaks another protocol than PostgreSQL's version 3, or sends too much at once",
        kind=Kind.EXTERNAL,
        sqlstate="08P01",
    )


class _Fields:
    """The fields of one message, read in their order. Raises CLI-6220 where they end too early."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def text(self) -> str:
        end = self._body.find(b"\0", self._at)
        if end < 0:
            raise violation("a text of a message has no end")
        raw, self._at = self._body[self._at : end], end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise violation("a text of a message is no UTF-8") from None

    def take(self, count: int) -> bytes:
        if count < 0 or self._at + count > len(self._body):
            raise violation("a message is shorter than its fields")
        self._at += count
        return self._body[self._at - count : self._at]

    def int16(self) -> int:
        return int.from_bytes(self.take(2), "big")

    def int32(self) -> int:
        return int.from_bytes(self.take(4), "big", signed=True)

    def int16s(self) -> tuple[int, ...]:
        count = self.int16()
        return struct.unpack(f">{count}h", self.take(2 * count))

    def rest(self) -> bytes:
        return self.take(len(self._body) - self._at)

    def end(self) -> None:
        if self._at != len(self._body):
            raise violation("a message is longer than its fields")


class FrontendReader:
    """Cuts messages out of bytes as they come. ``append`` takes bytes, ``next`` returns a message or None.

    Until ``start_session`` the messages are those of a start, with ``STARTUP_BYTES`` at most.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._buffer = bytearray()
        self._untagged = True
        self._is_open = False

    @property
    def buffered(self) -> int:
        """The bytes that came and are in no message yet."""
        return len(self._buffer)

    def append(self, data: bytes) -> None:
        """Append received bytes."""
        self._buffer += data

    def start_session(self) -> None:
        """Accept messages of any length within the limit: the client is authenticated."""
        self._is_open = True

    def next(self) -> Message | None:
        """Return the next whole message. Raises CLI-6220 for bytes that are none."""
        head = 0 if self._untagged else 1
        if len(self._buffer) < head + 4:
            return None
        tag = self._buffer[0] if head else 0
        # before the length is looked at: an unknown tag is not waited for
        if head and tag not in _TAGGED:
            raise violation(f"there is no message of type {bytes([tag])!r}")
        length = int.from_bytes(self._buffer[head : head + 4], "big", signed=True)
        most = self._most_bytes if self._is_open else STARTUP_BYTES
        if not 4 <= length <= most:
            raise violation(f"a message of {length} bytes is refused: at most {most} are read here")
        if len(self._buffer) < head + length:
            return None
        body = bytes(self._buffer[head + 4 : head + length])
        del self._buffer[: head + length]
        fields = _Fields(body)
        message = _TAGGED[tag](fields) if head else self._first(fields)
        fields.end()
        return message

    def _first(self, fields: _Fields) -> Message:
        version = fields.int32()
        if version in (SSL_REQUEST, GSS_REQUEST):
            return EncryptionRequest(version == SSL_REQUEST)
        if version == CANCEL_REQUEST:
            return CancelRequest(fields.int32(), int.from_bytes(fields.take(4), "big"))
        if version >> 16 != 3:
            raise violation(f"protocol {version >> 16}.{version & 0xFFFF} is not spoken here, 3.0 is")
        parameters: dict[str, str] = {}
        while name := fields.text():
            parameters[name] = fields.text()
        self._untagged = False
        return Startup(version, parameters)


def _parse(fields: _Fields) -> Parse:
    name, sql, count = fields.text(), fields.text(), fields.int16()
    return Parse(name, sql, struct.unpack(f">{count}I", fields.take(4 * count)))


def _bind(fields: _Fields) -> Bind:
    portal, statement, formats = fields.text(), fields.text(), fields.int16s()
    values = []
    for _ in range(fields.int16()):
        length = fields.int32()
        values.append(None if length == -1 else fields.take(length))
    return Bind(portal, statement, formats, tuple(values), fields.int16s())


def _target(fields: _Fields) -> tuple[str, str]:
    kind = fields.take(1)
    if kind not in (b"S", b"P"):
        raise violation("only a statement or a portal can be described or closed")
    return kind.decode(), fields.text()


def _ignored(fields: _Fields) -> FastPathCall:
    fields.rest()
    return FastPathCall()


_TAGGED: dict[int, Callable[[_Fields], Message]] = {
    ord("Q"): lambda fields: SimpleQuery(fields.text()),
    ord("P"): _parse,
    ord("B"): _bind,
    ord("D"): lambda fields: DescribeRequest(*_target(fields)),
    ord("E"): lambda fields: Execute(fields.text(), fields.int32()),
    ord("C"): lambda fields: Close(*_target(fields)),
    ord("S"): lambda fields: Sync(),
    ord("H"): lambda fields: Flush(),
    ord("X"): lambda fields: Terminate(),
    ord("p"): lambda fields: Credentials(fields.rest()),
    ord("d"): lambda fields: CopyData(fields.rest()),
    ord("c"): lambda fields: CopyDone(),
    ord("f"): lambda fields: CopyFail(fields.text()),
    ord("F"): _ignored,
}
