"""Open-addressing hash table of int64 words. The table has (word, slot + 1) pairs side by side, so one cache
miss finds a key.

``table`` int64[2 * 2**bits]: a pair's home is the top ``bits`` bits of the word's hash. Probing is linear;
removal shifts entries back (no tombstones). A free slot is reused. ``state`` int64[7] has, in this order:

- the number of live keys, of slots ever allocated, and of free slots in ``free``;
- slot + 1 of the NULL key;
- the number of slots in ``fresh``;
- of a growing index: the place in ``old`` its migration began at, and how many places it has passed.

A large index grows while it is used, so that no step waits for all its keys: the table before stays as
``old`` (empty: it does not grow), and each step migrates some of its pairs into ``table``, in the order of
their homes. Migration begins and stops at empty places: each run of pairs is wholly in one of the two.
A word belongs to ``table`` when its home in ``old`` was passed, else to ``old``, also a new one. So memory of
``table`` is written to in order. A new table of 268 MB that is written to at random needs all its pages at
once.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I64, IN_U8, OUT_I64, VOID, kernel
from penstock.engine.kernels.stable_hash import mix

# The entries of ``state``.
LIVE, ALLOCATED, FREE, NULL, FRESH, ORIGIN, PASSED, STATE_WORDS = 0, 1, 2, 3, 4, 5, 6, 7

# Words whose homes are touched before they are searched, so that their cache misses overlap.
_AHEAD = 64


# The top bits: ``mix`` makes them depend on every bit of the word.
@njit(nogil=True, inline="always")
def _home(word, bits):
    return np.int64(mix(np.uint64(word)) >> np.uint64(64 - bits))


@njit(nogil=True, inline="always")
def take_slot(free, state):
    """Return an unused slot. The caller must have checked that there is one."""
    state[LIVE] += 1
    if state[FREE] > 0:
        state[FREE] -= 1
        # A freed slot first, so that arrays by slot stay small.
        return free[state[FREE]]
    state[ALLOCATED] += 1
    return state[ALLOCATED] - 1


@njit(nogil=True)
def is_in_old(home, bits, state):
    """Return whether a key with this home belongs to the old table of a growing index, which has half of the
    places.
    """
    return (((home >> 1) - state[ORIGIN]) & ((1 << (bits - 1)) - 1)) >= state[PASSED]


@njit(nogil=True)
def _find_word(pairs, at, mask, word):
    """Return the place of a word, probed for from its home on, or the empty place that ends the search."""
    # The word itself is compared: there is no tag. It may be left over in an empty place.
    while pairs[2 * at + 1] != 0 and pairs[2 * at] != word:
        at = (at + 1) & mask
    return at


@njit(nogil=True)
def _look_ahead(words, start, end, table, bits, old, state, homes, seen):
    """Write the homes of words, and prefetch the tables there. Each is a separate loop so that cache misses
    overlap.
    """
    for i in range(start, end):
        homes[i - start] = _home(words[i], bits)
    if old.size == 0:
        for i in range(end - start):
            seen[i] = table[2 * homes[i]]
        return
    for i in range(end - start):
        if is_in_old(homes[i], bits, state):
            seen[i] = old[2 * (homes[i] >> 1)]
        else:
            seen[i] = table[2 * homes[i]]


@kernel(I64(OUT_I64, OUT_I64, I64, OUT_I64, I64))
def migrate(old, table, bits, state, count):
    """Move the pairs of ``count`` further places of the old table, and of the run of pairs behind them.
    Return 1 when none is left, else 0.
    """
    mask = (1 << bits) - 1
    places = 1 << (bits - 1)
    stop = min(state[PASSED] + count, places)
    if state[PASSED] == 0:
        # five eighths are filled, so there is an empty place
        while old[2 * state[ORIGIN] + 1] != 0:
            state[ORIGIN] += 1
    while True:
        place = (state[ORIGIN] + state[PASSED]) & (places - 1)
        entry = old[2 * place + 1]
        # an empty place ends a run, also the last one, which may have grown beyond the first place
        if entry == 0 and state[PASSED] >= stop:
            return I64(state[PASSED] >= places)
        if entry != 0:
            word = old[2 * place]
            at = _home(word, bits)
            while table[2 * at + 1] != 0:
                at = (at + 1) & mask
            table[2 * at] = word
            table[2 * at + 1] = entry
            old[2 * place + 1] = 0
        state[PASSED] += 1


@kernel(
    I64(IN_I64, IN_U8, I64, OUT_I64, I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64),
    interpreted_by=(0,),
)
def insert(words, valid, start, table, bits, old, keys, free, state, out, fresh):
    """Write the slot of every row from ``start`` on. New keys get a slot, which is also written to ``fresh``.
    Return the number of rows done, fewer when slots ran out.
    """
    mask = (1 << bits) - 1
    growing = old.size > 0
    homes, seen = np.empty(_AHEAD, np.int64), np.empty(_AHEAD, np.int64)
    for i in range(start, words.size):
        nth = (i - start) % _AHEAD
        if nth == 0:
            _look_ahead(words, i, min(i + _AHEAD, words.size), table, bits, old, state, homes, seen)
        word = words[i]
        # NULL is no word of the table: it has a slot of its own
        if valid.size and not valid[i]:
            if state[NULL] == 0:
                if state[FREE] == 0 and state[ALLOCATED] == keys.size:
                    return i
                state[NULL] = take_slot(free, state) + 1
                fresh[state[FRESH]] = state[NULL] - 1
                state[FRESH] += 1
            out[i] = state[NULL] - 1
            continue
        # No variable is either table, and no inline function of numba takes one: counting references took
        # four times as long as all the rest.
        in_old = growing and is_in_old(homes[nth], bits, state)
        if in_old:
            at = _find_word(old, homes[nth] >> 1, mask >> 1, word)
            entry = old[2 * at + 1]
        else:
            at = _find_word(table, homes[nth], mask, word)
            entry = table[2 * at + 1]
        if entry != 0:
            out[i] = entry - 1
            continue
        # The key is new. No slot left: the caller grows the table and calls again from this row.
        if state[FREE] == 0 and state[ALLOCATED] == keys.size:
            return i
        slot = take_slot(free, state)
        if in_old:
            old[2 * at] = word
            old[2 * at + 1] = slot + 1
        else:
            table[2 * at] = word
            table[2 * at + 1] = slot + 1
        keys[slot] = word
        fresh[state[FRESH]] = slot
        state[FRESH] += 1
        out[i] = slot
    return words.size


@kernel(VOID(IN_I64, IN_U8, OUT_I64, I64, OUT_I64, OUT_I64, OUT_I64))
def find(words, valid, table, bits, old, state, out):
    """Write the slot of every row, -1 when its key has none."""
    mask = (1 << bits) - 1
    growing = old.size > 0
    homes, seen = np.empty(_AHEAD, np.int64), np.empty(_AHEAD, np.int64)
    for i in range(words.size):
        if i % _AHEAD == 0:
            _look_ahead(words, i, min(i + _AHEAD, words.size), table, bits, old, state, homes, seen)
        if valid.size and not valid[i]:
            out[i] = state[NULL] - 1  # -1 while NULL has no slot
            continue
        word, home = words[i], homes[i % _AHEAD]
        # The slot + 1 of an empty pair is 0, so the result is -1.
        if growing and is_in_old(home, bits, state):
            out[i] = old[2 * _find_word(old, home >> 1, mask >> 1, word) + 1] - 1
        else:
            out[i] = table[2 * _find_word(table, home, mask, word) + 1] - 1


@kernel(VOID(OUT_I64, I64, OUT_I64, I64, IN_U8))
def rebuild(old, old_bits, table, bits, dead):
    """Fill an empty table with the pairs of an old one, except for slots marked dead. Empty ``dead`` marks
    none.
    """
    mask = (1 << bits) - 1
    for p in range(1 << old_bits):
        entry = old[2 * p + 1]
        # Empty, or its key is being removed.
        if entry == 0 or (dead.size and dead[entry - 1]):
            continue
        word = old[2 * p]
        at = _home(word, bits)
        while table[2 * at + 1] != 0:
            at = (at + 1) & mask
        table[2 * at] = word
        table[2 * at + 1] = entry


@njit(nogil=True)
def _shift_back(table, bits, hole):
    """Empty a place of a table. Pairs behind it move back into it if probing reaches them from their home."""
    mask = (1 << bits) - 1
    at = hole
    while True:
        at = (at + 1) & mask
        if table[2 * at + 1] == 0:
            break
        home = _home(table[2 * at], bits)
        # The pair's home is not behind the hole: move it there, and its old position is the hole.
        if ((at - home) & mask) >= ((at - hole) & mask):
            table[2 * hole] = table[2 * at]
            table[2 * hole + 1] = table[2 * at + 1]
            hole = at
    # Only the slot marks an empty pair: the word may be any number.
    table[2 * hole + 1] = 0


@kernel(VOID(IN_I64, OUT_I64, I64, OUT_I64, OUT_I64))
def remove(words, table, bits, old, state):
    """Remove keys from the tables, one by one. Each must be in one of them."""
    mask = (1 << bits) - 1
    growing = old.size > 0
    for i in range(words.size):
        home = _home(words[i], bits)
        if growing and is_in_old(home, bits, state):
            _shift_back(old, bits - 1, _find_word(old, home >> 1, mask >> 1, words[i]))
        else:
            _shift_back(table, bits, _find_word(table, home, mask, words[i]))
