"""Staged files: written hidden, flushed, then published by one rename each, in an order that survives a
loss of power.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import zlib
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.clock import pause_ms
from penstock.engine.api.sink import Committable
from penstock.engine.connectors.filesystem.commit_log import COMMITS, sync_directory

# hidden: no listing reads it. In the table's directory, so that a rename stays in one file system.
STAGING = ".penstock.staging"
STAGED_SUFFIX = ".inprogress"
_BLOCK_BYTES = 1 << 20
# between two attempts to lock the staging directory alone
_ATTEMPT_MS = 20


class StagedFiles:
    """The staging folders below a table's directory, for one sink operator. It may write and delete in
    ``folder`` only.

    A committable names the ``folder`` where it was staged. Before format 1.4 that was ``former``, a name that
    two jobs may share.
    """

    def __init__(self, root: Path, folder: str, former: str) -> None:
        self.root = root
        self.folder = folder
        self._former = former
        self._staging = root / STAGING
        self._lock: int | None = None

    def open(self) -> None:
        """Let nobody replace the table's directory until ``tidy``: the staged files would go with it."""
        if self._lock is None:
            self._lock = share_staging(self.root)

    def reserve(self, name: str, number: int, reserved: Collection[str]) -> tuple[str, int]:
        """Create an empty staged file ``<name>-<number>`` with a number that is free and not among
        ``reserved``. Return the name and the number.
        """
        while True:
            staged = f"{name}-{number}{STAGED_SUFFIX}"
            try:
                # O_EXCL: of two processes only one gets the name
                if staged not in reserved:
                    os.close(
                        os.open(
                            self.staged(staged), os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666
                        )
                    )
                    return staged, number
            except (
                FileNotFoundError
            ):  # another sink of the table may tidy it away before there is a file in it
                with contextlib.suppress(FileNotFoundError):
                    (self._staging / self.folder).mkdir(parents=True, exist_ok=True)
                continue
            except FileExistsError:
                pass
            number += 1

    @contextlib.contextmanager
    def report_unwritable(self) -> Iterator[None]:
        """Turn an OSError into DAT-4606, which names the directory that cannot be written."""
        try:
            yield
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            hint = "free space there, or check the disk: what is not committed yet is written again"
            message = f"files cannot be written to {self.root}: {why}"
            raise PenstockError(
                "DAT-4606", message, hint=hint, kind=Kind.EXTERNAL, retriable=True, sqlstate="53100"
            ) from error

    def staged(self, name: str, folder: str | None = None) -> Path:
        """Return the path of a staged file."""
        return self._staging / _plain(self.folder if folder is None else folder) / _plain(name)

    def is_own(self, item: Committable) -> bool:
        """Whether a committable was staged in this sink's folder."""
        return self.folder_of(item) == self.folder

    def sync(self) -> None:
        """Flush the staging directory and its parents, so that prepared names survive a power loss."""
        # a new directory is durable only when its parent is flushed
        for directory in (self._staging / self.folder, self._staging, self.root, self.root.parent):
            sync_directory(directory)

    def free_name(self, directory: str, stem: str, suffix: str, number: int) -> tuple[str, int]:
        """Return a free final name below the table's directory, and its number."""
        while (self.root / directory / f"{stem}-{number:04d}{suffix}").exists():
            number += 1
        return f"{directory}/{stem}-{number:04d}{suffix}".lstrip("/"), number

    def publish(self, item: Committable, noted: Callable[[Committable], bool]) -> bool:
        """Rename a staged file to its final name. Return False when that was done before.

        It was done when the final file has the committable's length and checksum. It was also done when the
        file is gone and ``noted`` as published: a reader may have moved it away.

        DAT-4604 when the staged file is gone and nothing records its publication. DAT-4605 when a different
        file has the final name.
        """
        staged, final = item["staged"], item["final"]
        source, target = self.staged(staged, self.folder_of(item)), self.root / final
        # names come from a checkpoint on disk: never write outside the table
        if ".." in Path(final).parts or Path(final).is_absolute():
            raise PenstockError(
                "STA-3502", f"'{final[:100]}' is no name below the table's directory", kind=Kind.EXTERNAL
            )
        # not published yet
        while source.exists() and not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            # a copy of the job publishes it at this moment, or the directory was removed as empty
            with contextlib.suppress(FileNotFoundError):
                source.rename(target)
                return True
        # published before, by this job or by a copy of it
        if target.exists() and _is_prepared(target, item):
            source.unlink(missing_ok=True)
            return False
        # another file has the final name
        if source.exists():
            raise PenstockError(
                "DAT-4605", f"{target} exists already; {staged} is not published over it", kind=Kind.EXTERNAL
            )
        # published, and moved away by a reader since
        if not target.exists() and noted(item):
            return False
        conflict = f", and {final} is another file" if target.exists() else ""
        hint = (
            f"the staged file was deleted by hand, {final} was moved away before {COMMITS} named it, or "
            "the checkpoint is of another directory"
        )
        message = f"prepared file {staged} of {self.root} is gone{conflict}; it cannot be published"
        raise PenstockError("DAT-4604", message, hint=hint, kind=Kind.EXTERNAL)

    def sync_published(self, finals: list[str]) -> None:
        """Flush the directories of published files, up to the table's."""
        directories = {(self.root / final).parent for final in finals}
        directories |= {
            above
            for directory in list(directories)
            for above in directory.parents
            if above.is_relative_to(self.root)
        }
        # deepest first: a directory's entry is durable only once its parent is flushed
        for directory in sorted(directories, key=lambda path: len(path.parts), reverse=True):
            with contextlib.suppress(FileNotFoundError):  # a partition that was moved away whole
                sync_directory(directory)

    def discard(self, staged: str, folder: str | None = None) -> None:
        """Delete a staged file if it exists."""
        self.staged(staged, folder).unlink(missing_ok=True)

    def leftovers(self, folder: str) -> list[str]:
        """Return the names of all staged files of a folder, sorted."""
        directory = self._staging / folder
        return sorted(path.name for path in directory.glob(f"*{STAGED_SUFFIX}")) if directory.is_dir() else []

    def tidy(self, *folders: str) -> None:
        """Remove the folders that are empty, and then the staging directory. ``open`` is over."""
        for folder in (self.folder, self._former, *folders):
            with contextlib.suppress(OSError):  # not empty, or gone
                (self._staging / folder).rmdir()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
        remove_staging(self.root)

    def folder_of(self, item: Committable) -> str:
        """Return the folder where a committable was staged."""
        return str(item.get("folder", self._former))


