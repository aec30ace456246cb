"""The output of a file reader: decoded rows with their ordinals in the file, and the bad records."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Schema

SHOWN_BYTES = 200


@dataclass(frozen=True)
class BadRecord:
    """A record that cannot be decoded: its ordinal and its byte position in the decompressed file, where
    known.
    """

    ordinal: int
    raw: bytes
    error: str
    column: str | None = None
    byte: int | None = None

    @property
    def shown(self) -> str:
        """The record escaped and cut to a length a person can read."""
        return escaped(self.raw)


def escaped(raw: bytes) -> str:
    """Return bytes as printable text of at most 200 bytes."""
    text = raw[:SHOWN_BYTES].decode("utf-8", "backslashreplace")
    # control characters would change the terminal of whoever reads the message
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)[:SHOWN_BYTES]
    return text + ("..." if len(raw) > SHOWN_BYTES else "")


@dataclass(frozen=True)
class Decoded:
    """A decoded piece of a file.

    ``rows``: the wanted columns in engine types. ``first``: ordinal of the first record of the piece;
    ``records``: how many it holds, bad ones included. ``ordinals``: int64 ordinal per row, ``None`` when they
    simply follow ``first``. ``anchor``: where reading may begin again to get this piece. ``weights``: int64
    per row where records are changes; ``None`` means every row is +1.
    """

    rows: pa.RecordBatch
    first: int
    records: int
    ordinals: np.ndarray | None = None
    bad: list[BadRecord] = field(default_factory=list)
    anchor: dict[str, Any] = field(default_factory=dict)
    weights: np.ndarray | None = None

    def whole_records(self, end: int) -> int:
        """Return the row at or after ``end`` where a record begins, so that the rows of one change stay
        together.
        """
        return (
            end
            if self.ordinals is None or end >= len(self.ordinals)
            # both rows of an update have one ordinal: go past the last row of it
            else int(np.searchsorted(self.ordinals, self.ordinals[end - 1], "right"))
        )

    def ordinal_of(self, row: int) -> int:
        """Return the file ordinal of a row of the piece."""
        return self.first + row if self.ordinals is None else int(self.ordinals[row])

    def rows_before(self, ordinal: int) -> int:
        """Return how many rows of the piece have a smaller ordinal."""
        # ordinals are consecutive from ``first``
        if self.ordinals is None:
            return max(0, min(ordinal - self.first, self.rows.num_rows))
        return int(np.searchsorted(self.ordinals, ordinal))


class FileReader(Protocol):
    """Decodes one file, or a range of it, piece by piece in order. A format creates it with an anchor to
    resume from, or none.
    """

    def next(self) -> Decoded | None:
        """Return the next piece; ``None`` at the end. The boundaries of pieces are deterministic."""

    def close(self) -> None:
        """Release the file."""


def empty_columns(rows: int) -> pa.RecordBatch:
    """Return a batch of no columns that still counts rows, for example for SELECT COUNT(*)."""
    # Arrow takes the length of a batch from its columns; a struct without fields has a length of its own
    return pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), rows, [None]))


def batch_of(arrays: list[pa.Array], fields: tuple[Field, ...], rows: int) -> pa.RecordBatch:
    """Return a batch of these columns; ``rows`` counts when there are none."""
    return (
        pa.RecordBatch.from_arrays(arrays, schema=Schema(fields).to_arrow())
        if fields
        else empty_columns(rows)
    )
