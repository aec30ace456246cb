"""Builds the hash table of ``word_index.py`` from all its words at once. The words are partitioned by the top
bits of their hashes first, so each partition writes to a part of the table that stays in the cache. Ten
million words take 0.2 s instead of 1.6 s one batch after another.

``pairs`` int64[2 * words] has (word, row) side by side, partition after partition, rows ascending in each.
``cursors`` int64[2**partition_bits] has where the next pair of each partition goes.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.index.word_index import ALLOCATED, FREE, LIVE
from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, VOID, kernel
from penstock.engine.kernels.stable_hash import mix


@njit(nogil=True, inline="always")
def _top(word, bits):
    return np.int64(mix(np.uint64(word)) >> np.uint64(64 - bits))


@kernel(VOID(IN_I64, I64, OUT_I64))
def count_partitions(words, partition_bits, counts):
    """Add the words of each partition to its count."""
    for i in range(words.size):
        counts[_top(words[i], partition_bits)] += 1


@kernel(VOID(IN_I64, I64, I64, OUT_I64, OUT_I64, OUT_I64))
def scatter(words, first_row, partition_bits, cursors, pairs, keys):
    """Write the pairs of words to their partitions, and each word to the slot with the number of its row."""
    for i in range(words.size):
        partition = _top(words[i], partition_bits)
        at = 2 * cursors[partition]
        cursors[partition] += 1
        pairs[at] = words[i]
        pairs[at + 1] = first_row + i
        keys[first_row + i] = words[i]


@kernel(VOID(IN_I64, I64, I64, OUT_I64, I64, OUT_I64, OUT_I64, OUT_I64))
def insert_pairs(pairs, start, end, table, bits, state, free, slots):
    """Insert pairs of an array into a table that has room for them. A key's slot is its first row. For each
    further row of a key its slot is written to ``slots``, and the row's own slot is free.
    """
    mask = (1 << bits) - 1
    for i in range(start, end):
        word, row = pairs[2 * i], pairs[2 * i + 1]
        at = _top(word, bits)
        while table[2 * at + 1] != 0 and table[2 * at] != word:
            at = (at + 1) & mask
        entry = table[2 * at + 1]
        if entry == 0:
            table[2 * at] = word
            table[2 * at + 1] = row + 1
            state[LIVE] += 1
        else:
            slots[row] = entry - 1
            free[state[FREE]] = row
            state[FREE] += 1
    state[ALLOCATED] = max(state[ALLOCATED], slots.size)
