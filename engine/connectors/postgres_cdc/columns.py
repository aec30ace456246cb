"""Values in the server's text form as Arrow columns, a whole column at a time; and keys as texts again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.schema import Field, Schema
from penstock.catalog.types import Binary, Boolean, String, TimestampLtz
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.connectors.database.postgres import bytes_of_hexadecimal, unfit
from penstock.engine.kernels.pgoutput import gather_values

_LARGEST = 2**31 - 1


def gathered(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> pa.Array:
    """Return the values at these places as a text column; a negative length is NULL.

    DAT-5415 for more than 2 GiB.
    """
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=offsets[1:])
    if offsets[-1] > _LARGEST:
        raise PenstockError(
            "DAT-5415",
            "values of one column in one piece of a transaction have more than 2 GiB",
            hint="leave the column out of the table",
            kind=Kind.EXTERNAL,
        )
    into = np.empty(int(offsets[-1]), np.uint8)
    gather_values(data, starts, lengths, into)
    valid = array_of(lengths >= 0).buffers()[1]
    return pa.Array.from_buffers(
        pa.string(), len(lengths), [valid, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(into)]
    )


def converted(texts: pa.Array, field: Field, table: str) -> pa.Array:
    """Return texts of a session whose time zone is UTC as values of a field. DAT-4704."""
    arrow = Schema((field,)).to_arrow().field(0).type
    try:
        if isinstance(field.type, String):
            return texts
        if isinstance(field.type, Binary):
            return bytes_of_hexadecimal(texts)
        if isinstance(field.type, Boolean):
            return pc.equal(texts, "t")
        if isinstance(field.type, TimestampLtz):
            return _instants(texts).cast(arrow)
        return texts.cast(arrow)
    except pa.ArrowInvalid as error:
        raise unfit(field, table, error) from error


def _instants(texts: pa.Array) -> pa.Array:
    if not pc.all(pc.ends_with(texts, "+00")).as_py() and texts.null_count < len(texts):
        raise pa.ArrowInvalid("a time that has no form such as 2026-01-31 12:00:00+00")
    without = pc.utf8_slice_codeunits(texts, 0, -3).cast(pa.timestamp("us"))
    return pc.assume_timezone(without, "UTC")


def key_text(value: pa.Scalar) -> str:
    """Return a value of a key as the server writes it."""
    plain = value.as_py()
    if pa.types.is_timestamp(value.type):
        text = plain.replace(tzinfo=None).isoformat(" ")
        return text + "+00" if value.type.tz is not None else text
    if isinstance(plain, bool):
        return "t" if plain else "f"
    if isinstance(plain, bytes):
        return "\\x" + plain.hex()
    return str(plain)
