"""Deletion vectors of a Delta table: the positions of a data file's rows that are deleted, as 64-bit roaring
bitmaps.

A vector is a text of the log or a piece of a file. Delta's protocol describes both, and the bitmap's portable
layout is that of the roaring format's specification.
"""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any
from uuid import UUID

import numpy as np

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.secrets import redact_url
from penstock.engine.connectors.delta.delta_table import TableStore

_MAGIC = 1681511377
# of a 32-bit bitmap: without containers of runs, and with them
_PLAIN, _RUNS = 12346, 12347
# containers from which a bitmap with runs has their places
_PLACES_FROM = 4
# values in a container that is an array; of more it is a bitmap of 8 KiB
_ARRAY_MOST = 4096
_BITMAP_BYTES = 8192
# of base 85: the alphabet of ZeroMQ's Z85, which the log uses, and that of Python's library
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_FROM_Z85 = str.maketrans(_Z85, _B85)
# base 85 of a UUID's 16 bytes
_UUID_LETTERS = 20


@dataclass(frozen=True)
class DeletionVector:
    """Where a vector is. ``storage``: ``i`` in ``text`` itself, ``u`` in a file that ``text`` names."""

    storage: str
    text: str
    offset: int
    size: int

    def positions(self, store: TableStore, where: str) -> np.ndarray:
        """Return the deleted positions, ascending. DAT-5304 for a damaged vector, DAT-5310 for a file that is
        gone.
        """
        try:
            return decode_bitmap(self._bytes(store, where))
        except (struct.error, ValueError, IndexError) as error:
            raise _damaged(where, str(error)) from error

    def _bytes(self, store: TableStore, where: str) -> bytes:
        if self.storage == "i":
            return _decoded(self.text)[: self.size]
        prefix, name = self.text[:-_UUID_LETTERS], self.text[-_UUID_LETTERS:]
        path = f"{prefix}{'/' if prefix else ''}deletion_vector_{UUID(bytes=_decoded(name))}.bin"
        try:
            with store.filesystem.open_input_file(store.path(path)) as file:
                file.seek(self.offset)
                # its size, itself, its checksum
                found = file.read(self.size + 8)
        except OSError as error:
            raise _gone(path, where, error) from error
        (size,), (checksum,) = struct.unpack(">i", found[:4]), struct.unpack(">I", found[-4:])
        data = found[4:-4]
        if size != self.size or len(data) != size or zlib.crc32(data) != checksum:
            raise ValueError(f"the checksum of {path} at {self.offset} is another")
        return data


def vector_of(action: dict[str, Any], where: str) -> DeletionVector | None:
    """Return the vector of an action of the log. DAT-5305 for one outside the table's directory."""
    described = action.get("deletionVector")
    if described is None:
        return None
    storage = str(described.get("storageType"))
    if storage not in ("i", "u"):
        raise PenstockError(
            "DAT-5305",
            f"the Delta table at {redact_url(where)} has a deletion vector outside its directory",
            detail=redact_url(str(described.get("pathOrInlineDv"))),
            hint="a shallow clone has such: make a deep clone of it",
            kind=Kind.EXTERNAL,
            sqlstate="0A000",
        )
    return DeletionVector(
        storage,
        str(described["pathOrInlineDv"]),
        int(described.get("offset") or 0),
        int(described["sizeInBytes"]),
    )


def decode_bitmap(data: bytes) -> np.ndarray:
    """Return the positions of a vector, ascending. ValueError for bytes that are none."""
    magic, count = struct.unpack_from("<iq", data)
    if magic != _MAGIC:
        raise ValueError(f"a bitmap of an unknown layout: {magic}")
    at, found = 12, [np.zeros(0, np.int64)]
    for _ in range(count):
        (high,) = struct.unpack_from("<I", data, at)
        values, at = _decode_32_bits(data, at + 4)
        found.append(values + (high << 32))
    return np.concatenate(found)


def _decode_32_bits(data: bytes, at: int) -> tuple[np.ndarray, int]:
    """Return the values of a bitmap of 32 bits, and where it ends."""
    (cookie,) = struct.unpack_from("<I", data, at)
    at += 4
    has_runs = np.zeros(0, np.uint8)
    if cookie & 0xFFFF == _RUNS:
        count = (cookie >> 16) + 1
        octets = (count + 7) // 8
        has_runs = np.unpackbits(np.frombuffer(data, np.uint8, octets, at), bitorder="little")
        at += octets
    elif cookie == _PLAIN:
        (count,) = struct.unpack_from("<I", data, at)
        at += 4
    else:
        raise ValueError(f"a bitmap of an unknown layout: {cookie}")
    # of each container its upper 16 bits, and how many values it has, less one
    header = np.frombuffer(data, "<u2", 2 * count, at).reshape(-1, 2).astype(np.int64)
    at += 4 * count
    if not len(has_runs) or count >= _PLACES_FROM:
        at += 4 * count
    found = [np.zeros(0, np.int64)]
    for number, (high, less) in enumerate(header.tolist()):
        if len(has_runs) and has_runs[number]:
            values, at = _decode_runs(data, at)
        elif less < _ARRAY_MOST:
            values = np.frombuffer(data, "<u2", less + 1, at).astype(np.int64)
            at += 2 * (less + 1)
        else:
            bits = np.unpackbits(np.frombuffer(data, np.uint8, _BITMAP_BYTES, at), bitorder="little")
            values = np.flatnonzero(bits)
            at += _BITMAP_BYTES
        found.append(values + (high << 16))
    return np.concatenate(found), at


def _decode_runs(data: bytes, at: int) -> tuple[np.ndarray, int]:
    """Return the values of a container of runs: their starts, and their lengths less one."""
    (count,) = struct.unpack_from("<H", data, at)
    runs = np.frombuffer(data, "<u2", 2 * count, at + 2).reshape(-1, 2).astype(np.int64)
    lengths = runs[:, 1] + 1
    # each value is its run's start, and how far it is from the run's first value
    firsts = np.cumsum(lengths) - lengths
    values = np.arange(lengths.sum()) + np.repeat(runs[:, 0] - firsts, lengths)
    return values, at + 2 + 4 * count


def _decoded(text: str) -> bytes:
    return base64.b85decode(text.translate(_FROM_Z85))


def _damaged(where: str, detail: str) -> PenstockError:
    return PenstockError(
        "DAT-5304",
        f"a deletion vector of the Delta table at {redact_url(where)} is damaged",
        detail=detail,
        hint="restore the table's directory, or read a version before the deletion",
        kind=Kind.EXTERNAL,
        sqlstate="58000",
    )


def _gone(path: str, where: str, error: OSError) -> PenstockError:
    return PenstockError(
        "DAT-5310",
        f"deletion vector {redact_url(path)} of the Delta table at {redact_url(where)} is gone",
        detail=str(error)[:200],
        hint="VACUUM removed it: read a newer version, and keep files longer than a reader may be behind",
        kind=Kind.EXTERNAL,
        retriable=not isinstance(error, FileNotFoundError),
    )
