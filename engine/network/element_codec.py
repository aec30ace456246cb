"""Stream elements as payloads of frames and back: rows as Arrow IPC, all other elements as a few bytes or
JSON. Everything read is validated.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import fields
from math import isfinite, isnan
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.api.stream_elements import (
    Barrier,
    Batch,
    Element,
    EndOfInput,
    Idle,
    LatencyMarker,
    Watermark,
)
from penstock.engine.network import frame_kinds as kinds
from penstock.engine.network.errors import PAYLOAD, TOO_LONG, network_error
from penstock.engine.network.frames import MAX_PAYLOAD_BYTES, NetworkFrame

# marks, zero, origin, number of rows; padded so that what follows stays aligned to 64 bytes
_BATCH = struct.Struct("<BB6xqQ40x")
# microseconds of a watermark; below: milliseconds of a latency marker
_TIME = struct.Struct("<q")
_MARKED = struct.Struct("<d")
# marks: which int64 columns precede the rows, and whether those have their schema with them
_HAS_WEIGHTS, _HAS_BEHIND, _WHOLE_STREAM = 1, 2, 4
# per column and frame, for the metadata and padding of Arrow IPC
_SLACK_BYTES = 4096
_NUMBER_BYTES = 8

_BARRIER_TYPES = get_type_hints(Barrier)

Encoded = tuple[int, list[bytes | memoryview]]


class ElementEncoder:
    """Encodes the elements of one channel; a schema is sent when it differs from that of the batch before."""

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None

    def encode(self, element: Element, now_ms: float) -> list[Encoded]:
        """Return the kinds and payload parts of the frames to send; the parts share memory with the element
        where they can.

        ``now_ms``: this process's monotonic time; a barrier's deadline is sent as the remaining time.
        """
        match element:
            # rows, preceded by their schema where it has changed
            case Batch():
                return self._batch(element)
            case Watermark(time_us):
                return [(kinds.WATERMARK, [_TIME.pack(time_us)])]
            case Idle():
                return [(kinds.IDLE, [])]
            # JSON of exactly the barrier's fields; see _barrier for the reader's check
            case Barrier():
                return [(kinds.BARRIER, [json.dumps(_plain(element, now_ms)).encode("ascii")])]
            case EndOfInput():
                return [(kinds.END_OF_INPUT, [])]
            case LatencyMarker(source, marked_ms):
                return [(kinds.LATENCY_MARKER, [_MARKED.pack(marked_ms), source.encode("utf-8")])]

    def _batch(self, batch: Batch) -> list[Encoded]:
        rows, marks = batch.rows, 0
        numbers = []
        # optional int64 columns precede the rows; the marks say which are there
        for mark, column in ((_HAS_WEIGHTS, batch.weights), (_HAS_BEHIND, batch.behind)):
            if column is not None:
                marks |= mark
                numbers.append(np.ascontiguousarray(column, np.int64).view(np.uint8).data)
        schema = rows.schema
        frames: list[Encoded] = []
        if any(_has_dictionary(column.type) for column in schema):
            marks |= _WHOLE_STREAM  # dictionaries travel with the batch they belong to
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, schema) as stream:
                stream.write_batch(rows)
            body = sink.getvalue()
        else:
            if self._schema is None or (
                # identity first: it is nearly always the same object
                schema is not self._schema and not schema.equals(self._schema, check_metadata=True)
            ):
                frames.append((kinds.SCHEMA, [memoryview(schema.serialize())]))
            self._schema = schema
            body = rows.serialize()
        frames.append(
            (kinds.BATCH, [_BATCH.pack(marks, 0, batch.origin, rows.num_rows), *numbers, memoryview(body)])
        )
        return frames


class ElementDecoder:
    """Decodes the elements of one channel. Rows stay in the frame's buffer; they are validated in full, so a
    bad offset never reaches a kernel.
    """

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None

    def decode(self, frame: NetworkFrame, now_ms: float) -> Element | None:
        """Return the element of a frame, or ``None`` for a SCHEMA frame, which only prepares. ``now_ms``:
        this process's monotonic time.

        NET-5006 when the payload does not match its kind.
        """
        try:
            return self._decode(frame.kind, frame.payload, now_ms)
        except (
            pa.ArrowException,
            ValueError,
            TypeError,
            KeyError,
            OSError,
            struct.error,
            OverflowError,
            RecursionError,
            MemoryError,
            StopIteration,
        ) as error:
            raise network_error(PAYLOAD, "a message cannot be decoded", detail=str(error)[:300]) from error

    def _decode(self, kind: int, payload: memoryview, now_ms: float) -> Element | None:
        match kind:
            # for the batches that follow; it emits nothing
            case kinds.SCHEMA:
                self._schema = pa.ipc.read_schema(pa.py_buffer(payload))
                return None
            case kinds.BATCH:
                return self._batch(payload)
            case kinds.WATERMARK:
                return Watermark(*_TIME.unpack(payload))
            case kinds.BARRIER:
                return _barrier(json.loads(bytes(payload)), now_ms)
            case kinds.LATENCY_MARKER:
                return _marker(payload)
        # the two kinds without payload
        if len(payload):
            raise ValueError(f"kind {kind} has no payload")
        if kind not in (kinds.IDLE, kinds.END_OF_INPUT):
            raise ValueError(f"kind {kind} is no element")
        return Idle() if kind == kinds.IDLE else EndOfInput()

    def _batch(self, payload: memoryview) -> Batch:
        marks, zero, origin, count = _BATCH.unpack_from(payload)
        # bits of a later version: refuse what cannot be interpreted
        if marks & ~(_HAS_WEIGHTS | _HAS_BEHIND | _WHOLE_STREAM) or zero:
            raise ValueError("unknown marks")
        numbers: list[np.ndarray | None] = []
        position = _BATCH.size
        for mark in (_HAS_WEIGHTS, _HAS_BEHIND):
            if marks & mark:
                # the count comes from the peer
                if position + _NUMBER_BYTES * count > len(payload):
                    raise ValueError("more rows than bytes")
                numbers.append(np.frombuffer(payload, np.int64, count, position))
                position += _NUMBER_BYTES * count
            else:
                numbers.append(None)
        body = pa.py_buffer(payload[position:])
        if marks & _WHOLE_STREAM:
            rows = pa.ipc.open_stream(body).read_next_batch()
        elif self._schema is None:
            raise ValueError("rows came before their schema")
        else:
            rows = pa.ipc.read_record_batch(body, self._schema)
        if rows.num_rows != count:
            raise ValueError(f"{count} rows were announced, {rows.num_rows} came")
        # offsets come from a peer: a kernel would read outside the buffer
        rows.validate(full=True)
        return Batch(rows, numbers[0], numbers[1], origin)


def pieces_that_fit(batch: Batch, max_payload: int = MAX_PAYLOAD_BYTES) -> Sequence[Batch]:
    """Split the batch into pieces whose frames are at most ``max_payload`` bytes. NET-5002 when a single row
    exceeds that.
    """
    pending, fitting = [batch], []
    while pending:
        piece = pending.pop()
        if (
            piece.rows.nbytes
            + _NUMBER_BYTES * 2 * piece.num_rows
            + _SLACK_BYTES * (1 + piece.rows.num_columns)
            <= max_payload
        ):
            fitting.append(piece)
        elif piece.num_rows <= 1:
            raise _row_too_long(piece, max_payload)
        else:
            # halving: rows may differ much in size
            half = piece.num_rows // 2
            pending += [piece.slice(half, piece.num_rows - half), piece.slice(0, half)]
    return fitting


def _row_too_long(batch: Batch, max_payload: int) -> PenstockError:
    return network_error(
        TOO_LONG,
        f"a row of {batch.rows.nbytes} bytes is too long to be sent between processes: "
        f"{max_payload} are allowed",
    )


def _has_dictionary(kind: pa.DataType) -> bool:
    # at any depth: a dictionary inside a list needs its stream as well
    if pa.types.is_dictionary(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return _has_dictionary(kind.storage_type)
    return any(_has_dictionary(kind.field(index).type) for index in range(kind.num_fields))


def _plain(barrier: Barrier, now_ms: float) -> dict[str, Any]:
    values = {field.name: getattr(barrier, field.name) for field in fields(barrier)}
    # two processes have no common monotonic clock: send the remaining time
    values["overtakes_at_ms"] -= now_ms
    return values


def _marker(payload: memoryview) -> LatencyMarker:
    (marked_ms,) = _MARKED.unpack_from(payload)
    # NaN would poison every histogram it reaches
    if not isfinite(marked_ms):
        raise ValueError("a marker of no time")
    return LatencyMarker(str(payload[_MARKED.size :], "utf-8"), marked_ms)


def _barrier(values: Any, now_ms: float) -> Barrier:
    """Build a barrier from exactly its fields, each of exactly its type."""
    if (
        not isinstance(values, dict)
        or {name: type(value) for name, value in values.items()} != _BARRIER_TYPES
        or isnan(values["overtakes_at_ms"])
    ):
        raise ValueError("a barrier of another shape")
    return Barrier(**{**values, "overtakes_at_ms": values["overtakes_at_ms"] + now_ms})
