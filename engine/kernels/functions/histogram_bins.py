"""Histograms of few bins: of the values of a list the two nearest are merged until few enough are left."""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import I64, IN_F64, IN_I64, OUT_F64, OUT_I64, kernel


@njit(nogil=True)
def _is_before(gaps, one, other):
    """Return whether a bin is merged before another: its right neighbour is nearer, or as near and it is
    further left.
    """
    return gaps[one] < gaps[other] or (gaps[one] == gaps[other] and one < other)


@njit(nogil=True)
def _rise(heap, places, gaps, at):
    node = heap[at]
    while at > 0 and _is_before(gaps, node, heap[(at - 1) >> 1]):
        heap[at] = heap[(at - 1) >> 1]
        places[heap[at]] = at
        at = (at - 1) >> 1
    heap[at] = node
    places[node] = at


@njit(nogil=True)
def _sink(heap, places, gaps, size, at):
    node = heap[at]
    while 2 * at + 1 < size:
        below = 2 * at + 1
        if below + 1 < size and _is_before(gaps, heap[below + 1], heap[below]):
            below += 1
        if not _is_before(gaps, heap[below], node):
            break
        heap[at] = heap[below]
        places[heap[at]] = at
        at = below
    heap[at] = node
    places[node] = at


@njit(nogil=True)
def _remove(heap, places, gaps, size, node):
    """Take a bin out of the heap and return the size that is left."""
    at, last = places[node], heap[size - 1]
    if last != node:
        heap[at] = last
        places[last] = at
        _rise(heap, places, gaps, at)
        _sink(heap, places, gaps, size - 1, places[last])
    return size - 1


@njit(nogil=True)
def _gap(values, left, right):
    gap = values[right] - values[left]
    # NaN is as far as the infinities: it is merged last
    return np.inf if np.isnan(gap) else gap


@njit(nogil=True)
def _merge(values, counts, left, right):
    """Add the right bin to the left one, at the mean of both by their counts."""
    total, distance = counts[left] + counts[right], values[right] - values[left]
    if np.isinf(distance):
        values[left] = values[left] * (counts[left] / total) + values[right] * (counts[right] / total)
    else:
        values[left] += distance * (counts[right] / total)
    counts[left] = total


@kernel(I64(IN_I64, IN_F64, IN_F64, I64, OUT_I64, OUT_F64, OUT_F64, OUT_I64))
def merge_bins(starts, values_in, counts_in, bins, ends, values_out, counts_out, memory):
    """Write each list's values and counts in at most ``bins`` bins, and where each list ends. Return how many
    bins there are.

    Values ascend. The nearest two neighbours are merged first, of several the leftmost. ``memory``: four
    words for each value of the longest list.
    """
    used, most = 0, memory.size // 4
    heap, places, before, behind = memory[:most], memory[most:], memory[2 * most :], memory[3 * most :]
    values, counts, gaps = np.empty(most, np.float64), np.empty(most, np.float64), np.empty(most, np.float64)
    for i in range(starts.size - 1):
        begin, count = starts[i], starts[i + 1] - starts[i]
        for k in range(count):
            values[k], counts[k] = values_in[begin + k], counts_in[begin + k]
            before[k], behind[k] = k - 1, k + 1
        left, size = count, 0
        if count > bins:
            for k in range(count - 1):
                gaps[k] = _gap(values, k, k + 1)
                heap[k] = k
                size += 1
                _rise(heap, places, gaps, k)
        while left > bins:
            one = heap[0]
            other = behind[one]
            following = behind[other]
            _merge(values, counts, one, other)
            behind[one] = following
            if following < count:
                before[following] = one
                size = _remove(heap, places, gaps, size, other)
                gaps[one] = _gap(values, one, following)
                # its gap may be smaller or larger than before
                _rise(heap, places, gaps, places[one])
                _sink(heap, places, gaps, size, places[one])
            else:
                size = _remove(heap, places, gaps, size, one)
            if before[one] >= 0:
                earlier = before[one]
                gaps[earlier] = _gap(values, earlier, one)
                _rise(heap, places, gaps, places[earlier])
                _sink(heap, places, gaps, size, places[earlier])
            left -= 1
        k = 0
        while k < count:
            values_out[used], counts_out[used] = values[k], counts[k]
            used += 1
            k = behind[k]
        ends[i] = used
    return used
