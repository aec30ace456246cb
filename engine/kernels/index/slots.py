"""Small kernels over slots: distinct slots, reference counts, table rows as columns."""

from __future__ import annotations

import numpy as np

from penstock.engine.kernels.kernel import (
    I64,
    IN_I64,
    IN_U64,
    OUT_I32,
    OUT_I64,
    SLOTS_I64,
    TABLE_I64,
    U64,
    VOID,
    kernel,
)

# Table rows touched at a time.
_BLOCK = 64


@kernel(I64(IN_I64, I64, OUT_I32, OUT_I64, I64), interpreted_by=(0,))
def distinct(slots, epoch, marks, out, count):
    """Write each slot once behind the ``count`` first ones, in the order of first occurrence; return how many
    there are then. ``marks`` by slot has ``epoch`` for those only. It ends when ``out`` is full.
    """
    if count == out.size:
        return count
    for i in range(slots.size):
        # no index of unsigned numbers counts from the end: a comparison less
        slot = np.uint64(slots[i])
        if marks[slot] != epoch:
            marks[slot] = epoch
            out[count] = slots[i]
            count += 1
            if count == out.size:
                break
    return count


@kernel(VOID(IN_I64, OUT_I32))
def retain(slots, uses):
    """Increment the use count of each slot, once per occurrence."""
    for i in range(slots.size):
        uses[slots[i]] += 1


@kernel(I64(IN_I64, OUT_I32, OUT_I64))
def release(slots, uses, out):
    """Decrement the use count of each slot, once per occurrence. Write the slots whose count became 0; return
    their number.
    """
    unused = 0
    for i in range(slots.size):
        uses[slots[i]] -= 1
        if uses[slots[i]] == 0:
            out[unused] = slots[i]
            unused += 1
    return unused


@kernel(I64(IN_I64, IN_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def number_runs(runs, slots, marks, numbers, into, firsts):
    """Number the distinct (run, slot) pairs; runs must be ascending. Write each pair's number, and the first
    row of each number. Return the number of pairs.

    ``marks`` by slot must not contain a run of this call; ``numbers`` by slot may contain anything.
    """
    count = 0
    for i in range(slots.size):
        slot = slots[i]
        # A slot's first row in this run. Runs ascend, so a mark of an earlier run is out of date.
        if marks[slot] != runs[i]:
            marks[slot] = runs[i]
            numbers[slot] = count
            firsts[count] = i
            count += 1
        into[i] = numbers[slot]
    return count


@kernel(I64(IN_I64, IN_I64, I64, OUT_I64, I64, OUT_I64, OUT_I64))
def number_cells(panes, slots, stride, marks, count, into, cells):
    """Number the distinct cells ``panes[i] * stride + slots[i]`` from ``count`` on. Write each row's number,
    and each new cell; return the new count.

    ``marks`` by cell has the number + 1 of cells numbered before, and 0 elsewhere.
    """
    known = count
    for i in range(slots.size):
        cell = panes[i] * stride + slots[i]
        if marks[cell] == 0:
            cells[count - known] = cell
            count += 1
            marks[cell] = count
        into[i] = marks[cell] - 1
    return count


@kernel(VOID(IN_I64, SLOTS_I64, TABLE_I64, I64, I64), interpreted_by=(0,))
def gather(slots, table, out, first, step):
    """Write table rows as columns: ``out[k, first + i * step] = table[slots[i], k]``.

    It works in blocks. A separate loop touches the rows of a block first, so that cache misses overlap. Then
    the columns are written one after another.
    """
    seen = 0
    # rows without words, as of DISTINCT, have nothing to touch
    for start in range(0, slots.size if table.shape[1] else 0, _BLOCK):
        end = min(start + _BLOCK, slots.size)
        for i in range(start, end):
            seen |= table[slots[i], 0]
        for k in range(table.shape[1]):
            for i in range(start, end):
                out[k, first + i * step] = table[slots[i], k]
    # Never true, but the compiler does not know: it must not drop the loop that touches the rows.
    if slots.size < 0:
        out[0, 0] = seen


@kernel(VOID(IN_I64, SLOTS_I64))
def empty(slots, table):
    """Set rows of a table to zeros."""
    for i in range(slots.size):
        for k in range(table.shape[1]):
            table[slots[i], k] = 0


@kernel(VOID(IN_I64, TABLE_I64, TABLE_I64))
def add_each(slots, weights, table):
    """Add ``weights[k, i]`` to ``table[slots[i], k]``."""
    for i in range(slots.size):
        for k in range(weights.shape[0]):
            table[slots[i], k] += weights[k, i]


@kernel(VOID(IN_U64, U64, OUT_I64, OUT_I64))
def order_by_group(hashes, groups, ends, out):
    """Write the positions of hashes in the order of their key groups, ``hash % groups``; those of one group
    ascend. ``ends`` int64[groups], zeros, become the ends of the groups in ``out``.
    """
    for i in range(hashes.size):
        ends[hashes[i] % groups] += 1
    before = 0
    for group in range(ends.size):
        before += ends[group]
        ends[group] = before - ends[group]
    for i in range(hashes.size):
        group = hashes[i] % groups
        out[ends[group]] = i
        ends[group] += 1
