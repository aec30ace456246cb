"""Sets of the elements of lists, by codes that are equal for equal elements: a hash table a list."""

from __future__ import annotations

from numba import njit

from penstock.engine.kernels.kernel import I64, IN_I32, IN_I64, IN_U8, OUT_I64, OUT_U8, VOID, kernel
from penstock.engine.kernels.pointers import pointer

_FACTOR = 0x9E3779B1
_LOW = (1 << 31) - 1


@njit(nogil=True)
def _find_slot(table, mask, row, code):
    """Return where a code is in the table of a row, or the free place where it belongs."""
    mixed = code ^ (code >> 31)
    place = (((mixed & _LOW) * _FACTOR) >> 20) & mask
    # a place that another row has written is free
    while table[2 * place] == row and table[2 * place + 1] != code:
        place = (place + 1) & mask
    return place


@kernel(VOID(IN_I64, IN_I64, OUT_I64, OUT_U8))
def firsts(starts, codes, table_out, keep):
    """Write 1 for each element that is the first of its code in its list, else 0. ``table_out``: zeros, two
    words a place, a power of two of places, more than any list has elements.
    """
    table, mask = pointer(table_out), table_out.size // 2 - 1
    for i in range(starts.size - 1):
        for k in range(starts[i], starts[i + 1]):
            place = _find_slot(table, mask, i + 1, codes[k])
            keep[k] = table[2 * place] != i + 1
            table[2 * place], table[2 * place + 1] = i + 1, codes[k]


@njit(nogil=True)
def _is_same(data, begin, other, length):
    """Return whether two texts of one length are equal."""
    same = 0
    while same < length and data[begin + same] == data[other + same]:
        same += 1
    return same == length


@kernel(I64(IN_I64, IN_I32, IN_U8))
def repeated_text(starts, offsets_in, bytes_in):
    """Return the first text that is twice in its list: where it is again, -1 without one. Lists are short:
    each text is compared with those before it.
    """
    data, offsets = pointer(bytes_in), pointer(offsets_in)
    for i in range(starts.size - 1):
        for k in range(starts[i] + 1, starts[i + 1]):
            begin, length = I64(offsets[k]), I64(offsets[k + 1]) - I64(offsets[k])
            for j in range(starts[i], k):
                other = I64(offsets[j])
                if I64(offsets[j + 1]) - other == length and _is_same(data, begin, other, length):
                    return k
    return -1


@kernel(VOID(IN_I64, IN_I64, IN_I64, IN_I64, OUT_I64, OUT_U8))
def members(starts, codes, other_starts, other_codes, table_out, found):
    """Write 1 for each element that the other list of its row has too, else 0. ``table_out`` as of
    ``firsts``, for the other lists.
    """
    table, mask = pointer(table_out), table_out.size // 2 - 1
    for i in range(starts.size - 1):
        for k in range(other_starts[i], other_starts[i + 1]):
            place = _find_slot(table, mask, i + 1, other_codes[k])
            table[2 * place], table[2 * place + 1] = i + 1, other_codes[k]
        for k in range(starts[i], starts[i + 1]):
            found[k] = table[2 * _find_slot(table, mask, i + 1, codes[k])] == i + 1


@kernel(VOID(IN_I64, OUT_I64, OUT_I64))
def order_lists(starts, ranks, order):
    """Sort the ranks of each list, and write which element each was; equal ones stay in their order. Lists
    are short: each rank is inserted behind those that are not above it.
    """
    for i in range(starts.size - 1):
        begin = starts[i]
        for at in range(begin, starts[i + 1]):
            rank, place = ranks[at], at
            while place > begin and ranks[place - 1] > rank:
                ranks[place] = ranks[place - 1]
                order[place] = order[place - 1]
                place -= 1
            ranks[place] = rank
            order[place] = at
