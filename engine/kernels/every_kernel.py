"""All kernels compiled at once, so that no query has to wait for one."""

from __future__ import annotations

from penstock.engine.kernels import (
    accumulate,
    best_keys,
    bits,
    csv_fields,
    extremes,
    hash,
    heap,
    letters,
    moments,
    multi_index,
    pair_moments,
    partition,
    row_matches,
    sessions,
    shape_moments,
    slots,
    spark_hash,
    tagged_index,
    wide,
    word_index,
)
from penstock.engine.kernels.kernel import Kernel

ROOMS = (
    accumulate,
    best_keys,
    bits,
    csv_fields,
    extremes,
    hash,
    heap,
    letters,
    moments,
    multi_index,
    pair_moments,
    partition,
    row_matches,
    sessions,
    shape_moments,
    slots,
    spark_hash,
    tagged_index,
    wide,
    word_index,
)
"""The modules that have kernels."""


def every_kernel() -> list[Kernel]:
    """Return the kernels of all rooms, in the order of their rooms."""
    return [kernel for room in ROOMS for kernel in Kernel.every if kernel.__module__ == room.__name__]


def compile_every_kernel() -> tuple[int, int]:
    """Compile what is not in the cache; returns how many kernels there are and how many had to be compiled."""
    kernels = every_kernel()
    return len(kernels), sum(kernel.load() for kernel in kernels)
