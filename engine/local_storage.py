"""Storage in a local directory."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from catalog.errors import Kind, PenstockError
from engine.failpoints import failpoint
from engine.storage import check_name, locked

LOCK = "LOCK"


class LocalStorage:
    """A directory on a local disk; made with its parents when missing (STA-3030 where that cannot be)."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._open: dict[str, int] = {}
        self._lock: int | None = None
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"state cannot be kept in {root}: {(error.strerror or str(error)).lower()}"
            hint = "--state and execution.checkpointing.dir take a directory, made when it is missing"
            raise PenstockError("STA-3030", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="58030") from error

    def __str__(self) -> str:
        return str(self._root)

    def create(self, name: str) -> None:
        self._open[name] = os.open(self._path(name), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def append(self, name: str, data: bytes) -> None:
        view = memoryview(data)
        while view:  # a write may be short
            view = view[os.write(self._open[name], view) :]

    def sync(self, name: str) -> None:
        descriptor = self._open.pop(name)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def sync_directory(self) -> None:
        descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def publish(self, name: str, target: str) -> None:
        self._path(name).replace(self._path(target))
        failpoint("C9")
        self.sync_directory()

    def list(self) -> list[str]:
        return sorted(entry.name for entry in os.scandir(self._root) if entry.is_file(follow_symlinks=False) and entry.name != LOCK)

    def delete(self, name: str) -> None:
        if name in self._open:
            os.close(self._open.pop(name))
        self._path(name).unlink(missing_ok=True)

    def size(self, name: str) -> int:
        return self._path(name).stat(follow_symlinks=False).st_size

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        descriptor = os.open(self._path(name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            file.seek(offset)
            return file.read() if length is None else file.read(length)

    def lock(self) -> None:
        descriptor = os.open(self._root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as cause:
            os.close(descriptor)
            if cause.errno in (errno.EACCES, errno.EAGAIN):
                raise locked(str(self._root)) from cause
            raise
        self._lock = descriptor

    def close(self) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open = {}
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _path(self, name: str) -> Path:
        return self._root / check_name(name)
