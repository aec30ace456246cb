"""Sealed JSON: one line of fields with sorted keys, and a last line with the checksum of the first. A reader
detects any change or truncation.

This file imports only the standard library: Spark's Python workers read commit logs with it.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from typing import Any

Checksum = Callable[[bytes], str]
"""Returns the last line for a text. File formats use different ones; a format never changes its own."""


class BrokenSealError(ValueError):
    """Bytes differ from those that were sealed. Callers report the file under a code of their own."""


def sha256_line(text: bytes) -> str:
    """Return the checksum line of checkpoints and staged rows."""
    return f"#sha256={hashlib.sha256(text).hexdigest()}"


def crc32_line(text: bytes) -> str:
    """Return the checksum line of commit logs."""
    return f"#crc32={zlib.crc32(text):08x}"


def seal(fields: dict[str, Any], checksum: Checksum = sha256_line) -> bytes:
    """Return fields as a line of JSON and a line with its checksum."""
    # Sorted keys and no blanks: equal fields are equal bytes.
    text = json.dumps(fields, sort_keys=True, separators=(",", ":")).encode() + b"\n"
    return text + checksum(text).encode() + b"\n"


def unseal(data: bytes, checksum: Checksum = sha256_line) -> dict[str, Any]:
    """Return sealed fields; raises BrokenSealError when the checksum differs."""
    # the last line break counts too: a file without it was cut, and one with more is not what was written
    body, end = (data[:-1], data[-1:]) if data else (data, b"")
    # The content may hold line breaks; the checksum is the last line.
    text, _, tail = body.rpartition(b"\n")
    expected = checksum(text + b"\n")
    if tail != expected.encode() or end != b"\n":
        line = tail[:80].decode(errors="replace")
        raise BrokenSealError(f"its checksum line is {line!r}, the content's is {expected!r}")
    fields = json.loads(text)
    if not isinstance(fields, dict):
        raise BrokenSealError("it holds no fields")
    return fields
