"""Grids of slices by keys: a cell has the number of its group or entry + 1, 0 where there is none.

A row costs one read of an array, near those of its neighbours: rows come in runs of one slice.
"""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.index.word_index import ALLOCATED, FREE, FRESH, take_slot
from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I32, OUT_I64, VOID, kernel


@kernel(I64(IN_I64, IN_I64, I64, I64, I64, I64, OUT_I32, I64, OUT_I64, OUT_I64, OUT_I64), interpreted_by=(1,))
def number_dense(ends, words, first_end, slice_us, base, width, marks, count, into, firsts, cells):
    """Number the distinct (slice, word) pairs from ``count`` on. Write each row's number; of each new pair
    its first row and its cell. Return the new count.

    ``ends`` has one element where all rows are of one slice. ``marks`` by cell has the number + 1 of pairs
    numbered before, and 0 elsewhere.
    """
    known, end, row = count, first_end, I64(0)
    for i in range(words.size):
        # nearly always the slice of the row before
        if (ends.size > 1 or i == 0) and ends[i] != end:
            end = ends[i]
            row = (end - first_end) // slice_us * width
        # no unsigned index counts from the end: a comparison less
        cell = np.uint64(row + (words[i] - base))
        number = I64(marks[cell])
        if number == 0:
            firsts[count - known] = i
            cells[count - known] = I64(cell)
            count += 1
            number = count
            marks[cell] = number
        into[i] = number - 1
    return count


@kernel(VOID(IN_I64, I64, OUT_I32))
def fill(cells, first, marks):
    """Number cells one after another from ``first`` on, in marks by cell."""
    for i in range(cells.size):
        marks[cells[i]] = first + i + 1


@kernel(VOID(IN_I64, OUT_I32))
def clear(cells, marks):
    """Forget the numbers of cells."""
    for i in range(cells.size):
        marks[cells[i]] = 0


@kernel(
    I64(IN_I64, IN_I64, IN_I64, IN_I64, I64, I64, OUT_I32, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64),
    interpreted_by=(3,),
)
def insert(numbers, bases, firsts, key_slots, start, shift, cells, words, free, state, out, fresh):
    """Write the entry of each row from ``start`` on, new ones getting a slot. Return the number of rows done,
    fewer when slots ran out.

    A row's pane is that of its number (without ``numbers``: the first). It has its first cell in ``firsts``,
    and in ``bases`` the word of key slot 0; others are shifted. ``words`` by entry gets those of new entries.
    """
    for i in range(start, key_slots.size):
        at = numbers[i] if numbers.size else 0
        cell = np.uint64(firsts[at] + key_slots[i])
        entry = I64(cells[cell])
        if entry == 0:
            # no slot left: the caller makes some and calls again from this row
            if state[FREE] == 0 and state[ALLOCATED] == words.size:
                return i
            entry = take_slot(free, state) + 1
            fresh[state[FRESH]] = entry - 1
            state[FRESH] += 1
            cells[cell] = entry
            words[entry - 1] = bases[at] | (key_slots[i] << shift)
        out[i] = entry - 1
    return key_slots.size


@kernel(VOID(IN_I64, IN_I64, I64, I64, I64, OUT_I32))
def forget(entries, words, stride, near_bits, key_bits, cells):
    """Empty the cells of entries. A word has the high bits of the pane, then the key slot, then the low bits
    of the pane: see ``EntryIndex``.
    """
    near, key = (1 << near_bits) - 1, (1 << key_bits) - 1
    for i in range(entries.size):
        word = words[entries[i]]
        pane = (word >> (key_bits + near_bits) << near_bits) | (word & near)
        cells[pane * stride + ((word >> near_bits) & key)] = 0
