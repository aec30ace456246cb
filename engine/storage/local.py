"""Storage in a local directory. Here the engine also creates every other file of state: readable by its user
alone, whatever the umask.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.failpoints import failpoint
from penstock.engine.storage.storage import check_name, locked

LOCK = "LOCK"
# a lock that was not renewed for so long may be taken over; longer than anything a living process is
# busy with
LEASE_S = 30.0


def make_private(directory: Path) -> None:
    """Create a directory with its parents, for this user alone; an existing one is not changed. Raises
    OSError.
    """
    if not directory.is_dir():
        make_private(directory.parent)
        try:
            directory.mkdir(mode=0o700, exist_ok=True)
        except FileExistsError as error:  # a file stands where the directory should
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(directory)) from error


def open_private(path: Path) -> BinaryIO:
    """Open a file for writing from the start; a new file is for this user alone. Raises OSError."""
    # An existing file keeps its permissions.
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb")


class LocalStorage:
    """A directory on a local disk; created with its parents when missing (STA-3030 when it cannot be)."""

    fences = False

    def __init__(self, root: Path) -> None:
        self._root = root
        # Descriptors of files that were created and not yet synced, by name.
        self._open: dict[str, int] = {}
        # The descriptor of LOCK, on which the lock depends.
        self._lock: int | None = None
        try:
            make_private(root)
        except OSError as error:
            message = f"state cannot be stored in {root}: {(error.strerror or str(error)).lower()}"
            hint = "--state and execution.checkpointing.dir take a directory, made when it is missing"
            raise PenstockError(
                "STA-3030", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="58030"
            ) from error

    def __str__(self) -> str:
        return str(self._root)

    def create(self, name: str) -> None:
        path = self._path(name)
        with self._translate_errors(name):
            self._open[name] = os.open(
                # O_EXCL: a name is never written twice. O_APPEND: a retried write cannot overwrite.
                path,
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC,
                0o600,
            )

    def append(self, name: str, data: bytes) -> None:
        view = memoryview(data)
        with self._translate_errors(name):
            while view:  # a write may be short
                view = view[os.write(self._open[name], view) :]

    def sync(self, name: str) -> None:
        descriptor = self._open.pop(name)  # never synced again after a failure: the pages count as clean then
        try:
            with self._translate_errors(name):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_directory(self) -> None:
        with self._translate_errors():
            descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def publish(self, name: str, target: str) -> None:
        source, final = self._path(name), self._path(target)
        with self._translate_errors(target):
            # Atomic on one file system: a reader sees the old file or the new one.
            source.replace(final)
        failpoint("C9")
        self.sync_directory()

    def list(self) -> list[str]:
        # symbolic links are ignored here and refused when read: none is ours
        names = (entry.name for entry in os.scandir(self._root) if entry.is_file(follow_symlinks=False))
        return sorted(name for name in names if not name.startswith(LOCK))

    def delete(self, name: str) -> None:
        # An aborted write: the file was never synced.
        if name in self._open:
            os.close(self._open.pop(name))
        path = self._path(name)
        with self._translate_errors(name):
            path.unlink(missing_ok=True)

    def size(self, name: str) -> int:
        return self._path(name).stat(follow_symlinks=False).st_size

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        # A symbolic link could lead outside of the directory.
        descriptor = os.open(self._path(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            file.seek(offset)
            return file.read() if length is None else file.read(length)

    def lock(self, *, take_over: bool = False) -> None:
        descriptor = os.open(self._root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # the kernel releases the lock when its process dies, however that happens
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            os.close(descriptor)
            # Another process has it: it may be taken over if it is silent.
            if cause.errno in (errno.EACCES, errno.EAGAIN):
                self._lock = self._take_over_lock(force=take_over)
                return
            raise
        self._lock = descriptor
        if not self.renew():  # it was taken over between the opening and the locking
            self.close()
            raise locked(str(self._root))

    def shut(self) -> None:
        with contextlib.suppress(OSError):  # it is another user's
            self._root.chmod(0o700)

    def location(self) -> str:
        # A copy has another inode, a moved directory another path.
        root = self._root.resolve()
        return f"{root.stat().st_ino} {root}"

    def in_use(self) -> bool:
        """Return whether a process holds the lock."""
        try:
            descriptor = os.open(self._root / LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        # A shared lock fails as long as somebody has the exclusive one, and disturbs no other reader.
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def renew(self, *, now: bool = False) -> bool:
        assert self._lock is not None, "this process has the lock"
        # a take-over replaces the file: our descriptor then has another inode than the name
        mine = os.fstat(self._lock)
        try:
            there = (self._root / LOCK).stat()
        except FileNotFoundError:
            return False
        if (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino):
            return False
        # the file's time is the lease: another process reads it in _take_over_lock
        os.utime(self._lock)
        return True

    def _take_over_lock(self, *, force: bool) -> int:
        """Replace the lock of a silent owner. That owner notices when it renews, and its epoch is stale."""
        # a locked file renamed over LOCK: there is no moment without a lock
        fresh = self._root / f"{LOCK}.{os.getpid()}"
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        # both times by the clock of the file system
        silent_s = os.fstat(descriptor).st_mtime - (self._root / LOCK).stat().st_mtime
        if not force and silent_s < LEASE_S:
            os.close(descriptor)
            fresh.unlink()
            raise locked(str(self._root))
        # From here on the former owner's ``renew`` fails.
        fresh.replace(self._root / LOCK)
        return descriptor

    def close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open = {}
        if self._lock is not None:
            # Closing the descriptor releases the lock; the file stays.
            os.close(self._lock)
            self._lock = None

    @contextlib.contextmanager
    def _translate_errors(self, name: str = "") -> Iterator[None]:
        """Add the path to an error of the system, and the free space when that is exhausted."""
        try:
            yield
        except OSError as error:
            free_text = ""
            # No space, quota exhausted, file too large.
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                with contextlib.suppress(OSError):
                    usage = os.statvfs(self._root)
                    free_text = f" ({usage.f_bavail * usage.f_frsize / 1e6:,.1f} MB free)"
            raise OSError(
                error.errno, f"{os.strerror(error.errno or 0)}: {self._root / name}{free_text}"
            ) from error

    def _path(self, name: str) -> Path:
        return self._root / check_name(name)
