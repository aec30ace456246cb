"""The threads of the engine, and how they end before the interpreter does.

A daemon thread may be inside Arrow, DuckDB or a kernel when Python is finalized. When it next asks for the
GIL the process aborts (``terminate called``), or DuckDB's objects outlive their module. So every engine
thread is made here. Before the end of the process, what drives threads is closed and the threads are joined.

``atexit`` does that: it runs when main and all threads that are no daemons have ended. So a program whose own
threads still use a connection can use it to their end. ``threading``'s own hook would run too early.

A process that is forked from the program has none of its threads. It closes only what it opens itself.
"""

from __future__ import annotations

import _imp
import atexit
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

# seconds the end of the program waits for threads in all
JOIN_S = 3.0
_started: WeakSet[EngineThread] = WeakSet()
# what is closed at exit, and whether it serves jobs (those after the jobs themselves)
_closings: dict[Callable[[], None], bool] = {}


class EngineThread(threading.Thread):
    """A daemon thread that is joined at the end of the program, once its owner is closed. It never delays
    that end by itself.
    """

    def __init__(self, target: Callable[..., None], name: str, args: tuple[Any, ...] = ()) -> None:
        super().__init__(target=target, name=name, args=args, daemon=True)

    def start(self) -> None:
        """Start it."""
        super().start()
        _started.add(self)


def close_at_exit(close: Callable[[], None], *, serves_jobs: bool = False) -> None:
    """Call ``close`` before the interpreter ends. With ``serves_jobs`` it is called after the jobs that need
    it for their own end.

    Handlers of ``atexit`` that are there by now run after it, for the same reason.
    """
    _closings[close] = serves_jobs
    # registered anew: handlers run in reverse order, so this one runs before those that are there by now
    atexit.unregister(_end)
    atexit.register(_end)


def closed(close: Callable[[], None]) -> None:
    """Forget ``close``: it was called before the end of the process."""
    _closings.pop(close, None)


def join_all(timeout_s: float) -> list[EngineThread]:
    """Wait for threads whose work is closed; return those that have not ended, which wait for something of
    the program.
    """
    until = time.monotonic() + timeout_s
    for thread in list(_started):
        if thread is not threading.current_thread():
            thread.join(max(0.0, until - time.monotonic()))
    return [thread for thread in list(_started) if thread.is_alive()]


def _free_import_lock() -> None:
    """Release Python's import lock. Ctrl-C in the middle of an import leaves it with this thread for ever,
    and other threads import too.

    Only for where this thread runs no import, as at the end of a program.
    """
    while _imp.lock_held():
        try:
            _imp.release_lock()
        except RuntimeError:  # another thread holds it, and will release it
            return


def _end() -> None:
    """Close what is open, then wait for the threads. One that fails to close must not keep the others from
    it.
    """
    _free_import_lock()
    for close in sorted(_closings, key=lambda close: _closings[close]):
        try:
            close()
        except Exception as error:  # noqa: BLE001  there is nobody left to raise it to
            sys.stderr.write(f"penstock: closing at exit failed: {type(error).__name__}: {error}\n")
    join_all(JOIN_S)


def _begin_in_child() -> None:
    """Forget what the process before the fork has to close: its jobs, files and workers are not ours."""
    _closings.clear()
    _started.clear()


os.register_at_fork(after_in_child=_begin_in_child)
