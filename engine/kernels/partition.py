"""Hash partitioning: rows to the subtasks that own their key groups, in a stable order; counting sort."""

from __future__ import annotations

import functools

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I32, IN_I64, IN_U64, OUT_I64, VOID, kernel

_TARGETS_SCANNED = 8
"""For up to so many subtasks the order is written by one pass for each of them."""


@functools.cache
def _owners(parallelism: int, max_parallelism: int) -> np.ndarray:
    """Return the subtask of each key group, int32. Key groups are contiguous ranges per subtask, so that
    rescaling moves whole ranges.
    """
    return (np.arange(max_parallelism) * parallelism // max_parallelism).astype(np.int32)


@kernel(VOID(IN_U64, IN_I32, I64, OUT_I64, OUT_I64))
def _partition(hashes, owners, parallelism, order, offsets):
    subtasks = np.empty(hashes.size, np.int32)
    groups = np.uint64(owners.size)
    mask = groups - np.uint64(1)
    # A power of two, as by default: a division takes ten times as long.
    if groups & mask == np.uint64(0):
        for i in range(hashes.size):
            subtasks[i] = owners[np.int64(hashes[i] & mask)]
    else:
        for i in range(hashes.size):
            subtasks[i] = owners[np.int64(hashes[i] % groups)]
    if parallelism <= _TARGETS_SCANNED:
        _scan(subtasks, parallelism, order, offsets)
    else:
        _count(subtasks, parallelism, order, offsets)


@njit(nogil=True)
def _scan(subtasks, parallelism, order, offsets):
    # Each row is written, and the next one over it unless it belongs here. Without a branch: which subtask a
    # row has cannot be predicted. The last row may be written behind all, where `order` has a place for it.
    end = 0
    for p in range(parallelism):
        for i in range(subtasks.size):
            order[end] = i
            end += subtasks[i] == p
        offsets[p + 1] = end


@njit(nogil=True)
def _count(subtasks, parallelism, order, offsets):
    for i in range(subtasks.size):
        offsets[subtasks[i] + 1] += 1
    # Counts become the start of each subtask's rows; the second pass writes rows in order, so it is stable.
    for p in range(parallelism):
        offsets[p + 1] += offsets[p]
    # Where the next row of each subtask goes.
    cursor = offsets[:parallelism].copy()
    for i in range(subtasks.size):
        subtask = subtasks[i]
        order[cursor[subtask]] = i
        cursor[subtask] += 1


@kernel(VOID(IN_I64, I64, OUT_I64, OUT_I64))
def _counting_sort(values, bound, order, offsets):
    # Counted one position later, so that the sums are starts.
    for i in range(values.size):
        offsets[values[i] + 1] += 1
    for v in range(bound):
        offsets[v + 1] += offsets[v]
    cursor = offsets[:bound].copy()
    for i in range(values.size):
        order[cursor[values[i]]] = i
        cursor[values[i]] += 1


def partition(hashes: np.ndarray, parallelism: int, max_parallelism: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows partitioned by subtask. ``order`` int64[n] has the rows sorted stably by subtask.
    ``offsets`` int64[parallelism + 1] has the start of each subtask's rows.
    """
    # one place more than there are rows: see _scan
    order = np.empty(hashes.size + 1, np.int64)
    offsets = np.zeros(parallelism + 1, np.int64)
    _partition(hashes, _owners(parallelism, max_parallelism), parallelism, order, offsets)
    return order[:-1], offsets


def counting_sort(values: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the stable order of int64 ``values``, all in 0 .. bound - 1. The second array, int64[bound + 1],
    has the start of each value's run.
    """
    order = np.empty(values.size, np.int64)
    offsets = np.zeros(bound + 1, np.int64)
    _counting_sort(values, bound, order, offsets)
    return order, offsets
