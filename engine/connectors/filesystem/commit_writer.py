"""The commit log's writer for one subtask of a file sink. An entry is written per checkpoint, once every
subtask has published its files.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.catalog.connectors.filesystem import FILE_KINDS, split_suffixes
from penstock.engine.api.sink import Origin, SinkRequest, writer_name
from penstock.engine.connectors.filesystem.commit_log import (
    Commit,
    CommitLog,
    CommittedFile,
    WrittenAs,
    committed_file,
    file_fields,
    make_new,
    seal,
    unseal,
)
from penstock.engine.connectors.filesystem.compaction import Compaction, is_hidden

_UNDER_WAY = "under-way"
# <checkpoint>-<digest of its files>.part
_PART = re.compile(r"(\d{12})-.*\.part")
# <what>-<subtask>-<parallelism>: another parallelism is another deployment
_OWN = re.compile(r"(?:reached|being-written)-(\d+)-(\d+)")


@dataclass
class _Published:
    """Published files of one checkpoint. ``known``: the log's entries up to this number name none of them."""

    files: list[CommittedFile] = field(default_factory=list)
    known: int = -1


class SinkCommits:
    """The commits of one subtask. A single subtask builds entries in memory: after a crash the restored job
    commits again.

    Files are recorded durably in two cases: several subtasks publish, or a commit is repeated after a
    restore. They are recorded as part files in a directory of the operator. Each subtask also records the
    checkpoint it has reached.

    The subtask that sees that all have reached a checkpoint writes its entry from the parts and deletes them.
    Two may do so at once: the log adds no file twice. Each subtask deletes the records of an earlier
    deployment before its first barrier, so no one reads stale ones.

    Where files are to be merged they are hidden until then: the same subtask has ``compaction`` publish them.

    Part files of the job this one started from (or of its former query) are adopted, up to the checkpoint
    this job begins with.
    """

    def __init__(
        self, root: Path, written_as: WrittenAs, request: SinkRequest, compaction: Compaction
    ) -> None:
        self._root = root
        self._compaction = compaction
        self._metrics = request.metrics
        self._written_as = written_as
        self._job_id, self._operator_id = request.job_id, request.operator_id
        self._subtask, self._parallelism = request.subtask, request.parallelism
        self._owner, self._origin = writer_name(request.owner, request.operator_id), request.origin
        self._former_is_own = request.origin is not None and request.origin.owner == request.owner
        self._log = CommitLog(root, f"{self._owner}-{request.subtask}")
        self._parts = self._log.directory / _UNDER_WAY / self._owner
        # by checkpoint; only a single subtask uses it
        self._published: dict[int, _Published] = {}

    def start(self) -> None:
        """Delete the checkpoints an earlier deployment recorded, and its unfinished files."""
        for path in list(self._parts.iterdir()) if self._parts.is_dir() else ():
            match = _OWN.match(path.name)
            # a stale record would let an entry be written before all subtasks have published
            if match and (int(match[1]) == self._subtask or int(match[2]) != self._parallelism):
                path.unlink(missing_ok=True)
        # an entry in whose writing a process was killed
        for path in self._log.directory.glob(f".{self._owner}-*.tmp"):
            # files of a lost subtask fall to the one with its remainder
            if int(path.name.split("-")[1]) % self._parallelism == self._subtask:
                path.unlink(missing_ok=True)
        if self._origin is not None and self._subtask == 0:
            self._take_over(self._origin)

    def _take_over(self, origin: Origin) -> None:
        """Copy another writer's part files up to the checkpoint this job begins with. Those of another job
        are not deleted: it may still run.
        """
        former = self._parts_of(origin)
        # the same sink, or a former job without part files
        if former == self._parts or not former.is_dir():
            return
        by_checkpoint: dict[int, _Published] = {}
        self._read_parts(by_checkpoint, origin.checkpoint_id, former)
        for number, record in by_checkpoint.items():
            self._write_part(number, record)
        if self._former_is_own:
            shutil.rmtree(former, ignore_errors=True)

    def _parts_of(self, origin: Origin) -> Path:
        return self._parts.parent / writer_name(origin.owner, origin.operator_id)

    def begin(self) -> int:
        """Create the log before the first file is published; return the number of its last entry."""
        if not self._log.exists:
            self._log.begin(self._written_as, list(_standing(self._root, self._written_as.format)))
        return self._log.last()

    def notes(self, file: CommittedFile) -> bool:
        """Whether the log, part files of this job or its origin, or an intent to merge name a file as
        published.

        The parts of the origin are read first, then the own parts, then the log: a file leaves one only after
        the next names it.
        """
        by_checkpoint: dict[int, _Published] = {}
        for parts in () if self._origin is None else (self._parts_of(self._origin), self._parts):
            self._read_parts(by_checkpoint, sys.maxsize, parts)
        if any(file in record.files for record in by_checkpoint.values()):
            return True
        # in this order: an intent goes once the log has its files
        return (is_hidden(file.path) and self._compaction.intends(file)) or self._log.names(file)

    def published(self, checkpoint_id: int, files: list[CommittedFile], known: int) -> None:
        """Record published files. ``known`` is -1 when some were published earlier: the log may already name
        them.
        """
        # durably, when other subtasks publish too, or when a restored job commits again
        if self._parallelism > 1 or (
            self._origin is not None and checkpoint_id <= self._origin.checkpoint_id
        ):
            self._write_part(checkpoint_id, _Published(files, known))
            return
        record = self._published.setdefault(checkpoint_id, _Published(known=known))
        record.files += files
        record.known = min(record.known, known)

    def _write_part(self, checkpoint_id: int, record: _Published) -> None:
        # the same files have the same name: a repeated commit finds its part
        name = hashlib.sha256("\n".join(file.path for file in record.files).encode()).hexdigest()[:16]
        target = self._parts / f"{checkpoint_id:012d}-{name}.part"
        data = seal({"known": record.known, "files": [file_fields(file) for file in record.files]})
        with contextlib.suppress(FileExistsError):  # a commit that is done again
            self._in_parts(lambda: make_new(self._subtask_file("being-written"), target, data))

    def _in_parts(self, write: Callable[[], None]) -> None:
        """Write a file into the directory of parts, and retry when it vanishes: another subtask that ends
        removes the directory while it is empty.
        """
        while True:
            with contextlib.suppress(FileNotFoundError):
                self._parts.mkdir(parents=True, exist_ok=True)
                return write()

    def completed(self, checkpoint_id: int) -> None:
        """Record that everything up to a checkpoint is published. Write the entries of the checkpoints that
        all subtasks have reached.
        """
        # with one subtask it is the last to publish
        reached = checkpoint_id
        if self._parallelism > 1:
            self._record_checkpoint(checkpoint_id)
            reached = self._completed_checkpoint()
        by_checkpoint = {number: record for number, record in self._published.items() if number <= reached}
        parts = self._read_parts(by_checkpoint, reached, self._parts)
        for number in sorted(by_checkpoint):
            record = by_checkpoint[number]
            files = tuple(
                # a file in two parts (a commit that was repeated) is named once
                sorted({file.path: file for file in record.files}.values(), key=lambda file: file.path)
            )
            commit = Commit(record.known, self._job_id, self._operator_id, number, self._written_as, files)
            self._append(commit)
        # only after their entry is in the log
        for path in parts:
            path.unlink(missing_ok=True)
        self._published = {number: record for number, record in self._published.items() if number > reached}

    def _append(self, commit: Commit) -> None:
        """Log the files of a checkpoint; those that are hidden are merged and published first."""
        hidden = tuple(file for file in commit.files if is_hidden(file.path))
        published = tuple(file for file in commit.files if not is_hidden(file.path))
        if hidden:
            self._metrics.count("files_committed", self._compaction.commit(replace(commit, files=hidden)))
        # a checkpoint has files of both kinds when auto-compaction was changed behind it
        if published:
            self._log.append(replace(commit, files=published))

    def close(self) -> None:
        """Delete this deployment's records that the next one does not need."""
        if self._parts.is_dir():
            self._subtask_file("reached").unlink(missing_ok=True)
        for directory in (self._parts, self._parts.parent):
            with contextlib.suppress(OSError):  # not empty, or gone
                directory.rmdir()

    def _subtask_file(self, what: str, subtask: int | None = None) -> Path:
        """Return a file that only one subtask of this deployment writes."""
        return self._parts / f"{what}-{self._subtask if subtask is None else subtask}-{self._parallelism}"

    def _record_checkpoint(self, checkpoint_id: int) -> None:
        staged = self._subtask_file("being-written")

        def write() -> None:
            staged.write_text(str(checkpoint_id), encoding="ascii")
            # by rename: a reader sees the old number or the new one
            staged.replace(self._subtask_file("reached"))

        self._in_parts(write)

    def _completed_checkpoint(self) -> int:
        """Return the checkpoint that all subtasks of this deployment have recorded, -1 while one has none."""
        reached = []
        for subtask in range(self._parallelism):
            try:
                reached.append(int(self._subtask_file("reached", subtask).read_text(encoding="ascii")))
            except FileNotFoundError:
                return -1
        return min(reached)

    def _read_parts(self, by_checkpoint: dict[int, _Published], reached: int, parts: Path) -> list[Path]:
        """Add the contents of part files up to a checkpoint and return their paths. A part that has vanished
        is already in the log, by another subtask.
        """
        read = []
        for path in sorted(parts.glob("*.part")) if parts.is_dir() else ():
            match = _PART.fullmatch(path.name)
            if match is None or int(match[1]) > reached:
                continue
            with contextlib.suppress(FileNotFoundError):
                fields = unseal(path, path.read_bytes())
                record = by_checkpoint.setdefault(int(match[1]), _Published(known=int(fields["known"])))
                record.files += map(committed_file, fields["files"])
                record.known = min(record.known, int(fields["known"]))
                read.append(path)
        return read


def _standing(root: Path, file_format: str) -> Iterable[CommittedFile]:
    """Yield the files of a format in a directory, in order and without hidden ones."""
    kind = FILE_KINDS.get(file_format, file_format)
    for directory, folders, names in os.walk(root):
        # _a=1 is a partition of column _a, not a hidden directory
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")) or "=" in name)
        for name in sorted(names):
            path = Path(directory) / name
            if not name.startswith((".", "_")) and split_suffixes(name)[0] == kind:
                yield CommittedFile(path.relative_to(root).as_posix(), None, path.stat().st_size, None)
