"""Messages of the server, as bytes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Schema
from penstock.client.server.postgres.wire_types import modifier, wire_type

PARSE_COMPLETE = b"1\0\0\0\4"
BIND_COMPLETE = b"2\0\0\0\4"
CLOSE_COMPLETE = b"3\0\0\0\4"
NO_DATA = b"n\0\0\0\4"
EMPTY_QUERY = b"I\0\0\0\4"
PORTAL_SUSPENDED = b"s\0\0\0\4"
COPY_DONE = b"c\0\0\0\4"
TLS_ACCEPTED, ENCRYPTION_REFUSED = b"S", b"N"
IDLE, IN_TRANSACTION, FAILED = b"I", b"T", b"E"
"""The states of ReadyForQuery."""


def message(tag: bytes, body: bytes) -> bytes:
    """Return a message: its tag, the length of the rest, its body."""
    return tag + struct.pack(">i", len(body) + 4) + body


def text(value: str) -> bytes:
    """Return a text with its end. A zero inside would be its end, so it is left out."""
    return value.replace("\0", "").encode("utf-8", "replace") + b"\0"


def authentication(kind: int, payload: bytes = b"") -> bytes:
    """Return an authentication request: 0 is success, 3 asks for a password, 10 to 12 are those of SASL."""
    return message(b"R", struct.pack(">i", kind) + payload)


def parameter_status(name: str, value: str) -> bytes:
    """Return the value of a parameter that clients follow."""
    return message(b"S", text(name) + text(value))


def backend_key(process: int, key: int) -> bytes:
    """Return what a client sends to cancel."""
    return message(b"K", struct.pack(">iI", process, key))


def ready(state: bytes) -> bytes:
    """Return ReadyForQuery."""
    return message(b"Z", state)


def command_complete(tag: str) -> bytes:
    """Return the end of a statement, with its tag such as ``SELECT 5``."""
    return message(b"C", text(tag))


def parameter_description(oids: Sequence[int]) -> bytes:
    """Return the types of a prepared statement's parameters."""
    return message(b"t", struct.pack(f">H{len(oids)}I", len(oids), *oids))


def row_description(schema: Schema, formats: Sequence[int], oids: Mapping[str, int] | None = None) -> bytes:
    """Return the columns of rows. No column says which table it is of. ``oids`` are types by column name,
    where another one of PostgreSQL has the same bytes.
    """
    parts = [struct.pack(">H", len(schema))]
    for field, form in zip(schema, formats, strict=True):
        kind = wire_type(field.type)
        oid = kind.oid if oids is None else oids.get(field.name, kind.oid)
        shape = struct.pack(">IhIhih", 0, 0, oid, kind.size, modifier(field.type), form)
        parts += [text(field.name), shape]
    return message(b"T", b"".join(parts))


def copy_response(tag: bytes, columns: int, *, binary: bool) -> bytes:
    """Return the start of a COPY: to the client (``H``) or from it (``G``)."""
    form = 1 if binary else 0
    return message(tag, struct.pack(f">bH{columns}H", form, columns, *[form] * columns))


def copy_data(payload: bytes) -> bytes:
    """Return one piece of a COPY to the client."""
    return message(b"d", payload)


def notice(sentence: str, hint: str | None = None, sqlstate: str = "00000") -> bytes:
    """Return a NOTICE."""
    fields = {"S": "NOTICE", "V": "NOTICE", "C": sqlstate, "M": sentence, "H": hint}
    return message(b"N", _fields(fields))


def error_response(error: PenstockError, offset: int = 0, *, fatal: bool = False) -> bytes:
    """Return an error. ``offset`` is where the statement begins in the text that the client has sent: the
    position is of the whole text, in characters from 1.
    """
    severity = "FATAL" if fatal else "ERROR"
    position = None if error.span is None else str(error.span.start + offset + 1)
    text_and_code = f"{error.message} [{error.code}]"
    fields = {"S": severity, "V": severity, "C": error.sqlstate, "M": text_and_code, "D": error.detail}
    return message(b"E", _fields({**fields, "H": error.hint, "P": position}))


def _fields(fields: dict[str, str | None]) -> bytes:
    written = (tag.encode() + text(value) for tag, value in fields.items() if value is not None)
    return b"".join(written) + b"\0"
