"""Pieces of texts by a constant delimiter and a constant number, cut by compiled loops."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.engine.kernels import arrow_views


def nth_pieces(texts: pa.Array, delimiter: str, nth: int) -> tuple[pa.Array, np.ndarray]:
    """Return the piece ``nth`` of each text, from 0, and the mask of the texts that have none. Those become
    empty texts. NULL stays NULL.
    """
    return _cut("nth_piece", texts, delimiter, nth)


def first_pieces(texts: pa.Array, delimiter: str, count: int) -> pa.Array:
    """Return the first ``count`` pieces of each text, with the delimiters between them."""
    return _cut("first_pieces", texts, delimiter, count)[0]


def _cut(pieces: str, texts: pa.Array, delimiter: str, number: int) -> tuple[pa.Array, np.ndarray]:
    from penstock.engine.kernels.functions import string_split  # numba is loaded where it is needed

    find = string_split.nth_piece if pieces == "nth_piece" else string_split.first_pieces
    offsets, data = arrow_views.string_parts(texts)
    starts, lengths = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
    find(offsets, data, np.frombuffer(delimiter.encode(), np.uint8), number, starts, lengths)
    return copied_pieces(starts, lengths, data, arrow_views.validity(texts)), lengths < 0


def copied_pieces(starts: np.ndarray, lengths: np.ndarray, data: np.ndarray, valid: np.ndarray) -> pa.Array:
    """Return the pieces of bytes as texts; a length below zero is that of an empty one."""
    from penstock.engine.kernels.functions import string_split

    ends = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(np.maximum(lengths, 0), out=ends[1:])
    out = np.empty(int(ends[-1]), np.uint8)
    string_split.copy_pieces(starts, lengths, data, out)
    return arrow_views.array_of_strings(ends, out, valid, pa.string())
