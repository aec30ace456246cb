"""Doubly linked lists of row ids, one list per slot, in arrays: ``heads`` by slot; ``nexts``, ``priors``
and ``owners`` by row id; -1 ends a list.
"""

from __future__ import annotations

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, VOID, kernel


@kernel(I64(IN_I64, IN_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def link(slots, ids, heads, counts, nexts, priors, owners, fresh):
    """Put each row id that is in no list yet at the head of its slot's list; write those ids and return
    how many.
    """
    linked = 0
    for i in range(ids.size):
        slot, row = slots[i], ids[i]
        if owners[row] >= 0:
            continue
        fresh[linked] = row
        linked += 1
        head = heads[slot]
        nexts[row] = head
        priors[row] = -1
        owners[row] = slot
        if head >= 0:
            priors[head] = row
        heads[slot] = row
        counts[slot] += 1
    return linked


@kernel(I64(IN_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def unlink(ids, heads, counts, nexts, priors, owners, emptied):
    """Take each row id out of the list it is in; write the slots whose lists became empty and return how
    many.
    """
    empty = 0
    for i in range(ids.size):
        row = ids[i]
        before, after = priors[row], nexts[row]
        if before >= 0:
            nexts[before] = after
        else:
            heads[owners[row]] = after
        if after >= 0:
            priors[after] = before
        counts[owners[row]] -= 1
        if counts[owners[row]] == 0:
            emptied[empty] = owners[row]
            empty += 1
        owners[row] = -1
    return empty


@kernel(I64(IN_I64, OUT_I64))
def total(slots, counts):
    """Return how many rows the lists of these slots hold together; slot -1 holds none."""
    rows = 0
    for i in range(slots.size):
        if slots[i] >= 0:
            rows += counts[slots[i]]
    return rows


@kernel(VOID(IN_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def expand(slots, heads, counts, nexts, positions, ids):
    """Write, per slot in order, one (position in ``slots``, row id) pair for each row of its list, oldest
    first.
    """
    written = 0
    for i in range(slots.size):
        if slots[i] < 0:
            continue
        written += counts[slots[i]]
        at = written - 1
        row = heads[slots[i]]
        while row >= 0:
            positions[at] = i
            ids[at] = row
            at -= 1
            row = nexts[row]
