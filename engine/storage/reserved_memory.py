"""Arrays in memory that grow where they are. Address space is reserved for an array that becomes large, and
memory comes to it with the first write. Nothing is copied when it grows, so no row waits for a copy.
"""

from __future__ import annotations

import math
import mmap
import resource
import sys

import numpy as np

LEAST_BYTES = 8 << 20
"""Smaller arrays are copied. The arrays of a state grow in one step, nine of a state by a number and a text:
copied up to 16 MB each, that step took 79 ms. But state that comes and goes uses memory again that others
have freed, and a mapping has new pages each time: from 4 MB on, q4 took 4 % longer.
"""
RESERVED_BYTES = 4 << 30
"""Of address space, for an array of up to a quarter of that; a larger one gets four times what it needs."""
# Of Linux on x86 and ARM; mmap has no name for it. Without it the system counts the space as if it were
# written to.
_NORESERVE = 0x4000


class ReservedMemory(mmap.mmap):
    """The address space of one array."""


def extend_array(array: np.ndarray, size: int) -> np.ndarray | None:
    """Return an array with ``size`` first elements in the same memory, the new ones zero; ``None`` where it
    has no space. The given array stays what it is: the first elements of the other.
    """
    owner: object = array
    while isinstance(owner, np.ndarray):
        owner = owner.base
    shape = (size, *array.shape[1:])
    if not isinstance(owner, ReservedMemory) or array.itemsize * math.prod(shape) > len(owner):
        return None
    wider = np.ndarray(shape, array.dtype, buffer=owner)
    # a slice from the middle, or columns of a wider table, are no array of their own
    alike = wider.ctypes.data == array.ctypes.data and wider.strides == array.strides
    return wider if alike else None


def reserve_zeros(shape: tuple[int, ...], kind: np.dtype) -> np.ndarray | None:
    """Return zeros that can grow in place; ``None`` where they are few, or where address space is short."""
    # not numpy's product: it took 2 % of q8, whose arrays are small and many
    needed = kind.itemsize * math.prod(shape)
    if needed < LEAST_BYTES or sys.platform != "linux" or sys.maxsize < 1 << 32:
        return None
    # where the user limits address space, it is not ours to reserve
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        return None
    try:
        space = ReservedMemory(
            -1,
            max(RESERVED_BYTES, 4 * needed),
            flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE,
        )
        # pages of 2 MB: 512 times fewer faults, and random reads miss the page table less often
        space.madvise(mmap.MADV_HUGEPAGE)
    except OSError:
        # no space, or a kernel without huge pages: an ordinary array does as well
        return None
    return np.ndarray(shape, kind, buffer=space)
