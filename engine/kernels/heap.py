"""A binary min-heap of (time, slot) pairs in two arrays."""

from __future__ import annotations

from penstock.engine.kernels.kernel import kernel
from penstock.engine.kernels.signatures import I64, IN_I64, OUT_I64, VOID


@kernel(VOID(IN_I64, IN_I64, I64, OUT_I64, OUT_I64))
def push(new_times, new_slots, size, times, slots):
    """Add pairs to a heap of ``size``; the arrays have room."""
    for i in range(new_times.size):
        at = size + i
        time = new_times[i]
        while at > 0:
            parent = (at - 1) >> 1
            if times[parent] <= time:
                break
            times[at] = times[parent]
            slots[at] = slots[parent]
            at = parent
        times[at] = time
        slots[at] = new_slots[i]


@kernel(I64(I64, I64, OUT_I64, OUT_I64, OUT_I64, OUT_I64))
def pop_due(bound, size, times, slots, due_times, due_slots):
    """Move every pair with time <= ``bound`` out of the heap, in order of time; return how many."""
    popped = 0
    while size > 0 and times[0] <= bound:
        due_times[popped] = times[0]
        due_slots[popped] = slots[0]
        popped += 1
        size -= 1
        time, slot = times[size], slots[size]
        at = 0
        while True:
            child = 2 * at + 1
            if child >= size:
                break
            if child + 1 < size and times[child + 1] < times[child]:
                child += 1
            if times[child] >= time:
                break
            times[at] = times[child]
            slots[at] = slots[child]
            at = child
        times[at] = time
        slots[at] = slot
    return popped
