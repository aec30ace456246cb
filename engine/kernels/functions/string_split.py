"""Pieces of texts between delimiters. A text is only read as far as needed."""

from __future__ import annotations

from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I32, IN_I64, IN_U8, OUT_I64, OUT_U8, VOID, kernel
from penstock.engine.kernels.pointers import pointer


@njit(nogil=True)
def _find(data, start, end, delimiter):
    """Return where the delimiter occurs first, ``end`` when it does not."""
    first, length = delimiter[0], delimiter.size
    for at in range(start, end - length + 1):
        if data[at] == first:
            k = 1
            while k < length and data[at + k] == delimiter[k]:
                k += 1
            if k == length:
                return at
    return end


@kernel(VOID(IN_I32, IN_U8, IN_U8, I64, OUT_I64, OUT_I64))
def nth_piece(offsets, data, delimiter, nth, starts, lengths):
    """Write where each text's piece ``nth`` begins (from 0), and its length in bytes: -1 when it has none."""
    for i in range(starts.size):
        at, end = I64(offsets[i]), I64(offsets[i + 1])
        found = _find(data, at, end, delimiter)
        for _ in range(nth):
            # fewer pieces than that
            if found == end:
                at = -1
                break
            at = found + delimiter.size
            found = _find(data, at, end, delimiter)
        starts[i] = max(at, 0)
        lengths[i] = found - at if at >= 0 else -1


@kernel(VOID(IN_I32, IN_U8, IN_U8, I64, OUT_I64, OUT_I64))
def first_pieces(offsets, data, delimiter, count, starts, lengths):
    """Write where each text begins, and the length of its first ``count`` pieces, delimiters
    included.
    """
    for i in range(starts.size):
        start, end = I64(offsets[i]), I64(offsets[i + 1])
        found = _find(data, start, end, delimiter)
        for _ in range(count - 1):
            if found == end:
                break
            found = _find(data, found + delimiter.size, end, delimiter)
        starts[i] = start
        lengths[i] = found - start


@kernel(VOID(IN_I64, IN_I64, IN_U8, OUT_U8))
def copy_pieces(starts, lengths, bytes_in, out_in):
    """Write pieces one after another; a length below zero writes nothing."""
    data, out = pointer(bytes_in), pointer(out_in)
    used = 0
    for i in range(starts.size):
        start = starts[i]
        # Pieces are short: a loop is quicker than a call that copies.
        for k in range(lengths[i]):
            out[used + k] = data[start + k]
        used += max(lengths[i], 0)
