"""The best few keys of each slot: rows that so many others of their slot are ahead of are told without
sorting.
"""

from __future__ import annotations

from penstock.engine.kernels.kernel import kernel
from penstock.engine.kernels.signatures import IN_I64, OUT_U8, TABLE_I64, VOID


@kernel(VOID(IN_I64, IN_I64, TABLE_I64, OUT_U8))
def pass_best(slots, keys, best, passed):
    """Merge the keys into the rows of ``best`` (one a slot, greatest first); ``passed`` says which are no
    less than the last one there.
    """
    last = best.shape[1] - 1
    for row in range(slots.size):
        slot, key = slots[row], keys[row]
        if key <= best[slot, last]:
            continue
        place = last
        while place > 0 and best[slot, place - 1] < key:
            best[slot, place] = best[slot, place - 1]
            place -= 1
        best[slot, place] = key
    for row in range(slots.size):
        passed[row] = keys[row] >= best[slots[row], last]
