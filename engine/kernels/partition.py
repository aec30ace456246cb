"""Hash partitioning: rows to subtasks in one pass, by a counting sort over key groups."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.kernel import I64, IN_I64, IN_U64, OUT_I64, VOID, kernel


@kernel(VOID(IN_U64, I64, I64, OUT_I64, OUT_I64))
def _partition(hashes, parallelism, max_parallelism, order, offsets):
    subtasks = np.empty(hashes.size, np.int32)
    groups = np.uint64(max_parallelism)
    for i in range(hashes.size):
        group = np.int64(hashes[i] % groups)
        subtask = group * parallelism // max_parallelism
        subtasks[i] = subtask
        offsets[subtask + 1] += 1
    for p in range(parallelism):
        offsets[p + 1] += offsets[p]
    cursor = offsets[:parallelism].copy()
    for i in range(hashes.size):
        subtask = subtasks[i]
        order[cursor[subtask]] = i
        cursor[subtask] += 1


@kernel(VOID(IN_I64, I64, OUT_I64, OUT_I64))
def _counting_sort(values, bound, order, offsets):
    for i in range(values.size):
        offsets[values[i] + 1] += 1
    for v in range(bound):
        offsets[v + 1] += offsets[v]
    cursor = offsets[:bound].copy()
    for i in range(values.size):
        order[cursor[values[i]]] = i
        cursor[values[i]] += 1


def partition(hashes: np.ndarray, parallelism: int, max_parallelism: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ``order`` int64[n], the rows sorted stably by the subtask that owns them, and ``offsets``
    int64[parallelism + 1] into it.
    """
    order = np.empty(hashes.size, np.int64)
    offsets = np.zeros(parallelism + 1, np.int64)
    _partition(hashes, parallelism, max_parallelism, order, offsets)
    return order, offsets


def counting_sort(values: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the stable order of int64 ``values`` (all in 0 .. bound - 1) and where each value's run
    starts, int64[bound + 1].
    """
    order = np.empty(values.size, np.int64)
    offsets = np.zeros(bound + 1, np.int64)
    _counting_sort(values, bound, order, offsets)
    return order, offsets
