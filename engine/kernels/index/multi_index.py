"""Doubly linked lists of row ids, one list per slot, in arrays. ``heads`` is indexed by slot; ``nexts``,
``priors`` and ``owners`` by row id. -1 ends a list.
"""

from __future__ import annotations

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, VOID, kernel


@kernel(I64(IN_I64, IN_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def link(slots, ids, heads, counts, nexts, priors, owners, fresh):
    """Prepend each row id that is in no list yet to its slot's list. Write those ids and return their
    number.
    """
    linked = 0
    for i in range(ids.size):
        slot, row = slots[i], ids[i]
        # In a list already, of whichever slot.
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
    """Remove each row id from its list. Write the slots whose lists became empty; return their number."""
    empty = 0
    for i in range(ids.size):
        row = ids[i]
        before, after = priors[row], nexts[row]
        if before >= 0:
            nexts[before] = after
        # It was the head.
        else:
            heads[owners[row]] = after
        if after >= 0:
            priors[after] = before
        counts[owners[row]] -= 1
        if counts[owners[row]] == 0:
            emptied[empty] = owners[row]
            empty += 1
        # Only ``owners`` says whether an id is linked: ``nexts`` and ``priors`` may stay.
        owners[row] = -1
    return empty


@kernel(I64(IN_I64, OUT_I64))
def total(slots, counts):
    """Return the total number of rows in the lists of these slots; slot -1 has none."""
    rows = 0
    for i in range(slots.size):
        if slots[i] >= 0:
            rows += counts[slots[i]]
    return rows


@kernel(VOID(IN_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def expand(slots, heads, counts, nexts, positions, ids):
    """Write a pair (position in ``slots``, row id) for each row of the slots' lists. Slots keep their order;
    rows of a list are oldest first.
    """
    written = 0
    for i in range(slots.size):
        if slots[i] < 0:
            continue
        written += counts[slots[i]]
        # The head is the newest row: write backwards for the oldest first.
        at = written - 1
        row = heads[slots[i]]
        while row >= 0:
            positions[at] = i
            ids[at] = row
            at -= 1
            row = nexts[row]
