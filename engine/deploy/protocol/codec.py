"""The job codec: it encodes job graphs, options and messages as JSON text, and decodes them. It knows a
closed list of classes; the text holds no code and no name to import.

A text is a list of nodes, each of which refers to earlier nodes only. So decoding needs no recursion, and
shared values stay shared. Rows and int64 columns are attached to the text, as Arrow IPC streams and as int64
bytes.

Why not protobuf: ``import grpc, google.protobuf`` takes 160 ms of processor time in each worker, and only the
Spark extra installs it. This module is imported in 1 ms beside the classes it encodes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.python_functions import PythonFunction
from penstock.engine.deploy.protocol.codec_registry import fields_of, name_of, registered_classes

# limits of a text from a peer: checked before anything is built from it
NODES_MAX = 2_000_000
BYTES_MAX = 256 << 20
# encoding is recursive, so nesting is bounded; decoding is not recursive
DEPTH_MAX = 900

Node = list[Any]
Attachment = bytes | memoryview
_ATTACHED = ("rows", "numbers")
NameFunction = Callable[[PythonFunction], str]
FindFunction = Callable[[str], PythonFunction]


def no_functions(function: PythonFunction | str) -> Any:
    """Refuse a Python function where none is expected: INT-9031."""
    raise PenstockError(
        "INT-9031", "a Python function cannot be sent here", kind=Kind.INTERNAL, sqlstate="XX000"
    )


def encode(
    value: Any, name_function: NameFunction = no_functions, attached: list[Attachment] | None = None
) -> bytes:
    """Encode a value of registered classes and plain data as bytes. ``name_function`` returns the name by
    which the reader finds a Python function.

    Rows are appended to ``attached``. Raises INT-9031 for any other value, and for nesting deeper than
    ``DEPTH_MAX``.
    """
    encoder = _Encoder(name_function, attached)
    root = encoder.word(value, 0)
    return json.dumps({"root": root, "nodes": encoder.nodes}, separators=(",", ":"), allow_nan=False).encode()


def decode(
    data: Attachment,
    find_function: FindFunction = no_functions,
    attached: Sequence[Attachment] = (),
    only: Collection[type[Any]] | None = None,
) -> Any:
    """Return the value that ``encode`` encoded; with ``only``, no other classes are built.

    INT-9032 for text that is too long, names an unknown class, or has another form.
    """
    if len(data) > BYTES_MAX:
        raise _damaged(f"{len(data)} bytes, at most {BYTES_MAX}")
    known = registered_classes() if only is None else {name_of(each): each for each in only}
    try:
        text = json.loads(bytes(data))
        root, nodes = text["root"], text["nodes"]
        if len(nodes) > NODES_MAX:
            raise _damaged(f"{len(nodes)} nodes, at most {NODES_MAX}")
        # values by node number: every reference is to one that is already made
        made: list[Any] = []
        for node in nodes:
            made.append(
                _read_attached(node, attached)
                if node[0] in _ATTACHED
                else _made(node, made, find_function, known)
            )
        return _value(root, made)
    except (
        ValueError,
        TypeError,
        KeyError,
        IndexError,
        ArithmeticError,
        RecursionError,
        pa.ArrowException,
        OSError,
    ) as cause:
        raise _damaged(f"{type(cause).__name__}: {cause}") from cause


def _damaged(why: str) -> PenstockError:
    return PenstockError(
        "INT-9032", f"a job that was sent cannot be read: {why}"[:300], kind=Kind.INTERNAL, sqlstate="XX000"
    )


class _Encoder:
    """Collects the nodes of a text; equal nodes are written once. A word is a JSON scalar, or ``[n]`` for
    node n.
    """

    def __init__(self, name_function: NameFunction, attached: list[Attachment] | None) -> None:
        self.nodes: list[Node] = []
        self._attached = attached
        self._known: dict[str, int] = {}
        self._name_function = name_function

    def word(self, value: Any, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise PenstockError(
                "INT-9031",
                f"the plan is nested more than {DEPTH_MAX} deep",
                kind=Kind.INTERNAL,
                sqlstate="XX000",
            )
        kind = type(value)
        # JSON scalars need no node; ``kind`` is exact, so that members of enums do not pass as int or str
        if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
            return value
        # children first: a node refers to earlier nodes only
        node = self._node(value, depth + 1)
        text = json.dumps(node)
        # equal subtrees are one node: the text of a plan with shared parts stays small
        number = self._known.get(text)
        if number is None:
            number = self._known[text] = len(self.nodes)
            self.nodes.append(node)
        return [number]

    def _node(self, value: Any, depth: int) -> Node:
        plain = _WRITERS.get(type(value))
        if plain is not None:
            tag, write = plain
            return [tag, write(value)]
        # enums by the name of their member, so that values may change
        if isinstance(value, Enum):
            return ["enum", _registered(type(value)), value.name]
        if isinstance(value, Path):
            return ["path", str(value)]
        if isinstance(value, PythonFunction):
            return ["function", self._name_function(value)]
        if type(value) is tuple:
            return ["tuple", *(self.word(item, depth) for item in value)]
        if type(value) is frozenset:
            # sorted: the same set has the same text in every process
            return ["set", *sorted((self.word(item, depth) for item in value), key=str)]
        if type(value) is dict:
            return ["map", *(self.word(part, depth) for item in value.items() for part in item)]
        if self._attached is not None and isinstance(value, pa.RecordBatch | np.ndarray):
            # numbers of rows would be long as JSON: attach their bytes
            rows = isinstance(value, pa.RecordBatch)
            self._attached.append(
                _stream_of(value) if rows else np.ascontiguousarray(value, np.int64).data.cast("B")
            )
            return ["rows" if rows else "numbers", len(self._attached) - 1]
        # all else is a dataclass of the closed list: its name and its fields in order
        name = _registered(type(value))
        return [
            "object",
            name,
            *(self.word(getattr(value, field), depth) for field in fields_of(type(value))),
        ]


def _stream_of(rows: pa.RecordBatch) -> Attachment:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows)
    return memoryview(sink.getvalue())


def _read_attached(node: Node, attached: Sequence[Attachment]) -> pa.RecordBatch | np.ndarray:
    tag, number = node
    data = attached[number]
    if tag == "numbers":
        return np.frombuffer(data, np.int64)
    rows = pa.ipc.open_stream(pa.py_buffer(data)).read_next_batch()
    # offsets come from a peer: a kernel would read outside the buffer
    rows.validate(full=True)
    return rows


def _registered(made: type[Any]) -> str:
    name = name_of(made)
    if registered_classes().get(name) is not made:
        raise PenstockError(
            "INT-9031", f"{name} cannot be sent to a worker", kind=Kind.INTERNAL, sqlstate="XX000"
        )
    return name


def _value(word: Any, made: list[Any]) -> Any:
    # a scalar is the value itself, [n] is node n
    if type(word) is not list:
        return word
    (number,) = word
    # negative numbers would index from the end
    if not 0 <= number < len(made):
        raise IndexError(f"node {number} of {len(made)}")
    return made[number]


def _made(node: Node, made: list[Any], find_function: FindFunction, known: Mapping[str, type[Any]]) -> Any:
    tag, *arguments = node
    # plain values: one text, or a few numbers
    read = _READERS.get(tag)
    if read is not None:
        return read(arguments[0])
    match tag:
        # by name only: the reader resolves it in its own allow-list
        case "function":
            return find_function(arguments[0])
        case "tuple":
            return tuple(_value(word, made) for word in arguments)
        case "set":
            return frozenset(_value(word, made) for word in arguments)
        case "map":
            words = [_value(word, made) for word in arguments]
            return dict(zip(words[::2], words[1::2], strict=True))
        case "enum":
            return _class_of(known, arguments[0], Enum)[arguments[1]]
        # fields by position, in the order of the constructor; the class is from the closed list
        case "object":
            wanted = _class_of(known, arguments[0], object)
            values = [_value(word, made) for word in arguments[1:]]
            return wanted(**dict(zip(fields_of(wanted), values, strict=True)))
    raise _damaged(f"node {tag!r}")


def _class_of(known: Mapping[str, type[Any]], name: str, base: type[Any]) -> Any:
    known_class = known.get(name)
    # an enum is not built by its constructor, nor a dataclass by a member's name
    if (
        known_class is None
        or not issubclass(known_class, base)
        or (base is object and issubclass(known_class, Enum))
    ):
        raise _damaged(f"class {name!r} is not known")
    return known_class


_WRITERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    float: ("float", repr),  # not finite: JSON has no word for it
    bytes: ("bytes", bytes.hex),
    Decimal: ("decimal", str),
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    time: ("time", time.isoformat),
    timedelta: ("interval", lambda value: [value.days, value.seconds, value.microseconds]),
}
_READERS: dict[str, Callable[[Any], Any]] = {
    "float": float,
    "bytes": bytes.fromhex,
    "decimal": Decimal,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "interval": lambda parts: timedelta(*parts),
    "path": Path,
}
