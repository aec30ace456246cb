"""Open-addressing hash table over keys stored outside of it: rows of int64 words, or strings in an arena.

``table`` int64[2**bits] has entries ``tag << 32 | slot + 1``; 0 is empty. The tag is the top 32 bits of the
key's hash. An entry's home is the top ``bits`` bits of its tag, so growing and removing never read keys.
``tags`` int64 has each slot's tag. ``state`` int64[6] has, in this order:

- the number of live keys, of slots ever allocated, and of free slots in ``free``;
- slot + 1 of the NULL key;
- the arena bytes in use, and the arena bytes of removed keys.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.index.word_index import ALLOCATED, FREE, NULL, take_slot
from penstock.engine.kernels.kernel import (
    I64,
    IN_I32,
    IN_I64,
    IN_U8,
    OUT_I64,
    OUT_U8,
    TABLE_I64,
    VOID,
    kernel,
)
from penstock.engine.kernels.stable_hash import combine, hash_bytes, load_word, mix

USED, GARBAGE = 4, 5
# The low half of an entry.
_SLOT = 0xFFFFFFFF
# Keys whose homes are touched before they are searched, so that cache misses overlap.
_AHEAD = 64


@njit(nogil=True, inline="always")
def _same_bytes(left, left_start, right, right_start, length):
    k = 0
    while k + 8 <= length:
        if load_word(left, left_start + k) != load_word(right, right_start + k):
            return False
        k += 8
    if k == length:
        return True
    if length >= 8:
        # The last word overlaps bytes compared already: cheaper than up to seven single bytes.
        return load_word(left, left_start + length - 8) == load_word(right, right_start + length - 8)
    while k < length and left[left_start + k] == right[right_start + k]:
        k += 1
    return k == length


@njit(nogil=True, inline="always")
def _put(table, at, tag, tags, slot):
    table[at] = (tag << 32) | (slot + 1)
    tags[slot] = tag


@njit(nogil=True, inline="always")
def _row_tag(rows, i):
    # The width is part of the hash, then each word in turn.
    hashed = np.uint64(rows.shape[1])
    for k in range(rows.shape[1]):
        hashed = combine(hashed, np.uint64(rows[i, k]))
    return np.int64(hashed >> np.uint64(32))


@njit(nogil=True)
def _look_ahead_rows(rows, start, end, table, bits, keys, tags, seen):
    """Write the tags of rows, and prefetch the memory that comparisons will read. Each kind has its own loop,
    so that cache misses overlap.
    """
    for i in range(start, end):
        tags[i - start] = _row_tag(rows, i)
    for i in range(end - start):
        seen[i] = max((table[tags[i] >> (32 - bits)] & _SLOT) - 1, 0)
    for i in range(end - start):
        seen[i] = keys[seen[i], 0]


@kernel(I64(TABLE_I64, I64, OUT_I64, I64, TABLE_I64, OUT_I64, OUT_I64, OUT_I64, I64, OUT_I64))
def insert_rows(rows, start, table, bits, keys, tags, free, state, insert, out):
    """Write the slot of every row from ``start`` on; return the number of rows done. A new key gets a slot if
    ``insert`` is set, else -1.

    The row that inserted a key has ``-2 - slot`` instead.
    """
    mask = (1 << bits) - 1
    width = rows.shape[1]
    ahead, seen = np.empty(_AHEAD, np.int64), np.empty(_AHEAD, np.int64)
    for i in range(start, rows.shape[0]):
        if (i - start) % _AHEAD == 0:
            _look_ahead_rows(rows, i, min(i + _AHEAD, rows.shape[0]), table, bits, keys, ahead, seen)
        tag = ahead[(i - start) % _AHEAD]
        # Linear probing from the home on.
        at = tag >> (32 - bits)
        while True:
            entry = table[at]
            # An empty entry: the key is new.
            if entry == 0:
                if not insert:
                    out[i] = -1
                    break
                # No slot left: the caller grows the table and calls again from this row.
                if state[FREE] == 0 and state[ALLOCATED] == tags.size:
                    return i
                slot = take_slot(free, state)
                _put(table, at, tag, tags, slot)
                for k in range(width):
                    keys[slot, k] = rows[i, k]
                out[i] = -2 - slot
                break
            # Keys are only compared where 32 bits of the hash agree.
            # Masked: a tag with its top bit set makes the entry negative, and the shift keeps the sign.
            if (entry >> 32) & _SLOT == tag:
                slot = (entry & _SLOT) - 1
                same = True
                for k in range(width):
                    same &= keys[slot, k] == rows[i, k]
                if same:
                    out[i] = slot
                    break
            at = (at + 1) & mask
    return rows.shape[0]


@njit(nogil=True)
def _look_ahead(offsets, data, start, end, table, bits, spans, arena, tags, seen):
    """Write the tags of strings, and prefetch the memory that comparisons will read. Each kind has its own
    loop, so that cache misses overlap.
    """
    for i in range(start, end):
        first = I64(offsets[i])
        tags[i - start] = np.int64(mix(hash_bytes(data, first, I64(offsets[i + 1]))) >> np.uint64(32))
    likely = np.empty(end - start, np.int64)
    for i in range(end - start):
        likely[i] = max((table[tags[i] >> (32 - bits)] & _SLOT) - 1, 0)
    for i in range(end - start):
        likely[i] = spans[likely[i], 0]
    for i in range(end - start):
        seen[i] = arena[likely[i]]


@kernel(
    I64(IN_I32, IN_U8, IN_U8, I64, OUT_I64, I64, OUT_U8, TABLE_I64, OUT_I64, OUT_I64, OUT_I64, I64, OUT_I64)
)
def insert_strings(offsets, data, valid, start, table, bits, arena, spans, tags, free, state, insert, out):
    """Write the slot of every string from ``start`` on. Return the number done, fewer when slots or the arena
    ran out.

    ``spans`` has the start of each slot's string in the arena, and its length.
    """
    mask = (1 << bits) - 1
    ahead, seen = np.empty(_AHEAD, np.int64), np.empty(_AHEAD, np.uint8)
    for i in range(start, out.size):
        if (i - start) % _AHEAD == 0:
            _look_ahead(offsets, data, i, min(i + _AHEAD, out.size), table, bits, spans, arena, ahead, seen)
        # NULL has a slot of its own outside the table.
        if valid.size and not valid[i]:
            if state[NULL] == 0 and insert:
                if state[FREE] == 0 and state[ALLOCATED] == tags.size:
                    return i
                state[NULL] = take_slot(free, state) + 1
                spans[state[NULL] - 1, 1] = 0
            out[i] = state[NULL] - 1
            continue
        first = I64(offsets[i])
        length = I64(offsets[i + 1]) - first
        tag = ahead[(i - start) % _AHEAD]
        at = tag >> (32 - bits)
        while True:
            entry = table[at]
            # An empty entry: the key is new, and needs a slot and space in the arena.
            if entry == 0:
                if not insert:
                    out[i] = -1
                    break
                if (state[FREE] == 0 and state[ALLOCATED] == tags.size) or state[USED] + length > arena.size:
                    return i
                slot = take_slot(free, state)
                _put(table, at, tag, tags, slot)
                spans[slot, 0] = state[USED]
                spans[slot, 1] = length
                for k in range(length):
                    arena[state[USED] + k] = data[first + k]
                state[USED] += length
                out[i] = slot
                break
            # Same tag: compare lengths, then bytes.
            if (entry >> 32) & _SLOT == tag:
                slot = (entry & _SLOT) - 1
                if spans[slot, 1] == length and _same_bytes(arena, spans[slot, 0], data, first, length):
                    out[i] = slot
                    break
            at = (at + 1) & mask
    return out.size


@kernel(VOID(OUT_I64, OUT_I64, I64, IN_U8))
def rebuild(old, table, bits, dead):
    """Fill an empty table with the entries of an old one, except for slots marked dead. Empty ``dead`` marks
    none.
    """
    mask = (1 << bits) - 1
    for p in range(old.size):
        entry = old[p]
        if entry == 0 or (dead.size and dead[(entry & _SLOT) - 1]):
            continue
        # Entries carry their tags: no key is read.
        at = ((entry >> 32) & _SLOT) >> (32 - bits)
        while table[at] != 0:
            at = (at + 1) & mask
        table[at] = entry


@kernel(VOID(IN_I64, IN_I64, OUT_I64, I64))
def remove(slots, tags, table, bits):
    """Remove the entries of live slots from the table, one by one."""
    mask = (1 << bits) - 1
    for i in range(slots.size):
        hole = tags[slots[i]] >> (32 - bits)
        # Live slots are in the table, so this ends.
        while table[hole] & _SLOT != slots[i] + 1:
            hole = (hole + 1) & mask
        # Entries behind the hole move back into it if probing reaches them from their home: no tombstones are
        # needed.
        at = hole
        while True:
            at = (at + 1) & mask
            if table[at] == 0:
                break
            home = ((table[at] >> 32) & _SLOT) >> (32 - bits)
            # The entry's home is not behind the hole: move it there, and its old position is the hole.
            if ((at - home) & mask) >= ((at - hole) & mask):
                table[hole] = table[at]
                hole = at
        table[hole] = 0


@kernel(VOID(IN_I64, IN_I64, IN_U8, OUT_U8))
def gather_strings(starts, lengths, arena, out):
    """Copy strings of an arena one after another."""
    used = 0
    for i in range(starts.size):
        for k in range(lengths[i]):
            out[used + k] = arena[starts[i] + k]
        used += lengths[i]
