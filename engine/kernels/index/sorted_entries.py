"""Places of entries (slot, word, id) among sorted ones."""

from __future__ import annotations

from penstock.engine.kernels.kernel import I64, IN_I64, OUT_I64, VOID, kernel


@kernel(VOID(IN_I64, IN_I64, IN_I64, IN_I64, IN_I64, IN_I64, OUT_I64))
def entry_places(slots, words, ids, asked_slots, asked_words, asked_ids, places):
    """Write for each entry where it is among those in order, or would be inserted."""
    for i in range(places.size):
        slot, word, number = asked_slots[i], asked_words[i], asked_ids[i]
        low, high = I64(0), I64(slots.size)
        while low < high:
            middle = (low + high) >> 1
            if slots[middle] != slot:
                less = slots[middle] < slot
            elif words[middle] != word:
                less = words[middle] < word
            else:
                less = ids[middle] < number
            if less:
                low = middle + 1
            else:
                high = middle
        places[i] = low
