"""Arrays in memory that grow where they are. Address space is reserved for an array that becomes large, and
memory comes to it with the first write. Nothing is copied when it grows, so no row waits for a copy.
"""

from __future__ import annotations

import itertools
import math
import mmap
import resource
import sys

import numpy as np

LEAST_BYTES = 8 << 20
"""Smaller arrays are made anew: state that comes and goes uses memory again that others have freed, and a
mapping has new pages each time. From 4 MB on, q4 took 4 % longer.
"""
GROWN_LEAST_BYTES = 2 << 20
"""Smaller arrays are copied when they grow. The arrays of a state grow in one step, seven of a state by a
number and a text: copied up to 8 MB each, that step took 76 ms, and from 2 MB on in place 57.
"""
RESERVED_BYTES = 4 << 30
"""Of address space, for an array of up to a quarter of that; a larger one gets four times what it needs."""
# Of huge pages, in bytes.
_PAGE_BYTES = 2 << 20
# The golden section of a page, in whole cache lines: the starts of any few arrays lie evenly in it.
_STEP_BYTES = 1_296_128
# Of Linux on x86 and ARM; mmap has no name for it. Without it the system counts the space as if it were
# written to.
_NORESERVE = 0x4000


_count = itertools.count()


class ReservedMemory(mmap.mmap):
    """The address space of one array, which begins ``start`` bytes behind its own begin.

    Each array starts elsewhere in its first page. Arrays by slot come to new pages together: where all began
    with a page, one step of four took 88 ms and the others 30, for a page took 2 to 4 ms.
    """

    start = 0


def _memory_of(array: np.ndarray) -> ReservedMemory | None:
    owner: object = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    return owner if isinstance(owner, ReservedMemory) else None


def extend_array(array: np.ndarray, size: int) -> np.ndarray | None:
    """Return an array with ``size`` first elements in the same memory, the new ones zero; ``None`` where it
    has no space. The given array stays what it is: the first elements of the other.
    """
    space, shape = _memory_of(array), (size, *array.shape[1:])
    if space is None or array.itemsize * math.prod(shape) > len(space) - space.start:
        return None
    wider = np.ndarray(shape, array.dtype, buffer=space, offset=space.start)
    # a slice from the middle, or columns of a wider table, are no array of their own
    alike = wider.ctypes.data == array.ctypes.data and wider.strides == array.strides
    return wider if alike else None


def reserve_zeros(shape: tuple[int, ...], kind: np.dtype, *, has_grown: bool = False) -> np.ndarray | None:
    """Return zeros that can grow in place; ``None`` where they are few, or where address space is short. An
    array that ``has_grown`` is likely to grow again.
    """
    # not numpy's product: it took 2 % of q8, whose arrays are small and many
    needed = kind.itemsize * math.prod(shape)
    if needed < (GROWN_LEAST_BYTES if has_grown else LEAST_BYTES):
        return None
    if sys.platform != "linux" or sys.maxsize < 1 << 32:
        return None
    # where the user limits address space, it is not ours to reserve
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        return None
    try:
        space = ReservedMemory(
            -1,
            max(RESERVED_BYTES, 4 * needed) + _PAGE_BYTES,
            flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE,
        )
        # pages of 2 MB: 512 times fewer faults, and random reads miss the page table less often
        space.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        # no space, or a kernel without huge pages: an ordinary array does as well
        return None
    space.start = next(_count) * _STEP_BYTES % _PAGE_BYTES
    return np.ndarray(shape, kind, buffer=space, offset=space.start)


def release_zeros(array: np.ndarray, first: int, end: int) -> None:
    """Return the memory of first elements ``first`` to ``end`` to the system, in whole pages. The caller has
    set them to zero, and they stay zero. Nothing happens to an array of other memory.
    """
    if (space := _memory_of(array)) is None:
        return
    low = -(-(space.start + first * array.strides[0]) // _PAGE_BYTES) * _PAGE_BYTES
    high = (space.start + end * array.strides[0]) // _PAGE_BYTES * _PAGE_BYTES
    if low < high:
        space.madvise(mmap.MADV_DONTNEED, low, high - low)
