"""Small passes over slots: each one once, counted uses, rows of a table as columns."""

from __future__ import annotations

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, SLOTS_I64, TABLE_I64, VOID, kernel

_BLOCK = 64


@kernel(I64(IN_I64, I64, OUT_I64, OUT_I64))
def distinct(slots, epoch, marks, out):
    """Write each slot once, in the order they first come; return how many. ``marks`` by slot hold no
    ``epoch`` yet.
    """
    count = 0
    for i in range(slots.size):
        if marks[slots[i]] != epoch:
            marks[slots[i]] = epoch
            out[count] = slots[i]
            count += 1
    return count


@kernel(VOID(IN_I64, OUT_I64))
def retain(slots, uses):
    """Count one more use of each slot, as often as it is named."""
    for i in range(slots.size):
        uses[slots[i]] += 1


@kernel(I64(IN_I64, OUT_I64, OUT_I64))
def release(slots, uses, out):
    """Count one use less of each slot, as often as it is named; write the slots no use is left of and
    return how many.
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
    """Number the distinct (run, slot) pairs, given with runs ascending; write each pair's number and where
    each number first is.

    ``marks`` by slot hold what is no run, ``numbers`` by slot anything.
    """
    count = 0
    for i in range(slots.size):
        slot = slots[i]
        if marks[slot] != runs[i]:
            marks[slot] = runs[i]
            numbers[slot] = count
            firsts[count] = i
            count += 1
        into[i] = numbers[slot]
    return count


@kernel(VOID(IN_I64, SLOTS_I64, TABLE_I64, I64, I64))
def gather(slots, table, out, first, step):
    """Write rows of a table as columns: ``out[k, first + i * step] = table[slots[i], k]``.

    Block by block: the rows are touched in a loop of its own so that cache misses overlap, then one column
    after another is written.
    """
    seen = 0
    for start in range(0, slots.size, _BLOCK):
        end = min(start + _BLOCK, slots.size)
        for i in range(start, end):
            seen |= table[slots[i], 0]
        for k in range(table.shape[1]):
            for i in range(start, end):
                out[k, first + i * step] = table[slots[i], k]
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
