"""Server-sent events: the lines of an answer that does not end, as events.

The format is that of the HTML standard, section 9.2, "Server-sent events".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from penstock.catalog.frozen_dataclass import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class ServerEvent:
    """One event. ``data`` is ``None`` for an event without data, which is no record; ``last_id`` is the id
    that a client tells when it connects again.
    """

    data: bytes | None
    kind: str
    last_id: str
    retry_ms: int | None


def server_events(pieces: Iterable[bytes], last_id: str, limit: int) -> Iterator[ServerEvent]:
    """Yield the events of an answer however it is cut into pieces. An event that does not end is dropped, as
    the standard says: the server sends it again. ValueError for one of more than ``limit`` bytes.
    """
    data: list[bytes] = []
    size = 0
    kind, retry_ms = "message", None
    for line in _lines(pieces, limit):
        size += len(line)
        if size > limit:
            raise ValueError("the event is too long")
        if line:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                data.append(value)
            elif name == b"event":
                kind = value.decode("utf-8", "replace")
            elif name == b"id" and b"\0" not in value:
                last_id = value.decode("utf-8", "replace")
            elif name == b"retry" and value.isdigit():
                retry_ms = int(value)
            # a comment begins with a colon; servers send them so that the connection stays open
            continue
        # an empty line ends the event
        yield ServerEvent(b"\n".join(data) if data else None, kind, last_id, retry_ms)
        data, kind, retry_ms, size = [], "message", None, 0


def _lines(pieces: Iterable[bytes], limit: int) -> Iterator[bytes]:
    rest, first = b"", True
    for piece in pieces:
        rest += piece
        if first and len(rest) >= len(_MARK):
            rest, first = rest.removeprefix(_MARK), False
        # a \r at the end may be half of a \r\n
        held = b"\r" if rest.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(rest.removesuffix(held))
        yield from lines
        if len(rest) > limit:
            raise ValueError("the line is too long")
        rest += held
    if rest.endswith(b"\r"):
        yield rest[:-1]
