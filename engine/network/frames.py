"""The frames of a connection: they separate messages in a stream of bytes, which are checked before they are
decoded. It knows no socket.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.network.errors import BAD_MAGIC, CHECKSUM, CUT, SEQUENCE, TOO_LONG, network_error

MAGIC = b"PSK1"
_CHECKED = struct.Struct("<4sBBHIII")  # magic, kind, flags, check, channel, sequence, payload length
# kind, flags, channel, sequence, payload length: what the 16 bits of ``check`` are computed over
_FIELDS = struct.Struct("<BBIII")
_CRC = struct.Struct("<I")
HEADER_BYTES = _CHECKED.size + _CRC.size
# a larger batch is split (pieces_that_fit)
MAX_PAYLOAD_BYTES = 128 * 2**20
# headers and small payloads are read through this buffer; large payloads directly into their own
STAGE_BYTES = 64 * 2**10


@dataclass(frozen=True, eq=False)
class NetworkFrame:
    """One message. ``payload`` is a buffer of its own, aligned to 8 bytes or better, which stays valid as
    long as it is referenced.
    """

    kind: int
    flags: int
    channel: int
    payload: memoryview


class FrameWriter:
    """Encodes the frames of one direction of a connection, numbered from 0."""

    def __init__(self) -> None:
        self._sequence = 0

    def encode(
        self, kind: int, channel: int = 0, parts: Sequence[bytes | memoryview] = (), flags: int = 0
    ) -> list[memoryview]:
        """Return a frame as buffers to send in order. ``parts`` (flat bytes) are its payload and are not
        copied.
        """
        # bytes, whatever the items of a part were: lengths are in bytes
        views = [memoryview(part).cast("B") for part in parts if len(part)]
        length = sum(view.nbytes for view in views)
        head = _CHECKED.pack(
            MAGIC,
            kind,
            flags,
            _check(kind, flags, channel, self._sequence, length),
            channel,
            self._sequence,
            length,
        )
        # wraps at 32 bits, as in the header
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        # over header and payload: a payload behind another header does not pass
        crc = zlib.crc32(head)
        for view in views:
            crc = zlib.crc32(view, crc)
        return [memoryview(head + _CRC.pack(crc)), *views]


class FrameReader:
    """Decodes the frames of one direction of a connection.

    ``receive`` accepts bytes. Large payloads need no copy: write into ``writable()``, then report the count
    to ``received(n)``. ``max_payload`` (bytes) may be raised once the peer is authenticated; a longer frame
    is refused before anything is allocated for it. ``checksum=False`` is for tests that show what the
    checksum detects. After an error the reader must not be used again.
    """

    def __init__(self, max_payload: int = MAX_PAYLOAD_BYTES, *, checksum: bool = True) -> None:
        self.max_payload = max_payload
        self._checksum = checksum
        self._sequence = 0
        self._stage = memoryview(bytearray(STAGE_BYTES))
        self._staged = 0
        # kind, flags, channel, crc of a frame whose payload is being filled
        self._head: tuple[int, int, int, int] | None = None
        self._head_bytes = b""
        self._payload = memoryview(b"")
        self._filled = 0

    def writable(self) -> memoryview:
        """Return the buffer for the next bytes; never empty."""
        return self._stage[self._staged :] if self._head is None else self._payload[self._filled :]

    def received(self, count: int) -> list[NetworkFrame]:
        """Process ``count`` bytes written to ``writable()``; return the frames they complete, in order.
        Raises NET-5001 to NET-5004.
        """
        frames: list[NetworkFrame] = []
        # the bytes are payload, written to its buffer
        if self._head is not None:
            self._filled += count
            if self._filled == len(self._payload):
                frames.append(self._complete())
            return frames
        self._staged += count
        position = 0
        # several small frames may have arrived at once
        while self._head is None and self._staged - position > 0:
            used = self._begin(self._stage[position : self._staged])
            if used == 0:
                break
            position += used
            if self._filled == len(self._payload):
                frames.append(self._complete())
        remaining = self._staged - position
        # move an incomplete header to the front of the stage
        if position and remaining:
            self._stage[:remaining] = bytes(self._stage[position : self._staged])
        self._staged = remaining
        return frames

    def receive(self, data: bytes | memoryview) -> list[NetworkFrame]:
        """Process bytes and return the frames they complete, in order. Raises NET-5001 to NET-5004."""
        view, frames = memoryview(data).cast("B"), []
        while view:
            target = self.writable()
            count = min(len(target), len(view))
            target[:count] = view[:count]
            frames += self.received(count)
            view = view[count:]
        return frames

    def end(self) -> None:
        """The stream has ended: raises NET-5005 in the middle of a frame."""
        if self._head is not None or self._staged:
            raise network_error(CUT, "the connection ended inside a message")

    def _begin(self, data: memoryview) -> int:
        """Read a header and the bytes of its payload that have arrived. Return how many bytes that used, 0
        when the header is incomplete.
        """
        # even before the header is complete: another protocol may wait for an answer
        if bytes(data[: len(MAGIC)]) != MAGIC[: len(data)]:
            raise network_error(
                BAD_MAGIC, f"what arrived is not a message of penstock but {_guess(bytes(data[:8]))}"
            )
        if len(data) < HEADER_BYTES:
            return 0
        _, kind, flags, check, channel, sequence, length = _CHECKED.unpack_from(data)
        # before the allocation below
        if length > self.max_payload:
            raise network_error(
                TOO_LONG, f"a message says it is {length} bytes long; {self.max_payload} are allowed"
            )
        if self._checksum and check != _check(kind, flags, channel, sequence, length):
            raise network_error(CHECKSUM, "the header of a message was changed in transit")
        # a lost or repeated frame
        if self._checksum and sequence != self._sequence:
            raise network_error(SEQUENCE, f"message {self._sequence} was due, {sequence} came")
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        self._head = (kind, flags, channel, _CRC.unpack_from(data, _CHECKED.size)[0])
        self._head_bytes = bytes(data[: _CHECKED.size])
        # Arrow's allocator aligns the buffer: rows are read from it in place
        self._payload = memoryview(pa.allocate_buffer(length)).cast("B") if length else memoryview(b"")
        body = data[HEADER_BYTES : HEADER_BYTES + length]
        if length:
            self._payload[: len(body)] = body
        self._filled = len(body)
        return HEADER_BYTES + len(body)

    def _complete(self) -> NetworkFrame:
        assert self._head is not None
        kind, flags, channel, crc = self._head
        payload, self._payload, self._head, self._filled = self._payload, memoryview(b""), None, 0
        if self._checksum and zlib.crc32(payload, zlib.crc32(self._head_bytes)) != crc:
            raise network_error(CHECKSUM, "a message was changed in transit: its checksum is wrong")
        return NetworkFrame(kind, flags, channel, payload.toreadonly())


def _check(kind: int, flags: int, channel: int, sequence: int, length: int) -> int:
    """Return 16 bits that reveal a changed header at once. The frame's checksum can be verified only after as
    many bytes as the header claims.
    """
    return zlib.crc32(_FIELDS.pack(kind, flags, channel, sequence, length)) & 0xFFFF


def _guess(start: bytes) -> str:
    """Guess from its first bytes which other program sent a stream."""
    if start[:4] in (b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI", b"PRI ", b"HTTP"):
        return "HTTP"
    if start[:2] == b"\x16\x03":
        return "TLS: one side has certificates, the other has none"
    if start[:4] == b"SSH-":
        return "SSH"
    return f"something else that begins with {start.hex()}"
