"""RANGE frames of OVER: the first and last row within a distance of the order key, by two pointers."""

from __future__ import annotations

from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, VOID

FAR = 2**62
"""A distance that no frame reaches: the frame has no end on that side."""
# The limits of a word.
_MIN, _MAX = -(2**63), 2**63 - 1


@njit(I64(I64, I64), nogil=True, cache=True)
def _shifted(value, distance):
    """Return ``value + distance``, saturated to 64 bits."""
    if distance > 0 and value > _MAX - distance:
        return _MAX
    if distance < 0 and value < _MIN - distance:
        return _MIN
    return value + distance


@njit(VOID(IN_I64, IN_I64, IN_I64, I64, I64, OUT_I64, OUT_I64), nogil=True, cache=True)
def within(values, starts, ends, first, last, low, high):
    """Write each row's frame, from ``low`` to before ``high``. It has the rows of the partition with values
    from value + first to value + last.

    Rows are sorted by partition (``starts`` and ``ends`` by row), then value. A distance of at least FAR
    extends to the partition's end.
    """
    a = b = 0
    for i in range(values.size):
        if i == 0 or starts[i] != starts[i - 1]:
            # Values ascend within a partition, so both pointers only move forward: one pass per partition.
            a = b = starts[i]
        if first <= -FAR:
            low[i] = starts[i]
        else:
            bound = _shifted(values[i], first)
            while a < ends[i] and values[a] < bound:
                # Rows before the bound are outside of the frame.
                a += 1
            low[i] = a
        if last >= FAR:
            high[i] = ends[i]
        else:
            bound = _shifted(values[i], last)
            # Rows up to the bound, peers included, are inside.
            while b < ends[i] and values[b] <= bound:
                b += 1
            high[i] = b
