"""Intervals that touch become one."""

from __future__ import annotations

from engine.kernels.kernel import kernel
from engine.kernels.signatures import I64, IN_I64, OUT_I64


@kernel(I64(IN_I64, IN_I64, IN_I64, OUT_I64, OUT_I64, OUT_I64))
def unite(keys, starts, ends, groups, group_starts, group_ends):
    """Number the unions of touching intervals of one key, given by key, then start; write each interval's union and the unions' bounds."""
    unions = 0
    for i in range(keys.size):
        if i == 0 or keys[i] != keys[i - 1] or starts[i] > group_ends[unions - 1]:
            group_starts[unions] = starts[i]
            group_ends[unions] = ends[i]
            unions += 1
        elif ends[i] > group_ends[unions - 1]:
            group_ends[unions - 1] = ends[i]
        groups[i] = unions - 1
    return unions
