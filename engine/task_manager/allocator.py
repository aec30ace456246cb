"""The C library's allocator, told to keep what batches free: the arrays of the next batch take it again.

glibc maps large arrays for themselves and unmaps them when they are freed, and every page of the next array
is then a page fault. Arrow's own allocator gives memory back after 10 ms, and more often where one thread
frees what another has allocated. So Arrow allocates from the C library too.
"""

from __future__ import annotations

import ctypes
import os
import platform

import pyarrow as pa

# The numbers that malloc.h gives these parameters.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD = -1, -2, -3
# the most that glibc accepts: half of the heap of a thread
MMAP_THRESHOLD = 32 << 20
# free memory at the end of a heap that is not returned to the system
TRIM_THRESHOLD = 256 << 20
# by how much more than asked for a heap grows
TOP_PAD = 16 << 20


def keep_freed_memory() -> bool:
    """Have this process keep memory that is freed, for the next batches; return whether the C library is one
    that can (glibc). It holds until the process ends. ARROW_DEFAULT_MEMORY_POOL, where it is set, chooses
    Arrow's allocator instead.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    wanted = (
        (_M_MMAP_THRESHOLD, MMAP_THRESHOLD),
        (_M_TRIM_THRESHOLD, TRIM_THRESHOLD),
        (_M_TOP_PAD, TOP_PAD),
    )
    # 1 is success, 0 a value that is refused
    accepted = [mallopt(parameter, value) for parameter, value in wanted]
    kept = accepted == [1, 1, 1]
    if kept and "ARROW_DEFAULT_MEMORY_POOL" not in os.environ:
        pa.set_memory_pool(pa.system_memory_pool())
    return kept
