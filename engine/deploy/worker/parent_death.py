"""The end of a worker with its parent: asked of the kernel where it can be asked."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def on_parents_death(parent: int, leave: Callable[[], None]) -> None:
    """Have ``leave`` called when the process ``parent`` is gone; Linux says so by a signal, elsewhere the
    control connection's end does.

    Call it from the main thread. Interrupts from the keyboard are the parent's business.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: leave())
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # gone before the kernel was asked
        leave()
