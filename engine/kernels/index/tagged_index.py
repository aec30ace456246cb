"""Open-addressing hash table over keys stored outside of it: rows of int64 words, or strings in an arena.

``table`` int64[2**bits] has entries ``tag << 32 | slot + 1``; 0 is empty. The tag is the top 32 bits of the
key's hash. An entry's home is the top ``bits`` bits of its tag, so growing never reads keys.

``state`` int64[9] has, in this order:

- the number of live keys, of slots ever allocated, and of free slots in ``free``;
- slot + 1 of the NULL key;
- the arena bytes in use;
- of a growing index: the place in ``old`` its migration began at, and how many places it has passed;
- the arena bytes of removed keys;
- the rows that ``insert_rows`` found without a hash.

A large index grows while it is used, as that of words does (``word_index``): ``old`` is the table before, and
empty when it does not grow.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.index.word_index import (
    ALLOCATED,
    FREE,
    NULL,
    ORIGIN,
    PASSED,
    is_in_old,
    take_slot,
)
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
from penstock.engine.kernels.pointers import copy_span
from penstock.engine.kernels.stable_hash import hash_bytes, load_word, mix

# With those of ``word_index``, whose ORIGIN and PASSED lie between them.
USED, GARBAGE, FOUND, STATE_WORDS = 4, 7, 8, 9
# The low half of an entry.
_SLOT = 0xFFFFFFFF
# Odd numbers whose products depend on many bits; those of ``stable_hash``.
_STEP, _FIRST = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
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
def _row_tag(rows, i):
    # As ``hash_bytes`` does with words: one multiplication each, a third of what ``combine`` takes.
    hashed = np.uint64(rows.shape[1]) * _STEP
    for k in range(rows.shape[1]):
        hashed = (hashed ^ np.uint64(rows[i, k])) * _FIRST
        hashed ^= hashed >> np.uint64(29)
    return np.int64((hashed * _STEP) >> np.uint64(32))


@njit(nogil=True)
def _likely(tags, count, table, bits, old, state, likely):
    """Write the slot in the home of each tag, 0 where none has that tag: new keys touch no others."""
    for i in range(count):
        home = tags[i] >> (32 - bits)
        if old.size and is_in_old(home, bits, state):
            entry = old[home >> 1]
        else:
            entry = table[home]
        # an empty entry has tag 0, and no slot
        likely[i] = max((entry & _SLOT) - 1, 0) if (entry >> 32) & _SLOT == tags[i] else 0


@njit(nogil=True, inline="always")
def _recent_position(words, i, size):
    # Rows of ids that lie close together have places of their own, also beside columns of few values. The
    # high bits are for numbers whose low bits are equal, such as times.
    total = np.int64(0)
    for k in range(words.shape[1]):
        total += words[i, k]
    return (total ^ (total >> 21) ^ (total >> 42)) & (size - 1)


@njit(nogil=True)
def _find_recent(rows, start, end, keys, recent, places, out, others):
    """Write the slots of rows that were found last in their places. The other rows are written to ``others``;
    return how many they are.
    """
    slots = np.empty(_AHEAD, np.int64)
    # two loops, so that cache misses overlap
    for i in range(start, end):
        places[i - start] = _recent_position(rows, i, recent.size)
        slots[i - start] = recent[places[i - start]] - 1
    count = 0
    for i in range(start, end):
        slot = slots[i - start]
        same = slot >= 0
        if same:
            for k in range(rows.shape[1]):
                same &= keys[slot, k] == rows[i, k]
        if same:
            out[i] = slot
        else:
            others[count] = i
            count += 1
    return count


@njit(nogil=True)
def _look_ahead_rows(rows, others, count, table, bits, old, state, keys, tags, seen):
    """Write the tags of rows, and prefetch the memory that comparisons will read. Each kind has its own loop,
    so that cache misses overlap.
    """
    for n in range(count):
        tags[n] = _row_tag(rows, others[n])
    _likely(tags, count, table, bits, old, state, seen)
    for n in range(count):
        seen[n] = keys[seen[n], 0]


@kernel(
    I64(TABLE_I64, I64, OUT_I64, I64, OUT_I64, TABLE_I64, OUT_I64, OUT_I64, OUT_I64, I64, OUT_I64),
    interpreted_by=(0,),
)
def insert_rows(rows, start, table, bits, old, keys, free, state, recent, insert, out):
    """Write the slot of every row from ``start`` on; return the number of rows done. A new key gets a slot if
    ``insert`` is set, else -1.

    The row that inserted a key has ``-2 - slot`` instead. ``recent`` (empty: none) has, in a place that
    follows from a row's words, the slot + 1 that was last found there: most rows are of keys that came not
    long ago, and need no hash. ``state[FOUND]`` counts the rows that were found so.
    """
    mask = (1 << bits) - 1
    width, growing = rows.shape[1], old.size > 0
    ahead, seen = np.empty(_AHEAD, np.int64), np.empty(_AHEAD, np.int64)
    others, places = np.arange(_AHEAD), np.empty(_AHEAD, np.int64)
    for first in range(start, rows.shape[0], _AHEAD):
        end = min(first + _AHEAD, rows.shape[0])
        count = end - first
        if recent.size:
            count = _find_recent(rows, first, end, keys, recent, places, out, others)
            state[FOUND] += end - first - count
        else:
            for n in range(count):
                others[n] = first + n
        _look_ahead_rows(rows, others, count, table, bits, old, state, keys, ahead, seen)
        for n in range(count):
            i, tag = others[n], ahead[n]
            home = tag >> (32 - bits)
            # No variable is either table, and no function is called with one: counting references takes
            # longer than all the rest. A branch that always goes one way costs nothing.
            in_old = growing and is_in_old(home, bits, state)
            at, last = (home >> 1, mask >> 1) if in_old else (home, mask)
            slot = np.int64(-1)
            # Linear probing from the home on.
            while True:
                entry = old[at] if in_old else table[at]
                # An empty entry: the key is new.
                if entry == 0:
                    if not insert:
                        out[i] = -1
                        break
                    # No slot left: the caller grows the table and calls again from this row.
                    if state[FREE] == 0 and state[ALLOCATED] == keys.shape[0]:
                        return i
                    slot = take_slot(free, state)
                    if in_old:
                        old[at] = (tag << 32) | (slot + 1)
                    else:
                        table[at] = (tag << 32) | (slot + 1)
                    for k in range(width):
                        keys[slot, k] = rows[i, k]
                    out[i] = -2 - slot
                    break
                # Keys are only compared where 32 bits of the hash agree.
                # Masked: a tag with its top bit set makes the entry negative, and the shift keeps the sign.
                if (entry >> 32) & _SLOT == tag:
                    found = (entry & _SLOT) - 1
                    same = True
                    for k in range(width):
                        same &= keys[found, k] == rows[i, k]
                    if same:
                        out[i] = slot = found
                        break
                at = (at + 1) & last
            if recent.size and slot >= 0:
                recent[places[i - first]] = slot + 1
    return rows.shape[0]


@kernel(VOID(IN_I64, TABLE_I64, OUT_I64))
def forget_recent(slots, keys, recent):
    """Empty the places of ``recent`` that have one of these slots: their rows are removed."""
    for n in range(slots.size):
        place = _recent_position(keys, slots[n], recent.size)
        if recent[place] == slots[n] + 1:
            recent[place] = 0


@njit(nogil=True, inline="always")
def _text_tag(data, first, end):
    return np.int64(mix(hash_bytes(data, first, end)) >> np.uint64(32))


@njit(nogil=True)
def _look_ahead(offsets, data, start, end, table, bits, old, state, spans, arena, tags, seen):
    """Write the tags of strings, and prefetch the memory that comparisons will read. Each kind has its own
    loop, so that cache misses overlap.
    """
    for i in range(start, end):
        first = I64(offsets[i])
        tags[i - start] = _text_tag(data, first, I64(offsets[i + 1]))
    likely = np.empty(end - start, np.int64)
    _likely(tags, end - start, table, bits, old, state, likely)
    for i in range(end - start):
        likely[i] = spans[likely[i], 0]
    for i in range(end - start):
        seen[i] = arena[likely[i]]


@kernel(
    I64(
        IN_I32,
        IN_U8,
        IN_U8,
        I64,
        OUT_I64,
        I64,
        OUT_I64,
        OUT_U8,
        TABLE_I64,
        OUT_I64,
        OUT_I64,
        I64,
        OUT_I64,
    ),
    interpreted_by=(0, 1),
)
def insert_strings(offsets, data, valid, start, table, bits, old, arena, spans, free, state, insert, out):
    """Write the slot of every string from ``start`` on. Return the number done, fewer when slots or the arena
    ran out.

    ``spans`` has the start of each slot's string in the arena, and its length.
    """
    mask = (1 << bits) - 1
    growing = old.size > 0
    ahead, seen = np.empty(_AHEAD, np.int64), np.empty(_AHEAD, np.uint8)
    for i in range(start, out.size):
        if (i - start) % _AHEAD == 0:
            end = min(i + _AHEAD, out.size)
            _look_ahead(offsets, data, i, end, table, bits, old, state, spans, arena, ahead, seen)
        # NULL has a slot of its own outside the table.
        if valid.size and not valid[i]:
            if state[NULL] == 0 and insert:
                if state[FREE] == 0 and state[ALLOCATED] == spans.shape[0]:
                    return i
                state[NULL] = take_slot(free, state) + 1
                spans[state[NULL] - 1, 1] = 0
            out[i] = state[NULL] - 1
            continue
        first = I64(offsets[i])
        length = I64(offsets[i + 1]) - first
        tag = ahead[(i - start) % _AHEAD]
        home = tag >> (32 - bits)
        # No variable is either table: see ``insert_rows``.
        in_old = growing and is_in_old(home, bits, state)
        at, last = (home >> 1, mask >> 1) if in_old else (home, mask)
        while True:
            entry = old[at] if in_old else table[at]
            # An empty entry: the key is new, and needs a slot and space in the arena.
            if entry == 0:
                if not insert:
                    out[i] = -1
                    break
                if (state[FREE] == 0 and state[ALLOCATED] == spans.shape[0]) or state[
                    USED
                ] + length > arena.size:
                    return i
                slot = take_slot(free, state)
                if in_old:
                    old[at] = (tag << 32) | (slot + 1)
                else:
                    table[at] = (tag << 32) | (slot + 1)
                spans[slot, 0] = state[USED]
                spans[slot, 1] = length
                copy_span(arena, state[USED], data, first, length)
                state[USED] += length
                out[i] = slot
                break
            # Same tag: compare lengths, then bytes.
            if (entry >> 32) & _SLOT == tag:
                slot = (entry & _SLOT) - 1
                if spans[slot, 1] == length and _same_bytes(arena, spans[slot, 0], data, first, length):
                    out[i] = slot
                    break
            at = (at + 1) & last
    return out.size


@kernel(I64(OUT_I64, OUT_I64, I64, OUT_I64, I64))
def migrate(old, table, bits, state, count):
    """Move the entries of ``count`` further places of the old table, and of the run of entries behind them.
    Return 1 when none is left, else 0.
    """
    mask = (1 << bits) - 1
    places = 1 << (bits - 1)
    stop = min(state[PASSED] + count, places)
    if state[PASSED] == 0:
        # five eighths are filled, so there is an empty place
        while old[state[ORIGIN]] != 0:
            state[ORIGIN] += 1
    while True:
        place = (state[ORIGIN] + state[PASSED]) & (places - 1)
        entry = old[place]
        # an empty place ends a run, also the last one, which may have grown beyond the first place
        if entry == 0 and state[PASSED] >= stop:
            return I64(state[PASSED] >= places)
        if entry != 0:
            # Entries carry their tags: no key is read.
            at = ((entry >> 32) & _SLOT) >> (32 - bits)
            while table[at] != 0:
                at = (at + 1) & mask
            table[at] = entry
            old[place] = 0
        state[PASSED] += 1


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


@njit(nogil=True)
def _remove_slot(entries, bits, tag, slot):
    """Remove the entry of a slot from a table. Entries behind it move back into the hole if probing reaches
    them from their home: no tombstones are needed.
    """
    mask = (1 << bits) - 1
    hole = tag >> (32 - bits)
    # Live slots are in the table, so this ends.
    while entries[hole] & _SLOT != slot + 1:
        hole = (hole + 1) & mask
    at = hole
    while True:
        at = (at + 1) & mask
        if entries[at] == 0:
            break
        home = ((entries[at] >> 32) & _SLOT) >> (32 - bits)
        # The entry's home is not behind the hole: move it there, and its old position is the hole.
        if ((at - home) & mask) >= ((at - hole) & mask):
            entries[hole] = entries[at]
            hole = at
    entries[hole] = 0


@kernel(VOID(IN_I64, TABLE_I64, OUT_I64))
def tag_rows(slots, keys, tags):
    """Write the tags of the rows of slots."""
    for i in range(slots.size):
        tags[i] = _row_tag(keys, slots[i])


@kernel(VOID(IN_I64, TABLE_I64, OUT_U8, OUT_I64))
def tag_strings(slots, spans, arena, tags):
    """Write the tags of the strings of slots."""
    for i in range(slots.size):
        first = spans[slots[i], 0]
        tags[i] = _text_tag(arena, first, first + spans[slots[i], 1])


@kernel(VOID(IN_I64, IN_I64, OUT_I64, I64, OUT_I64, OUT_I64))
def remove(slots, tags, table, bits, old, state):
    """Remove the entries of live slots, which have these tags, from the tables, one by one."""
    growing = old.size > 0
    for i in range(slots.size):
        tag = tags[i]
        if growing and is_in_old(tag >> (32 - bits), bits, state):
            _remove_slot(old, bits - 1, tag, slots[i])
        else:
            _remove_slot(table, bits, tag, slots[i])


@kernel(VOID(IN_I64, IN_I64, IN_U8, OUT_U8), interpreted_by=(0, 3))
def gather_strings(starts, lengths, arena, out):
    """Copy strings of an arena one after another."""
    used = 0
    for i in range(starts.size):
        copy_span(out, used, arena, starts[i], lengths[i])
        used += lengths[i]
