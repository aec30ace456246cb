"""Private files that are replaced whole: the catalog's, and those of users."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Be the only program that reads a file in order to replace it. The lock is a file beside it, which
    stays. Raises OSError, also where the directory does not exist.
    """
    descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # waits: a change takes milliseconds
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def exclusive_directory(directory: Path) -> Iterator[None]:
    """Be the only program that reads a file of a directory in order to replace it. The directory itself is
    locked, so no other file is left there; it is made where it is missing, as private. Raises OSError.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # waits: a change takes milliseconds
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def replace_file(path: Path, text: str) -> None:
    """Write a file whole or not at all, durably, readable by its owner only. Its directory is made, as
    private. Raises OSError. Two programs that write one file at once need ``exclusive`` or
    ``exclusive_directory``.
    """
    # Only the user may list the directory, too.
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # In the same directory: a rename is atomic only within one file system.
    fresh = path.with_name(path.name + ".new")
    # Only the user may read it: options of tables and verifiers of passwords are secrets.
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        # flush() empties Python's buffer, fsync() the system's.
        file.flush()
        os.fsync(file.fileno())
    # The content is on disk before the name is.
    fresh.replace(path)
    # Without this the rename may be lost when the machine fails.
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
