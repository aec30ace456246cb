"""The records of one answer: elements of a JSON array, lines, or the whole."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from penstock.engine.kernels.json_elements import element_bounds

_SPACE = b" \t\r\n"
_LINES = ("application/x-ndjson", "application/jsonl", "application/jsonlines", "text/csv", "text/plain")


def records_of(body: bytes, form: str, content_type: str) -> pa.Array:
    """Return the records of a body as BINARY. ``form``: ``array``, ``lines``, ``single``, or ``auto``, which
    tells by the type of content and the first letter.

    ValueError for a body that is no JSON array where one is wanted.
    """
    if form == "auto":
        form = _form_of(body, content_type)
    if form == "lines":
        return _lines(body)
    if form == "single":
        return pa.array([body.strip(_SPACE)] if body.strip(_SPACE) else [], pa.binary())
    return _elements(body)


def _form_of(body: bytes, content_type: str) -> str:
    if body.lstrip(_SPACE)[:1] == b"[":
        return "array"
    kind = content_type.partition(";")[0].strip().lower()
    return "lines" if kind in _LINES else "single"


def _lines(body: bytes) -> pa.Array:
    data = np.frombuffer(body, np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if len(data) and (not len(ends) or ends[-1] != len(data) - 1):
        ends = np.append(ends, len(data))
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1]) if len(ends) else ends
    # \r\n as \n
    ends = ends - ((ends > starts) & (data[np.maximum(ends - 1, 0)] == ord("\r")))
    kept = ends > starts
    return _slices(data, starts[kept], ends[kept])


def _elements(body: bytes) -> pa.Array:
    data = np.frombuffer(body, np.uint8)
    starts, ends = np.empty((2, len(data) // 2 + 1), np.int64)
    count = int(element_bounds(data, starts, ends))
    if count < 0:
        json.loads(body)  # says where it is wrong
        raise ValueError("the answer is no JSON array")
    return _slices(data, starts[:count], ends[:count])


def _slices(data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> pa.Array:
    """Return parts of some bytes, in order and apart, as BINARY."""
    lengths = ends - starts
    # +1 where a part begins, -1 behind its end: the sum is 1 inside of parts
    inside = np.zeros(len(data) + 1, np.int8)
    np.add.at(inside, starts, 1)
    np.add.at(inside, ends, -1)
    kept = data[np.cumsum(inside[:-1]).astype(np.bool_)] if len(data) else data
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    array = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(),
        len(starts),
        [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(kept))],
    )
    return array.cast(pa.binary())
