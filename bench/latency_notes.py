"""When rows left the source and came to the sink, noted by functions any process of a job can import, in
files that are read when it is over.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

import penstock

FOLDER = "PENSTOCK_LATENCY_NOTES"
_HEADER = struct.Struct("<dqq")
_LEFT, _CAME = 0, 1


@penstock.udf(["BIGINT"], "BIGINT")
def noted_at_source(numbers: pa.Array) -> pa.Array:
    """Note the newest of the rows a source gives: it is due now at the earliest."""
    _note(_LEFT, numbers[-1:])
    return numbers


@penstock.udf(["BIGINT"], "BIGINT")
def noted_at_sink(numbers: pa.Array) -> pa.Array:
    """Note the rows given to the sink."""
    _note(_CAME, numbers)
    return numbers


def notes(folder: Path) -> tuple[list[tuple[float, np.ndarray]], list[tuple[float, np.ndarray]]]:
    """Return what left sources and what came to sinks: monotonic seconds, which all processes of a machine
    share, and numbers of rows, in order.
    """
    found = sorted(
        (note for path in folder.iterdir() for note in _read(path.read_bytes())), key=lambda note: note[0]
    )
    left, came = ([(at, numbers) for at, kind, numbers in found if kind == which] for which in (_LEFT, _CAME))
    return left, came


def _note(kind: int, numbers: pa.Array) -> None:
    at = time.monotonic()
    # to_numpy imports pandas at its first call: 0.3 s in the middle of a job, and rows late by that
    held = np.frombuffer(numbers.buffers()[1], np.int64, len(numbers), numbers.offset * 8).tobytes()
    os.write(_file(os.environ[FOLDER]), _HEADER.pack(at, kind, len(numbers)) + held)


@cache
def _file(folder: str) -> int:
    """Return this process's file: appended to by a write each, so that nothing is lost when the process is
    killed and threads need no lock.
    """
    return os.open(Path(folder) / str(os.getpid()), os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _read(content: bytes) -> Iterator[tuple[float, int, np.ndarray]]:
    place = 0
    while place < len(content):
        at, kind, count = _HEADER.unpack_from(content, place)
        place += _HEADER.size
        yield at, kind, np.frombuffer(content, np.int64, count, place)
        place += 8 * count
