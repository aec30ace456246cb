"""Places of byte strings among sorted ones."""

from __future__ import annotations

from penstock.engine.kernels.aggregates.min_max import compare_bytes
from penstock.engine.kernels.kernel import I64, IN_I64, IN_U8, OUT_I64, OUT_U8, VOID, kernel


@kernel(VOID(IN_I64, IN_U8, IN_I64, IN_U8, OUT_I64, OUT_U8))
def text_places(offsets, data, asked_offsets, asked_data, places, found):
    """Write for each string where it is among sorted different ones, or would be inserted, and whether it is
    there.
    """
    count = offsets.size - 1
    for i in range(places.size):
        start = asked_offsets[i]
        length = asked_offsets[i + 1] - start
        low, high = I64(0), I64(count)
        found[i] = 0
        while low < high:
            middle = (low + high) >> 1
            first = offsets[middle]
            order = compare_bytes(data, first, offsets[middle + 1] - first, asked_data, start, length)
            if order == 0:
                low, high = middle, middle
                found[i] = 1
            elif order < 0:
                low = middle + 1
            else:
                high = middle
        places[i] = low
