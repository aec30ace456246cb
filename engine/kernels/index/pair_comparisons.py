"""Compares columns of pairs of rows by address: nothing of a pair is copied before it is known to match.

A pair is a position in a batch and a row of stored chunks, by its place (see ``gather``). An operand of a
comparison is a column of 64-bit words of either side. No position is checked, and words are not NULL.
"""

from __future__ import annotations

from penstock.engine.kernels.index.gather import POSITION, load_8
from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, TABLE_I64, kernel

LESS, EQUAL, GREATER = 1, 2, 4
"""What a comparison may find; the bits of those it accepts are added."""
ACCEPTED, LEFT, RIGHT = 0, 1, 2
"""The columns of ``comparisons``: what is accepted, and the address of each operand's first word in the
batch. The address is 0 for a stored column.
"""


@kernel(I64(IN_I64, IN_I64, IN_I64, TABLE_I64, TABLE_I64, OUT_I64, OUT_I64, OUT_I64))
def satisfying(at, ids, places, comparisons, chunks, out_at, out_ids, out_places):
    """Write the pairs that satisfy all comparisons, in their order; return their number. ``chunks`` has two
    rows a comparison, for the left and the right operand: the address of each chunk's first word.
    """
    count = 0
    for i in range(at.size):
        chunk, position = places[i] >> 32, 8 * (places[i] & POSITION)
        mine = 8 * at[i]
        holds = True
        for k in range(comparisons.shape[0]):
            left, right = comparisons[k, LEFT], comparisons[k, RIGHT]
            a = load_8(left + mine if left != 0 else chunks[2 * k, chunk] + position)
            b = load_8(right + mine if right != 0 else chunks[2 * k + 1, chunk] + position)
            found = LESS if a < b else (EQUAL if a == b else GREATER)
            holds &= (comparisons[k, ACCEPTED] & found) != 0
        # always written, counted if it holds: there is no branch to predict
        out_at[count], out_ids[count], out_places[count] = at[i], ids[i], places[i]
        count += holds
    return count
