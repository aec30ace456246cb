"""The commit log of a table's directory: one small file per committed checkpoint, numbered without gaps. Each
entry names the files it added.

For readers of the log, a file exists once an entry names it. An entry names all files of a checkpoint or
none. Entries are written whole and flushed. A hard link assigns the number; it fails when another writer was
first, so several jobs may write to one directory. Its imports load nothing beyond the standard library.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.storage import sealed_json

COMMITS = ".penstock.commits"
FORMAT, VERSION = "penstock-commits", 1
# twelve digits: names sort as numbers do
_ENTRY = re.compile(r"(\d{12})\.commit")
# two subtasks of a process may write the same entry at one moment, each a file of its own
_WRITES = itertools.count()
# file systems without hard links, or a file with too many
# they fall back to a rename under a lock
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK)


@dataclass(frozen=True)
class CommittedFile:
    """A file below the table's directory. ``rows`` and ``crc32`` are None for a file older than the log."""

    path: str
    rows: int | None
    length: int
    crc32: int | None


@dataclass(frozen=True)
class WrittenAs:
    """How to read the files of a commit.

    ``schema``: an Arrow schema as base64 of IPC. It has all columns in the table's order, after ``op`` where
    ``changes`` is not ``append``. ``partitioned_by``: columns stored in directory names.
    """

    format: str
    schema: str
    partitioned_by: tuple[str, ...] = ()
    changes: str = "append"


