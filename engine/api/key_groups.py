"""Key groups: which subtask owns which, so that state follows its keys through any change of parallelism."""

from __future__ import annotations

import numpy as np

from penstock.engine.api.operator import KeyGroups


def key_group_range(max_parallelism: int, parallelism: int, subtask: int) -> KeyGroups:
    """Return the contiguous groups a subtask owns; the ranges of all subtasks cover every group once."""
    # rounded up, the inverse of subtask_of_groups: both name the same owner for every group
    start = -(-subtask * max_parallelism // parallelism)
    end = -(-(subtask + 1) * max_parallelism // parallelism)
    return KeyGroups(start, end, max_parallelism)


def subtask_of_groups(groups: np.ndarray, parallelism: int, max_parallelism: int) -> np.ndarray:
    """Return the subtask that owns each key group, int64."""
    return groups.astype(np.int64) * parallelism // max_parallelism


def groups_of_hashes(hashes: np.ndarray, max_parallelism: int) -> np.ndarray:
    """Return the key group of each stable hash, uint16."""
    return (hashes % np.uint64(max_parallelism)).astype(np.uint16)
