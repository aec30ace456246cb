"""One commit at a time and table in this process: merges of two subtasks would only conflict."""

from __future__ import annotations

import threading

_LOCKS: dict[str, threading.RLock] = {}
_GUARD = threading.Lock()


def commit_lock(name: str) -> threading.RLock:
    """Return the lock of a table, by its path or its full name. The thread that has it may take it again."""
    with _GUARD:
        return _LOCKS.setdefault(name, threading.RLock())