@dataclass(frozen=True)
class Commit:
    """One entry: the files that one checkpoint of one sink added. ``number`` counts the commits of the
    directory; entry 0 lists the files older than the log. ``compacted``: the hidden files that were merged.
    """

    number: int
    job_id: str
    operator_id: str
    checkpoint_id: int
    written_as: WrittenAs
    files: tuple[CommittedFile, ...]
    compacted: tuple[CommittedFile, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows in its files, as far as it is known."""
        return sum(file.rows or 0 for file in self.files)


class CommitLog:
    """Reads and appends the log of one directory. ``writer`` is part of the names of its unfinished files, so
    that a successor can recognise them.
    """

    def __init__(self, root: Path, writer: str = "reader") -> None:
        self.directory = root / COMMITS
        self._writer = writer
        self._last = -1

    @property
    def exists(self) -> bool:
        """Whether a sink with a commit log has ever committed here."""
        return self._path(0).exists() or bool(self.numbers())

    def numbers(self) -> list[int]:
        """Return the numbers of all entries, ascending."""
        try:
            names = [path.name for path in self.directory.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(int(match[1]) for name in names if (match := _ENTRY.fullmatch(name)))

    def last(self) -> int:
        """Return the number of the last entry, -1 when there is none. Later calls look only for newer
        entries.
        """
        # the first call lists the directory; later ones only look for the next name
        if self._last < 0:
            self._last = max(self.numbers(), default=-1)
        while self._path(self._last + 1).exists():
            self._last += 1
        return self._last

    def read(self, number: int) -> Commit:
        """Return an entry. DAT-4610 when there is no such entry (any more), DAT-4611 when its seal is broken,
        DAT-4612 when its format is newer.
        """
        try:
            data = self._path(number).read_bytes()
        except FileNotFoundError:
            numbers = self.numbers()
            has = f"there are {numbers[0]} to {numbers[-1]}" if numbers else "there are none"
            message = f"commit {number} of {self.directory.parent} is not there; {has}"
            hint = "what was cleaned away cannot be read again: begin at a commit that is there"
            raise PenstockError(
                "DAT-4610", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="42704"
            ) from None
        return _decoded(self._path(number), number, data)

    def names(self, file: CommittedFile) -> bool:
        """Whether an entry names a file of this length and checksum, also as merged; the newest entries are
        searched first.
        """
        return any(file in entry.files or file in entry.compacted for entry in self.backwards(-1))

    def backwards(self, number: int) -> Iterator[Commit]:
        """Yield the entries above a number, the newest first, as far as they were not cleaned up."""
        return map(self.read, self._backwards(self.last(), number))

    def begin(self, written_as: WrittenAs, files: Sequence[CommittedFile]) -> None:
        """Write entry 0 of a directory without a log: the files already there. If another writer was first,
        its entry stays.
        """
        with contextlib.suppress(FileExistsError):
            self._create(Commit(0, "", "", 0, written_as, tuple(files)))

    def append(self, commit: Commit) -> Commit | None:
        """Append an entry for the files that no entry names yet. Return it, or ``None`` when all files are
        named.

        ``commit.number``: entries up to it are known to name none of the files; -1 when nothing is known.
        """
        files, seen = commit.files, commit.number
        while True:
            last = self.last()
            # drop the files that entries since the last look name: another writer was first
            # newest first: a repeated commit finds its files soon
            for number in self._backwards(last, seen):
                named = {file.path for file in self.read(number).files}
                files = tuple(file for file in files if file.path not in named)
                if not files:
                    return None
            seen = last
            entry = replace(commit, number=last + 1, files=files)
            # another writer took the number: look at its entry and try the next number
            with contextlib.suppress(FileExistsError):
                self._create(entry)
                return entry

    def _backwards(self, last: int, seen: int) -> Iterator[int]:
        """Yield the numbers of entries from ``last`` down to just above ``seen``, or down to the oldest entry
        that was not cleaned up.
        """
        for number in range(last, max(seen, -1), -1):
            if not self._path(number).exists():
                return
            yield number

    def _create(self, commit: Commit) -> None:
        """Write an entry durably under its number; FileExistsError when the number is in use."""
        self.directory.mkdir(parents=True, exist_ok=True)
        target = self._path(commit.number)
        make_new(
            self.directory / f".{self._writer}-{commit.number}-{os.getpid()}-{next(_WRITES)}.tmp",
            target,
            _encoded(commit),
        )

    def _path(self, number: int) -> Path:
        return self.directory / f"{number:012d}.commit"


def make_new(staged: Path, target: Path, data: bytes) -> None:
    """Create a file of these bytes, whole and durable; FileExistsError when the name is in use."""
    with staged.open("wb") as file:
        file.write(data)
        # data first, then the name, then the directory: an entry that has a name is whole after a power loss
        file.flush()
        os.fsync(file.fileno())
    try:
        # a hard link never replaces a file, a rename would
        target.hardlink_to(staged)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_new(staged, target)
    finally:
        staged.unlink(missing_ok=True)
    sync_directory(target.parent)


def _rename_new(staged: Path, target: Path) -> None:
    """Rename a file to a new name on file systems without hard links. A file lock makes the check and the
    rename one step; it ends with its process.
    """
    with (target.parent / ".LOCK").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            raise FileExistsError(target)
        staged.replace(target)


def sync_directory(directory: Path) -> None:
    """Flush a directory's entries to the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def seal(fields: dict[str, Any]) -> bytes:
    """Return the bytes of an entry's or a part's fields."""
    return sealed_json.seal(fields, sealed_json.crc32_line)


def unseal(path: Path, data: bytes) -> dict[str, Any]:
    """Return sealed fields. DAT-4611 when the seal does not match."""
    try:
        return sealed_json.unseal(data, sealed_json.crc32_line)
    except sealed_json.BrokenSealError as cause:
        raise _damaged(path, str(cause)) from cause


def file_fields(file: CommittedFile) -> list[Any]:
    """Return a file as JSON-ready fields."""
    return [file.path, file.rows, file.length, file.crc32]


def committed_file(fields: Sequence[Any]) -> CommittedFile:
    """Return the file of the fields that ``file_fields`` wrote."""
    path, rows, length, crc32 = fields
    return CommittedFile(
        str(path), None if rows is None else int(rows), int(length), None if crc32 is None else int(crc32)
    )


def _encoded(commit: Commit) -> bytes:
    kind = commit.written_as
    return seal(
        {
            "format": FORMAT,
            "version": VERSION,
            "commit": commit.number,
            "job": commit.job_id,
            "operator": commit.operator_id,
            "checkpoint": commit.checkpoint_id,
            "file_format": kind.format,
            "schema": kind.schema,
            "partitioned_by": list(kind.partitioned_by),
            "changes": kind.changes,
            "files": [file_fields(file) for file in commit.files],
            # entries before compaction have no such field
            **({"compacted": [file_fields(file) for file in commit.compacted]} if commit.compacted else {}),
        }
    )


def _decoded(path: Path, number: int, data: bytes) -> Commit:
    fields = unseal(path, data)
    # the seal is right, so another program or version wrote it
    if fields.get("format") != FORMAT or fields.get("version") != VERSION:
        actual = f"{fields.get('format')} {fields.get('version')}"
        message = f"{path} has format {actual}; this penstock reads {FORMAT} {VERSION}"
        raise PenstockError(
            "DAT-4612",
            message,
            hint="read it with the penstock that wrote it, or a newer one",
            kind=Kind.EXTERNAL,
        )
    try:
        kind = WrittenAs(
            str(fields["file_format"]),
            str(fields["schema"]),
            tuple(map(str, fields["partitioned_by"])),
            str(fields["changes"]),
        )
        return Commit(
            number,
            str(fields["job"]),
            str(fields["operator"]),
            int(fields["checkpoint"]),
            kind,
            tuple(map(committed_file, fields["files"])),
            tuple(map(committed_file, fields.get("compacted", ()))),
        )
    except (KeyError, TypeError, ValueError) as cause:
        raise _damaged(path, f"a field is missing or of the wrong kind: {cause}") from cause


def _damaged(path: Path, facts: str) -> PenstockError:
    return PenstockError(
        "DAT-4611", f"commit file {path} is damaged", detail=facts, kind=Kind.EXTERNAL, sqlstate="58030"
    )
