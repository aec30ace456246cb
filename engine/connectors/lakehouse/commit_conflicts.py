"""Writers of one table: a lock between those of this process, and the errors of those that were overtaken."""

from __future__ import annotations

import threading

from penstock.catalog.errors import Kind, PenstockError

_LOCKS: dict[str, threading.RLock] = {}
_GUARD = threading.Lock()


def commit_lock(name: str) -> threading.RLock:
    """Return the lock of a table, by its path or its full name. The thread that has it may take it again.

    One commit at a time: merges of two subtasks would only conflict.
    """
    with _GUARD:
        return _LOCKS.setdefault(name, threading.RLock())


def superseded(where: str, newest: int, mine: int) -> PenstockError:
    """Return the error of an attempt when a later one writes to the table."""
    return PenstockError(
        "STA-3504",
        f"attempt {newest} writes to {where}, this one is attempt {mine}",
        hint="a later run of the job has taken over: this one ends",
        kind=Kind.EXTERNAL,
    )


def conflicts_persist(where: str, error: Exception) -> PenstockError:
    """Return the error of a commit that others got ahead of at each try."""
    return PenstockError(
        "DAT-5313",
        f"other writers got ahead of each commit to {where}",
        detail=str(error)[:300],
        hint="it is tried again; longer checkpoint intervals make fewer commits",
        kind=Kind.EXTERNAL,
        retriable=True,
        sqlstate="40001",
    )
