"""INSERT OVERWRITE of a table of files: rows are written to a hidden directory, which then replaces the old
one in a single step of the file system.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from penstock.catalog.connectors.filesystem import FILE_KINDS, split_suffixes
from penstock.catalog.connectors.registry import file_format
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.tables import CatalogTable
from penstock.catalog.types import to_arrow
from penstock.engine.connectors.filesystem.commit_log import COMMITS, sync_directory
from penstock.engine.connectors.filesystem.partition_paths import partition_directory
from penstock.engine.connectors.filesystem.sink import table_directory
from penstock.engine.connectors.filesystem.staged_files import (
    STAGED_SUFFIX,
    STAGING,
    exclusive_staging,
    remove_staging,
)
from penstock.engine.connectors.row_replacement.replaced_table import other_version
from penstock.engine.storage.locked_directory import (
    delete_abandoned,
    locked,
    locked_directory,
    named_directories,
)

_MARK = ".penstock.overwrite-"
_REPLACED_LOG = ".replaced-commits"
_INTENT = ".intent.json"
_STATE = ".penstock.state"
# to find no job that writes to the table: one that has just ended may be closing its files
_ATTEMPTS = 100
# of renameat2 (Linux) and renamex_np (macOS): the two names change places
_EXCHANGE = 2


class ReplacementDirectory:
    """The hidden directory beside a table's files that an INSERT writes to. ``publish`` replaces.

    Without partitions the whole directory of the table is replaced. With partitions each of those that has
    new rows is, one after the other, and one that ``constants`` name whole also when it has none. A directory
    is old or new at every moment, also if the process dies. An intent is written before the first of them is
    replaced: ``finish_interrupted`` then replaces the others. What a process has left that died before is
    deleted by the next INSERT OVERWRITE.

    ``whole``: a table in partitions is replaced as one without. ``read``: the version of the files that the
    rows were computed from, True for that of now; DAT-4618 when the files are others at the end.
    """

    def __init__(
        self,
        table: CatalogTable,
        constants: Mapping[str, str],
        *,
        whole: bool = False,
        read: int | str | bool | None = None,
    ) -> None:
        self._table = table
        self._by_partition = bool(table.partitioned_by) and not whole
        self._root = table_directory(table).resolve()
        self._kind = FILE_KINDS.get(file_format(table) or "", file_format(table) or "")
        self._emptied = _named_partition(table, constants)
        within, prefix = self._root.parent, f".{self._root.name}{_MARK}"
        if self._by_partition:
            within, prefix = self._root, _MARK
        try:
            within.mkdir(parents=True, exist_ok=True)
            if table.partitioned_by:
                finish_interrupted(table)
            delete_abandoned(within, prefix)
            # before the query runs; its end looks again
            with self._without_writers():
                self._read = files_version(self._root) if read is True else read
            self.path, lock = locked_directory(within, prefix)
            self.path.chmod(0o777 & ~_umask())
        except OSError as error:
            raise _trouble(self._root, error) from error
        self._lock: int | None = lock

    @property
    def table(self) -> CatalogTable:
        """The table with its files in this directory."""
        return replace(self._table, options={**self._table.options, "path": str(self.path)})

    @property
    def state_dir(self) -> Path:
        """Where the job's state may lie until its end."""
        return self.path / _STATE

    def publish(self) -> None:
        """Replace the old files. DAT-4615 when other files are among them: then nothing is replaced."""
        try:
            self._publish()
        except OSError as error:
            raise _trouble(self._root, error) from error
        finally:
            self.discard()

    def discard(self) -> None:
        """Delete the directory: rows that were not published, or the old files. One with an intent stays."""
        if not (self.path / _INTENT).exists():
            shutil.rmtree(self.path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _publish(self) -> None:
        shutil.rmtree(self.state_dir, ignore_errors=True)
        with self._without_writers():
            if self._read is not None and files_version(self._root) != self._read:
                raise other_version(str(self._root))
            self._replace()

    def _replace(self) -> None:
        if not self._by_partition:
            self._refuse_others(self._root)
            self._keep_staged()
            _put(self.path, self._root)
            return
        partitions = list(_directories(self.path, len(self._table.partitioned_by)))
        if self._emptied is not None and self._emptied not in partitions:
            partitions.append(self._emptied)
            (self.path / self._emptied).mkdir(parents=True)
        for partition in partitions:
            self._refuse_others(self._root / partition)
        self._try_exchange()
        _write_intent(self.path, partitions)
        _carry_out(self.path, self._root)

    @contextlib.contextmanager
    def _without_writers(self) -> Iterator[None]:
        """Let no job begin to write to the table. DAT-4617 when one does: what it has staged would be lost,
        and its checkpoints could never be resumed.
        """
        try:
            with exclusive_staging(self._root, _ATTEMPTS, make=True) as is_alone:
                if not is_alone:
                    raise PenstockError(
                        "DAT-4617",
                        f"a job writes to {self._root}, and cannot while its rows are replaced",
                        hint="stop that job first; started again it continues beside the new rows",
                        kind=Kind.USER,
                        sqlstate="55006",
                    )
                yield
        finally:
            remove_staging(self._root)

    def _keep_staged(self) -> None:
        """Link what jobs have staged that were killed: they publish it when they are resumed."""
        for staged in sorted((self._root / STAGING).glob(f"*/*{STAGED_SUFFIX}")):
            kept = self.path / staged.relative_to(self._root)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.hardlink_to(staged)

    def _try_exchange(self) -> None:
        """Raise DAT-4616 where the file system exchanges no names: an intent could never be carried out."""
        first, second = self.path / ".first", self.path / ".second"
        first.mkdir()
        second.mkdir()
        if (cause := _swap(first, second)) is not None:
            raise _not_exchanged(self._root, cause) from cause

    def _refuse_others(self, directory: Path) -> None:
        """Refuse to delete what is no file of the table: DAT-4615."""
        for place, folders, names in os.walk(directory):
            folders[:] = [name for name in folders if not name.startswith(".penstock.")]
            for name in names:
                if not name.startswith((".", "_")) and split_suffixes(name)[0] != self._kind:
                    raise PenstockError(
                        "DAT-4615",
                        f"{Path(place) / name} is no file of table {self._table.name}, and would be deleted",
                        hint="move it out of the table's directory",
                        kind=Kind.USER,
                        sqlstate="55000",
                    )


def files_version(root: Path) -> str:
    """Return a text that tells the files of a directory from others: names, sizes, times and inodes."""
    found = []
    for place, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            if not name.startswith((".", "_")):
                facts = (Path(place) / name).stat()
                found.append((place, name, facts.st_size, facts.st_mtime_ns, facts.st_ino))
    return hashlib.sha256(repr(sorted(found)).encode()).hexdigest()


def finish_interrupted(table: CatalogTable) -> None:
    """Finish what an INSERT OVERWRITE of partitions had begun when its process died or its disk failed.

    It is called before a job writes to the table: the commit log may be gone until then. DAT-4603.
    """
    root = table_directory(table).resolve()
    try:
        for path in named_directories(root, _MARK) if root.is_dir() else ():
            if not (path / _INTENT).exists():
                continue
            # None: its process is alive
            lock = locked(path)
            if lock is None:
                continue
            try:
                _carry_out(path, root)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(lock)
    except OSError as error:
        raise _trouble(root, error) from error


def _write_intent(staged: Path, partitions: Sequence[str]) -> None:
    """Write which directories get which names, durably and whole. A directory is known by its inode."""
    inodes = {partition: (staged / partition).stat().st_ino for partition in partitions}
    unfinished = staged / f"{_INTENT}.inprogress"
    with unfinished.open("w", encoding="utf-8") as file:
        json.dump(inodes, file)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(staged / _INTENT)
    sync_directory(staged)


def _carry_out(staged: Path, root: Path) -> None:
    """Do what is left of an intent, and delete it."""
    intent = staged / _INTENT
    inodes = json.loads(intent.read_text(encoding="utf-8"))
    # the log names files that are replaced; the table's next INSERT begins another with those that stand
    if (root / COMMITS).exists():
        (root / COMMITS).rename(staged / _REPLACED_LOG)
        sync_directory(root)
    for partition, inode in inodes.items():
        target = root / partition
        # replaced before the process died
        if not target.exists() or target.stat().st_ino != inode:
            _put(staged / partition, target)
    intent.unlink()
    sync_directory(staged)


def _named_partition(table: CatalogTable, constants: Mapping[str, str]) -> str | None:
    """Return the directory of a partition that constants name whole, None for fewer of them."""
    names = table.partitioned_by
    if not names or any(name.lower() not in constants for name in names):
        return None
    types = {field.name.lower(): to_arrow(field.type) for field in table.physical_fields}
    values = [pa.array([constants[name.lower()]]).cast(types[name.lower()]) for name in names]
    return partition_directory(names, values)


def _directories(root: Path, depth: int) -> Iterator[str]:
    """Yield the partition directories of a depth, in order."""
    for entry in sorted(root.iterdir()):
        if entry.is_dir() and "=" in entry.name:
            below = _directories(entry, depth - 1) if depth > 1 else ("",)
            yield from (f"{entry.name}/{rest}".rstrip("/") for rest in below)


def _put(staged: Path, target: Path) -> None:
    """Give a staged directory its name; the one that had it gets the staged name."""
    if target.exists():
        exchange(staged, target)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        staged.rename(target)
    sync_directory(target.parent)


def exchange(first: Path, second: Path) -> None:
    """Let two directories change their names, in one step. DAT-4616 where the file system cannot."""
    if (cause := _swap(first, second)) is not None:
        raise _not_exchanged(second, cause) from cause


def _swap(first: Path, second: Path) -> OSError | None:
    """Exchange two names; return why the system cannot."""
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(first), os.fsencode(second)
    if sys.platform == "darwin":
        failed = library.renamex_np(*names, _EXCHANGE)
    else:
        at_working_directory = -100
        failed = library.renameat2(at_working_directory, names[0], at_working_directory, names[1], _EXCHANGE)
    return OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno())) if failed else None


def _not_exchanged(place: Path, cause: OSError) -> PenstockError:
    return PenstockError(
        "DAT-4616",
        f"{place} cannot be replaced in one step: {cause.strerror}",
        hint="write to a directory of a local file system, such as ext4 or xfs",
        kind=Kind.EXTERNAL,
        sqlstate="58030",
    )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _trouble(root: Path, error: OSError) -> PenstockError:
    return PenstockError(
        "DAT-4603",
        f"{root} cannot be overwritten: {error.strerror}",
        hint="give another path, or permission; what was begun is finished by the table's next INSERT",
        kind=Kind.EXTERNAL,
        sqlstate="58030",
    )
