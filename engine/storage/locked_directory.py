"""Directories that belong to one process while it lives: the lock ends with it, also when it is killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path


def locked_directory(within: Path, prefix: str) -> tuple[Path, int]:
    """Make a directory of a new name, and lock it. Return it, and the descriptor that holds the lock until it
    is closed.
    """
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
        # another process may take it for abandoned before it is locked
        with contextlib.suppress(FileNotFoundError):
            lock = locked(path)
            if lock is not None and path.exists():
                return path, lock
            if lock is not None:
                os.close(lock)


def delete_abandoned(within: Path, prefix: str) -> None:
    """Delete this user's directories of processes that have ended: nobody holds their locks."""
    for path in named_directories(within, prefix):
        # another process may have deleted it meanwhile; in a shared directory it may be another user's
        with contextlib.suppress(FileNotFoundError, PermissionError):
            lock = locked(path) if path.lstat().st_uid == os.getuid() else None
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)


def named_directories(within: Path, prefix: str) -> Sequence[Path]:
    """Return the directories whose names begin with a prefix, in order."""
    return sorted(
        path
        for path in within.iterdir()
        if path.name.startswith(prefix) and path.is_dir() and not path.is_symlink()
    )


def locked(path: Path) -> int | None:
    """Return a descriptor that holds the lock of a directory until it is closed; None if another has it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
