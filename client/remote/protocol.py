"""What our own client and our server say to each other beside Flight SQL: statements, answers, actions.

They are JSON, values and schemas in the job codec. So the client needs no protobuf.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from penstock.catalog.errors import PenstockError
from penstock.client.results.result import Shape
from penstock.engine.deploy.protocol.codec import decode, encode
from penstock.planner.binder.parameters import Parameters

VERSION = "1"
VERSION_HEADER = "penstock-client"
"""The header by which a server tells our own client from others."""
SESSION_HEADER = "penstock-session"
STATEMENT = b"penstock.statement/1\n"
"""The first bytes of a descriptor's command that has a statement of our own client."""
_ACCEPTED = (
    "pass None, bool, int, float, Decimal, str, bytes, date, time, datetime, timedelta, UUID, list or dict"
)


@dataclass(frozen=True)
class StatementRequest:
    """One statement to run. ``statement_id`` is the client's, so that it can cancel before there is an
    answer.
    """

    sql: str
    params: Parameters
    statement_id: str

    def encoded(self) -> bytes:
        """Return the bytes of a descriptor's command. SQL-1014 for a value without an SQL type."""
        words = {"sql": self.sql, "id": self.statement_id}
        if self.params:
            values = _plain(self.params)
            # sequences are tuples here: the codec has no lists, and a value that is one is told apart
            words["params"] = encode(values).decode()
        return STATEMENT + json.dumps(words).encode()


def decode_request(command: bytes) -> StatementRequest:
    """Return what ``StatementRequest.encoded`` wrote. ValueError or INT-9032 for other bytes."""
    words = json.loads(command.removeprefix(STATEMENT))
    # no class is built: values only
    params = decode(words["params"].encode(), only=()) if "params" in words else ()
    return StatementRequest(str(words["sql"]), params, str(words["id"]))


@dataclass(frozen=True)
class StatementAnswer:
    """What became of a statement: the shape of its rows, or what it did. ``job``: id and name of its job."""

    shape: Shape
    note: str | None
    rowcount: int
    job: tuple[str, str] | None
    ended: bool

    def encoded(self) -> bytes:
        """Return the bytes of a FlightInfo's metadata."""
        shape = tuple(getattr(self.shape, name) for name in _SHAPE)
        return encode((shape, self.note, self.rowcount, self.job, self.ended))


def decode_answer(data: bytes) -> StatementAnswer:
    """Return what ``StatementAnswer.encoded`` wrote."""
    shape, *rest = decode(data)
    return StatementAnswer(Shape(**dict(zip(_SHAPE, shape, strict=True))), *rest)


_SHAPE = (
    "schema",
    "finite",
    "insert_only",
    "upsert_key",
    "order",
    "streamed",
    "limit",
    "verbatim",
    "update_key",
    "subscribed",
    "order_fields",
)


def encode_words(words: Mapping[str, Any]) -> bytes:
    """Return the body of an action or of its answer."""
    return json.dumps(words, separators=(",", ":")).encode()


def decode_words(data: bytes) -> dict[str, Any]:
    """Return what ``encode_words`` wrote; nothing for no bytes. ValueError for other bytes."""
    words = json.loads(data) if data else {}
    if not isinstance(words, dict):
        raise ValueError("not an object of JSON")
    return words


def _plain(value: Any) -> Any:
    """Return a value of the program in types that the codec has; a list becomes a tuple."""
    # a scalar or an array of numpy
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        value = value.tolist()
    # a missing value of pandas
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    for method in ("to_pydatetime", "to_pytimedelta"):
        if hasattr(value, method):
            return getattr(value, method)()
    match value:
        case UUID():
            return str(value)
        case bytearray() | memoryview():
            return bytes(value)
        case str():
            return str.__str__(value)
        case Mapping():
            return {_plain(key): _plain(part) for key, part in value.items()}
        case Sequence() if not isinstance(value, bytes):
            return tuple(_plain(part) for part in value)
    return _checked(value)


def _checked(value: Any) -> Any:
    try:
        encode(value)
    except PenstockError as error:
        message = f"a value of Python type {type(value).__name__} has no SQL type"
        raise PenstockError("SQL-1014", message, hint=_ACCEPTED) from error
    return value
