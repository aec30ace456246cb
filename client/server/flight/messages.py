"""Messages of Flight SQL on the wire: each in an ``Any`` whose type URL names it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError, Message

from penstock.catalog.errors import PenstockError
from penstock.client.server.flight import flight_sql_pb2

# generated: its classes are made when it is imported, so no checker sees them
pb: Any = flight_sql_pb2
_PREFIX = "type.googleapis.com/arrow.flight.protocol.sql."


def pack(message: Message) -> bytes:
    """Return a message as an ``Any`` of Flight SQL."""
    name = _PREFIX + message.DESCRIPTOR.name
    return AnyMessage(type_url=name, value=message.SerializeToString()).SerializeToString()


def unpack(data: bytes) -> Message:
    """Return the message of Flight SQL in an ``Any``. CLI-6232 for one that is not known."""
    wrapped = AnyMessage()
    try:
        wrapped.ParseFromString(data)
        name = wrapped.type_url.removeprefix(_PREFIX)
        kind = (
            getattr(pb, name, None) if wrapped.type_url.startswith(_PREFIX) and name.isidentifier() else None
        )
        if kind is None:
            raise unknown_command(wrapped.type_url.rpartition("/")[2] or "this request")
        return kind.FromString(wrapped.value)
    except DecodeError as error:
        raise unreadable("request") from error


def parse(kind: Any, data: bytes) -> Any:
    """Return a message that is in no ``Any``. CLI-6232 for other bytes."""
    try:
        return kind.FromString(data)
    except DecodeError as error:
        raise unreadable(kind.DESCRIPTOR.name) from error


def unknown_command(name: str) -> PenstockError:
    """Return CLI-6232 for a request that the server does not answer."""
    return PenstockError(
        "CLI-6232",
        f"the server does not answer {name[:80]}",
        hint="docs/FLIGHT_SQL.md lists what it answers",
        sqlstate="0A000",
    )


def unreadable(what: str) -> PenstockError:
    """Return CLI-6232 for bytes that are no message."""
    hint = "connect with a driver of Arrow Flight SQL, or penstock.connect('penstock://host:port')"
    return PenstockError(
        "CLI-6232", f"the bytes of a {what} are none of Flight SQL", hint=hint, sqlstate="08P01"
    )


def schema_bytes(schema: pa.Schema) -> bytes:
    """Return a schema as an encapsulated message of Arrow IPC."""
    return schema.serialize().to_pybytes()
