"""Concatenation of batches: costs by the batch are paid once for several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.row_pieces import LIMITS, batches_of, cut, take_rows
from penstock.engine.api.stream_elements import Batch


def concat_batches(pieces: Sequence[Batch]) -> list[Batch]:
    """Return the pieces as one batch, or as few batches as Arrow can hold."""
    if len(pieces) == 1:
        return [pieces[0]]
    sizes = np.array([piece.size_bytes for piece in pieces])
    # the usual case: all of them fit into one
    if sizes.sum() <= LIMITS.array_bytes:
        return [_one(pieces)]
    return [_one(pieces[first:last]) for first, last in cut(sizes, len(pieces), LIMITS.array_bytes)]


def take_rows_from(pieces: Sequence[Batch], positions: np.ndarray, weights: np.ndarray | None) -> list[Batch]:
    """Return the rows at distinct positions, counted through all pieces, in that order and with these
    weights. None, one batch, or as few as Arrow can hold.
    """
    if not positions.size:
        return []
    # one take over one batch; the positions count through all pieces
    if sum(piece.size_bytes for piece in pieces) <= LIMITS.array_bytes:
        rows = pa.concat_batches([piece.rows for piece in pieces]) if len(pieces) > 1 else pieces[0].rows
        return [Batch(rows.take(array_of(positions)), weights)]
    batches, first = [], 0
    for rows in batches_of(take_rows(pa.Table.from_batches([piece.rows for piece in pieces]), positions)):
        some = slice(first, first + rows.num_rows)
        batches.append(Batch(rows, None if weights is None else weights[some]))
        first += rows.num_rows
    return batches


def all_weights(pieces: Sequence[Batch]) -> np.ndarray:
    """Return the weights of all pieces, concatenated, int64."""
    # no weights: each row is one insertion
    ones = [np.ones(p.num_rows, np.int64) if p.weights is None else p.weights for p in pieces]
    # the empty array makes it work for no pieces
    return np.concatenate([np.zeros(0, np.int64), *ones])


def _one(pieces: Sequence[Batch]) -> Batch:
    weights = _joined(pieces, [piece.weights for piece in pieces], 1)
    # the least int64: behind no watermark
    behind = _joined(pieces, [piece.behind for piece in pieces], -(2**63))
    return Batch(pa.concat_batches([piece.rows for piece in pieces]), weights, behind)


def _joined(pieces: Sequence[Batch], columns: Sequence[np.ndarray | None], absent: int) -> np.ndarray | None:
    """Return the per-row numbers of all pieces, concatenated. ``absent`` fills pieces without them; ``None``
    when no piece has any.
    """
    if all(column is None for column in columns):
        return None
    filled = [
        np.full(piece.num_rows, absent, np.int64) if column is None else column
        for piece, column in zip(pieces, columns, strict=True)
    ]
    return np.concatenate(filled)
