"""Batches end to end as one: what costs by the batch is paid once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.row_pieces import LIMITS, cut
from penstock.engine.api.stream_elements import Batch


def gathered(pieces: Sequence[Batch]) -> list[Batch]:
    """Return the pieces as one batch, or as few as Arrow can hold them in."""
    if len(pieces) == 1:
        return [pieces[0]]
    sizes = np.array([piece.size_bytes for piece in pieces])
    if sizes.sum() <= LIMITS.array_bytes:
        return [_one(pieces)]
    return [_one(pieces[first:last]) for first, last in cut(sizes, len(pieces), LIMITS.array_bytes)]


def _one(pieces: Sequence[Batch]) -> Batch:
    weights = _joined(pieces, [piece.weights for piece in pieces], 1)
    behind = _joined(pieces, [piece.behind for piece in pieces], -(2**63))
    return Batch(pa.concat_batches([piece.rows for piece in pieces]), weights, behind)


def _joined(pieces: Sequence[Batch], columns: Sequence[np.ndarray | None], absent: int) -> np.ndarray | None:
    """Return the per-row numbers of all pieces end to end; ``absent`` fills pieces without; ``None`` when
    no piece has any.
    """
    if all(column is None for column in columns):
        return None
    filled = [
        np.full(piece.num_rows, absent, np.int64) if column is None else column
        for piece, column in zip(pieces, columns, strict=True)
    ]
    return np.concatenate(filled)