def share_staging(root: Path) -> int | None:
    """Make the staging directory of a table, and lock it beside other sinks. Return the descriptor that holds
    the lock; None on a file system without locks.
    """
    staging = root / STAGING
    while True:
        staging.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(staging, os.O_RDONLY | os.O_CLOEXEC)
            try:
                # waits while an INSERT OVERWRITE replaces the directory
                fcntl.flock(descriptor, fcntl.LOCK_SH)
            except OSError:
                os.close(descriptor)
                return None
            if _is_still(staging, descriptor):
                return descriptor
            # it was replaced or removed in between
            os.close(descriptor)


@contextlib.contextmanager
def exclusive_staging(root: Path, attempts: int = 1, *, make: bool = False) -> Iterator[bool]:
    """Lock the staging directory of a table against all sinks. Yield whether none has it; while it is locked
    none begins. Whoever else locks it so is done within a few of the ``attempts``. ``make``: where it is not
    there, it is made. Raises OSError.
    """
    descriptor = _locked_alone(root / STAGING, attempts, make)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _locked_alone(staging: Path, attempts: int, make: bool) -> int | None:
    """Return a descriptor that holds the lock of a directory, None where others have it."""
    for number in range(attempts):
        pause_ms(_ATTEMPT_MS if number else 0)
        if make:
            staging.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(staging, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            # another statement has removed it again
            if number + 1 < attempts:
                continue
            raise
        # the lock of a directory that was replaced meanwhile keeps nobody from its successor
        if _is_alone(descriptor) and _is_still(staging, descriptor):
            return descriptor
        os.close(descriptor)
    return None


def remove_staging(root: Path) -> None:
    """Remove an empty staging directory, unless a sink of the table is at work: its lock is on this very
    directory.
    """
    with contextlib.suppress(OSError), exclusive_staging(root) as is_alone:
        if is_alone:
            (root / STAGING).rmdir()


def _is_alone(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # a file system without locks
        return True
    return True


def _is_still(directory: Path, descriptor: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(directory.stat(), os.fstat(descriptor))
    return False


def _is_prepared(target: Path, item: Committable) -> bool:
    """Whether a file has the length and checksum that were prepared; checkpoints of early versions record
    neither.
    """
    if "bytes" not in item or "crc32" not in item:
        return True
    # the length first: it costs nothing
    if target.stat().st_size != item["bytes"]:
        return False
    crc32 = 0
    with target.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            crc32 = zlib.crc32(block, crc32)
    return crc32 == item["crc32"]


def _plain(name: str) -> str:
    """Return a staged name; refuse one that leads out of the staging directory."""
    if Path(name).name != name or name in ("", ".", ".."):
        raise PenstockError("STA-3502", f"'{name[:100]}' is no name of a staged file", kind=Kind.EXTERNAL)
    return name
