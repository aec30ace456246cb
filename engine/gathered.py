"""Batches end to end as one: what costs by the batch is paid once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from engine.elements import Batch


def gathered(pieces: Sequence[Batch]) -> list[Batch]:
    """Return the pieces as one batch (more only where Arrow cannot join the columns into one)."""
    if len(pieces) == 1:
        return [pieces[0]]
    weights = _joined(pieces, [piece.weights for piece in pieces], 1)
    behind = _joined(pieces, [piece.behind for piece in pieces], -(2**63))
    batches, start = [], 0
    for rows in pa.Table.from_batches([piece.rows for piece in pieces]).combine_chunks().to_batches():
        end = start + rows.num_rows
        batches.append(Batch(rows, None if weights is None else weights[start:end], None if behind is None else behind[start:end]))
        start = end
    return batches


def _joined(pieces: Sequence[Batch], columns: Sequence[np.ndarray | None], absent: int) -> np.ndarray | None:
    """Return the per-row numbers of all pieces end to end; ``absent`` fills pieces without; ``None`` when no piece has any."""
    if all(column is None for column in columns):
        return None
    filled = [np.full(piece.num_rows, absent, np.int64) if column is None else column for piece, column in zip(pieces, columns, strict=True)]
    return np.concatenate(filled)
