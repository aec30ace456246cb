"""What one subtask of a file sink tells the commit log: an entry per checkpoint, once every subtask has published its files of it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from catalog.filesystem_options import FILE_KINDS, split_suffixes
from engine.connectors.commit_log import Commit, CommitLog, CommittedFile, WrittenAs, committed_file, file_fields, make_new, seal, unseal

_UNDER_WAY = "under-way"
_PART = re.compile(r"(\d{12})-.*\.part")
_OWN = re.compile(r"(?:reached|being-written)-(\d+)-(\d+)")


@dataclass
class _Published:
    """Files of one checkpoint that stand under their names; ``known``: entries of the log up to it name none of them."""

    files: list[CommittedFile] = field(default_factory=list)
    known: int = -1


class SinkCommits:
    """One subtask's share. A single subtask writes entries from memory: what it forgets in a crash is committed again after the restore.

    Several leave what they published, durably, as part files in a directory of their own, and each says up to which checkpoint it has. Whoever finds
    that all have reached a checkpoint writes its entry from the parts and deletes them; two may find it at once, the log takes no file twice. What an
    earlier deployment said of itself is deleted by each subtask before its first barrier, so before anybody can ask.
    """

    def __init__(self, root: Path, written_as: WrittenAs, *, job_id: str, operator_id: str, subtask: int, parallelism: int) -> None:
        self._root = root
        self._written_as = written_as
        self._job_id, self._operator_id = job_id, operator_id
        self._subtask, self._parallelism = subtask, parallelism
        self._owner = hashlib.sha256(f"{job_id}\n{operator_id}".encode()).hexdigest()[:16]
        self._log = CommitLog(root, f"{self._owner}-{subtask}")
        self._parts = self._log.directory / _UNDER_WAY / self._owner
        self._published: dict[int, _Published] = {}

    def start(self) -> None:
        """Forget what an earlier deployment said it had reached, and what it had not finished writing."""
        for path in list(self._parts.iterdir()) if self._parts.is_dir() else ():
            match = _OWN.match(path.name)
            if match and (int(match[1]) == self._subtask or int(match[2]) != self._parallelism):
                path.unlink(missing_ok=True)
        for path in self._log.directory.glob(f".{self._owner}-*.tmp"):  # an entry in whose writing a process was killed
            if int(path.name.split("-")[1]) % self._parallelism == self._subtask:
                path.unlink(missing_ok=True)

    def begin(self) -> int:
        """Have a log before the first file is published; return the number of its last entry."""
        if not self._log.exists:
            self._log.begin(self._written_as, list(_standing(self._root, self._written_as.format)))
        return self._log.last()

    def published(self, checkpoint_id: int, files: list[CommittedFile], known: int) -> None:
        """Take files that were published just now, or before (``known`` -1): they may be named in the log already."""
        if self._parallelism == 1:
            held = self._published.setdefault(checkpoint_id, _Published(known=known))
            held.files += files
            held.known = min(held.known, known)
            return
        self._parts.mkdir(parents=True, exist_ok=True)
        name = hashlib.sha256("\n".join(file.path for file in files).encode()).hexdigest()[:16]
        target = self._parts / f"{checkpoint_id:012d}-{name}.part"
        with contextlib.suppress(FileExistsError):  # a commit that is done again
            make_new(self._own("being-written"), target, seal({"known": known, "files": [file_fields(file) for file in files]}))

    def completed(self, checkpoint_id: int) -> None:
        """Say that everything up to a checkpoint is published; write the entries of those that all subtasks have reached."""
        reached = checkpoint_id
        if self._parallelism > 1:
            self._say_reached(checkpoint_id)
            reached = self._reached_by_all()
        found = {number: held for number, held in self._published.items() if number <= reached}
        parts = self._read_parts(found, reached)
        for number in sorted(found):
            held = found[number]
            files = tuple(sorted({file.path: file for file in held.files}.values(), key=lambda file: file.path))
            self._log.append(Commit(held.known, self._job_id, self._operator_id, number, self._written_as, files))
        for path in parts:
            path.unlink(missing_ok=True)
        self._published = {number: held for number, held in self._published.items() if number > reached}

    def close(self) -> None:
        """Leave nothing that the next deployment does not need."""
        if self._parts.is_dir():
            self._own("reached").unlink(missing_ok=True)
        for directory in (self._parts, self._parts.parent):
            with contextlib.suppress(OSError):  # not empty, or gone
                directory.rmdir()

    def _own(self, what: str, subtask: int | None = None) -> Path:
        """Return a file that a subtask of this deployment alone writes."""
        return self._parts / f"{what}-{self._subtask if subtask is None else subtask}-{self._parallelism}"

    def _say_reached(self, checkpoint_id: int) -> None:
        self._parts.mkdir(parents=True, exist_ok=True)
        staged = self._own("being-written")
        staged.write_text(str(checkpoint_id), encoding="ascii")
        staged.replace(self._own("reached"))

    def _reached_by_all(self) -> int:
        """Return the checkpoint that all subtasks of this deployment have reached, -1 while one has none."""
        reached = []
        for subtask in range(self._parallelism):
            try:
                reached.append(int(self._own("reached", subtask).read_text(encoding="ascii")))
            except FileNotFoundError:
                return -1
        return min(reached)

    def _read_parts(self, found: dict[int, _Published], reached: int) -> list[Path]:
        """Add what part files tell of checkpoints up to one; return them. One that is gone by now was written into the log by another subtask."""
        read = []
        for path in sorted(self._parts.glob("*.part")) if self._parts.is_dir() else ():
            match = _PART.fullmatch(path.name)
            if match is None or int(match[1]) > reached:
                continue
            with contextlib.suppress(FileNotFoundError):
                fields = unseal(path, path.read_bytes())
                held = found.setdefault(int(match[1]), _Published(known=int(fields["known"])))
                held.files += map(committed_file, fields["files"])
                held.known = min(held.known, int(fields["known"]))
                read.append(path)
        return read


def _standing(root: Path, file_format: str) -> Iterable[CommittedFile]:
    """Yield the files of a format that stand in a directory, hidden ones left out, in order."""
    kind = FILE_KINDS.get(file_format, file_format)
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")) or "=" in name)
        for name in sorted(names):
            path = Path(directory) / name
            if not name.startswith((".", "_")) and split_suffixes(name)[0] == kind:
                yield CommittedFile(path.relative_to(root).as_posix(), None, path.stat().st_size, None)
