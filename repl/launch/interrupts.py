"""Ctrl-C as an exception: KeyboardInterrupt is raised only where it leaves no lock behind.

Python runs a signal handler between any two steps of the main thread. An exception in the middle of an
import, or between the two steps of ``with condition:``, leaves a lock acquired for ever. Whatever needs it
next hangs: the cancellation of the query, or the import of a job's thread. Under load the main thread is
there most of the time, because that is where it waits for other threads.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# so short that a user notices no delay; the signal is sent again until an exception leaves nothing behind
_AGAIN_S = 0.01
# of threading.Condition: steps in which its lock is acquired or released
_LOCK_STEPS = frozenset({"__enter__", "__exit__", "_acquire_restore", "_release_save"})


def is_postponed(signum: int, frame: FrameType | None) -> bool:
    """Return whether a handler must not raise in this frame. The signal is then sent again a moment later."""
    if not _holds_locks(frame):
        return False
    again = threading.Timer(_AGAIN_S, os.kill, (os.getpid(), signum))
    again.daemon = True
    again.start()
    return True


def _holds_locks(frame: FrameType | None) -> bool:
    # from the interrupted frame outwards
    while frame is not None:
        code = frame.f_code
        # an import, or what an import runs
        if code.co_filename.startswith("<frozen importlib"):
            return True
        if code.co_filename == threading.__file__ and code.co_name in _LOCK_STEPS:
            return True
        frame = frame.f_back
    return False


@contextmanager
def raised_between_locks() -> Iterator[None]:
    """Have SIGINT raise KeyboardInterrupt inside the block, where no lock is left behind."""
    # the former handler is restored: a program may call the command line as a function
    before = signal.signal(signal.SIGINT, _handle_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _handle_interrupt(signum: int, frame: FrameType | None) -> None:
    if not is_postponed(signum, frame):
        raise KeyboardInterrupt
