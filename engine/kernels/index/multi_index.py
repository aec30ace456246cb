"""Linked lists of row ids, one list per slot, in arrays. ``heads`` is indexed by slot; ``nexts``, ``priors``
and ``owners`` by row id. Entries are one more than a row id or a slot, and 0 ends a list: new memory is zero
and needs no filling.
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
        if owners[row] != 0:
            continue
        fresh[linked] = row
        linked += 1
        head = heads[slot]
        nexts[row] = head
        priors[row] = 0
        owners[row] = slot + 1
        if head != 0:
            priors[head - 1] = row + 1
        heads[slot] = row + 1
        counts[slot] += 1
    return linked


@kernel(I64(IN_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def unlink(ids, heads, counts, nexts, priors, owners, emptied):
    """Remove each row id from its list. Write the slots whose lists became empty; return their number."""
    empty = 0
    for i in range(ids.size):
        row = ids[i]
        slot = owners[row] - 1
        before, after = priors[row], nexts[row]
        if before != 0:
            nexts[before - 1] = after
        # It was the head.
        else:
            heads[slot] = after
        if after != 0:
            priors[after - 1] = before
        counts[slot] -= 1
        if counts[slot] == 0:
            emptied[empty] = slot
            empty += 1
        # Only ``owners`` says whether an id is linked: ``nexts`` and ``priors`` may stay.
        owners[row] = 0
    return empty


@kernel(I64(IN_I64, IN_I64, I64, OUT_I64))
def link_first(slots, ids, start, heads):
    """Make each row id from ``start`` on the only one of its slot's list. Return the number of rows done,
    fewer when a list had a row.
    """
    for i in range(start, ids.size):
        if heads[slots[i]] != 0:
            return i
        heads[slots[i]] = ids[i] + 1
    return ids.size


@kernel(VOID(IN_I64, IN_I64, I64, OUT_I64, OUT_I64, OUT_I64))
def link_new(slots, ids, start, heads, counts, nexts):
    """Prepend each row id from ``start`` on, of which none is in a list, to its slot's list."""
    for i in range(start, ids.size):
        slot, row = slots[i], ids[i]
        nexts[row] = heads[slot]
        heads[slot] = row + 1
        counts[slot] += 1


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
        while row != 0:
            positions[at] = i
            ids[at] = row - 1
            at -= 1
            row = nexts[row - 1]


@kernel(I64(IN_I64, OUT_I64, OUT_I64, OUT_I64))
def expand_first(slots, heads, positions, ids):
    """Write what ``expand`` does where no list has more than one row; return the number of pairs."""
    written = 0
    for i in range(slots.size):
        # a slot beyond the array was never linked
        if 0 <= slots[i] < heads.size:
            head = heads[slots[i]]
            if head != 0:
                positions[written] = i
                ids[written] = head - 1
                written += 1
    return written
