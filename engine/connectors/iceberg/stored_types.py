"""Columns of an Iceberg table whose layout is none of the engine's: UUID, a text in SQL, and FIXED."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import Kind, PenstockError

_UUID = r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def is_uuid(kind: pa.DataType) -> bool:
    """Return whether a column is of the UUID type."""
    return isinstance(kind, pa.UuidType)


def is_special(kind: pa.DataType) -> bool:
    """Return whether rows need another layout before they are written."""
    return is_uuid(kind) or bool(pa.types.is_fixed_size_binary(kind))


def refuse_uuid_keys(kinds: Mapping[str, pa.DataType], key: Sequence[str], where: str) -> None:
    """Refuse to replace rows by a UUID: the library finds none by it. DAT-5305."""
    keys = {name.lower() for name in key}
    for name, kind in kinds.items():
        if name.lower() in keys and is_uuid(kind):
            raise PenstockError(
                "DAT-5305",
                f"column {name} of {where} is a UUID, by which its library finds no rows",
                hint=f"have {name} as STRING in the table, or write inserts without PRIMARY KEY",
                kind=Kind.EXTERNAL,
                sqlstate="0A000",
            )


def _octets(values: pa.FixedSizeBinaryArray) -> np.ndarray:
    """Return the bytes of a column, a row each; of a NULL zeros."""
    width = values.type.byte_width
    # a copy begins at its buffer's begin
    copied = pc.take(pc.fill_null(values, bytes(width)), np.arange(len(values)))
    return np.frombuffer(copied.buffers()[1], np.uint8, len(values) * width).reshape(-1, width)


def _uuids(texts: pa.Array, name: str, where: str) -> pa.Array:
    wrong = texts.filter(pc.invert(pc.match_substring_regex(texts, _UUID)))
    if len(wrong):
        raise _unfit(name, where, f"'{wrong[0].as_py()[:60]}' is no UUID")
    digits = _octets(pc.replace_substring(texts, "-", "").cast(pa.binary()).cast(pa.binary(32)))
    # 0x20 turns an upper letter into a lower one
    values = np.where(digits > ord("9"), (digits | 0x20) - (ord("a") - 10), digits & 15)
    octets = np.ascontiguousarray((values[:, ::2] << 4) | values[:, 1::2])
    stored = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(texts), [None, pa.py_buffer(octets)])
    return pa.ExtensionArray.from_storage(pa.uuid(), pc.if_else(texts.is_valid(), stored, None))


def as_stored(values: pa.Array, kind: pa.DataType, name: str, where: str) -> pa.Array:
    """Return a column in the layout that the table has it in. DAT-5314 for a value that does not fit."""
    if is_uuid(kind):
        return _uuids(values, name, where)
    if pa.types.is_fixed_size_binary(kind):
        lengths = pc.binary_length(values)
        if pc.any(pc.not_equal(lengths, kind.byte_width)).as_py():
            raise _unfit(name, where, f"a value has not {kind.byte_width} bytes")
        return values.cast(kind)
    return values


def _unfit(name: str, where: str, what: str) -> PenstockError:
    return PenstockError(
        "DAT-5314",
        f"column {name} of {where} takes no such value: {what}",
        hint="leave such rows out, or mend the value in the query",
        kind=Kind.USER,
        sqlstate="22000",
    )
