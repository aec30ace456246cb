"""Hash partitioning: rows to subtasks in one pass, by a counting sort over key groups."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.kernel import I64, IN_I64, IN_U64, OUT_I64, VOID, kernel


@kernel(VOID(IN_U64, I64, I64, OUT_I64, OUT_I64))
def _partition(hashes, parallelism, max_parallelism, order, offsets):
    subtasks = np.empty(hashes.size, np.int32)
    groups = np.uint64(max_parallelism)
    for i in range(hashes.size):
        # Key groups are contiguous ranges per subtask, so that rescaling moves whole ranges.
        group = np.int64(hashes[i] % groups)
        subtask = group * parallelism // max_parallelism
        subtasks[i] = subtask
        offsets[subtask + 1] += 1
    # Counts become the start of each subtask's rows; the second pass writes rows in order, so it is stable.
    for p in range(parallelism):
        offsets[p + 1] += offsets[p]
    # Where the next row of each subtask goes.
    cursor = offsets[:parallelism].copy()
    for i in range(hashes.size):
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
    order = np.empty(hashes.size, np.int64)
    offsets = np.zeros(parallelism + 1, np.int64)
    _partition(hashes, parallelism, max_parallelism, order, offsets)
    return order, offsets


def counting_sort(values: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the stable order of int64 ``values``, all in 0 .. bound - 1. The second array, int64[bound + 1],
    has the start of each value's run.
    """
    order = np.empty(values.size, np.int64)
    offsets = np.zeros(bound + 1, np.int64)
    _counting_sort(values, bound, order, offsets)
    return order, offsets
