"""Compaction of a file sink: the small files of one checkpoint are merged before any reader sees them.

A checkpoint's files are first moved to hidden names. Once all subtasks have moved theirs, one of them merges
the files of each partition and publishes the result. As in Flink, files of different checkpoints are never
merged, so what a reader has seen never changes.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.connectors.filesystem.commit_log import (
    Commit,
    CommitLog,
    CommittedFile,
    WrittenAs,
    committed_file,
    file_fields,
    make_new,
    seal,
    sync_directory,
    unseal,
)
from penstock.engine.connectors.filesystem.staged_files import STAGING
from penstock.engine.formats.file_merging import MergeTask, merge_files

# in a staging folder: the files of checkpoints under the names they would have without compaction
_UNCOMPACTED = "uncompacted"
_MERGED = ".compacting"
_INTENT = ".intent"
_UNFINISHED = ".unfinished"
# two subtasks of a process may merge at one moment, each into files of its own
_MERGES = itertools.count()


@dataclass(frozen=True)
class _Output:
    """A file to publish: ``staged`` is its path below the table's directory until then."""

    staged: str
    file: CommittedFile


class Compaction:
    """Merges and publishes the files of one sink operator. ``folder`` is its staging folder, ``names`` are
    the beginning and the suffix of its files' names.

    The steps are done under a lock of the table's directory, which all its jobs share. Before the first file
    is published, an intent is written: the merged files, the entry of the commit log, and the files merged. A
    process may die at any step. Whoever has the lock next finishes the intents it finds, of any job.
    """

    def __init__(
        self,
        root: Path,
        folder: str,
        subtask: int,
        names: tuple[str, str],
        target_bytes: int,
        task: MergeTask,
    ) -> None:
        self._root = root
        self._folder = folder
        self._stem, self._suffix = names
        self._target_bytes = target_bytes
        self._task = task
        self._log = CommitLog(root, f"{folder}-{subtask}")

    def commit(self, commit: Commit) -> int:
        """Merge and publish the hidden files of a checkpoint, and log them. Files that are logged already are
        left out. Return how many files were published.
        """
        with self._locked():
            self._finish_intents()
            named = self._compacted_since(commit.number, commit.files)
            files = [file for file in commit.files if file not in named]
            self._delete([file.path for file in commit.files if file in named])
            if not files:
                return 0
            outputs = self._merge(commit.checkpoint_id, files)
            entry = replace(commit, files=tuple(output.file for output in outputs), compacted=tuple(files))
            self._write_intent(entry, outputs)
            self._publish(entry, outputs)
            return len(outputs)

    def intends(self, file: CommittedFile) -> bool:
        """Whether an intent names a hidden file: it may be gone before the log names it."""
        return any(file in entry.compacted for _, entry, _ in self._intents())

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the table's directory; it ends with its process."""
        descriptor = os.open(self._log.directory, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _compacted_since(self, number: int, files: Sequence[CommittedFile]) -> set[CommittedFile]:
        """Return those of some files that entries of the log above a number name as merged."""
        wanted, found = set(files), set()
        for entry in self._log.backwards(number):
            found |= wanted.intersection(entry.compacted)
        return found

    def _merge(self, checkpoint_id: int, files: list[CommittedFile]) -> list[_Output]:
        """Merge files of a partition up to the target size; a file that is alone is published as it is."""
        # of a merge whose process died: no intent names it
        for path in (*self._staging.glob(f"*{_MERGED}"), *self._log.directory.glob(f".*{_UNFINISHED}")):
            path.unlink(missing_ok=True)
        self._staging.mkdir(parents=True, exist_ok=True)
        outputs: list[_Output] = []
        for directory, parts in self._bins(files):
            final = self._free_name(directory, checkpoint_id, len(outputs))
            if len(parts) == 1:
                outputs.append(_Output(parts[0].path, replace(parts[0], path=final)))
                continue
            merged = self._staging / f"{os.getpid()}-{next(_MERGES)}{_MERGED}"
            written = merge_files(self._task, [self._root / part.path for part in parts], merged)
            rows = [part.rows for part in parts if part.rows is not None]
            file = CommittedFile(final, sum(rows), written.length, written.crc32)
            outputs.append(_Output(merged.relative_to(self._root).as_posix(), file))
        return outputs

    def _bins(self, files: list[CommittedFile]) -> Iterator[tuple[str, list[CommittedFile]]]:
        """Yield (directory, files that become one), in the order of their paths."""
        by_directory: dict[str, list[CommittedFile]] = {}
        for file in sorted(files, key=lambda file: file.path):
            by_directory.setdefault(_directory_of(file.path), []).append(file)
        for directory, members in by_directory.items():
            gathered: list[CommittedFile] = []
            size = 0
            for file in members:
                # never above the target, but for a file that is larger by itself
                if gathered and size + file.length > self._target_bytes:
                    yield directory, gathered
                    gathered, size = [], 0
                gathered.append(file)
                size += file.length
            yield directory, gathered

    def _free_name(self, directory: str, checkpoint_id: int, number: int) -> str:
        while True:
            # no name that a subtask's file has: that would be looked for at a restore
            name = f"{self._stem}-merged-{checkpoint_id:06d}-{self._folder}-{number:04d}{self._suffix}"
            path = f"{directory}/{name}".lstrip("/")
            if not (self._root / path).exists():
                return path
            number += 1

    def _write_intent(self, entry: Commit, outputs: list[_Output]) -> None:
        sync_directory(self._staging)
        kind = entry.written_as
        fields = {
            "known": entry.number,
            "job": entry.job_id,
            "operator": entry.operator_id,
            "checkpoint": entry.checkpoint_id,
            "written_as": [kind.format, kind.schema, list(kind.partitioned_by), kind.changes],
            "outputs": [[output.staged, file_fields(output.file)] for output in outputs],
            "compacted": [file_fields(file) for file in entry.compacted],
        }
        path = self._intent(entry.checkpoint_id)
        make_new(path.with_suffix(_UNFINISHED), path, seal(fields))

    def _intent(self, checkpoint_id: int) -> Path:
        return self._log.directory / f".{self._folder}-{checkpoint_id:012d}{_INTENT}"

    def _finish_intents(self) -> None:
        """Finish what processes that died under the lock had begun to publish, whatever their job."""
        for path, entry, outputs in self._intents():
            self._publish(entry, outputs, path)

    def _intents(self) -> Iterator[tuple[Path, Commit, list[_Output]]]:
        for path in sorted(self._log.directory.glob(f".*{_INTENT}")):
            # another process has finished it at this moment
            with contextlib.suppress(FileNotFoundError):
                fields = unseal(path, path.read_bytes())
                form, schema, partitioned_by, changes = fields["written_as"]
                outputs = [_Output(staged, committed_file(file)) for staged, file in fields["outputs"]]
                entry = Commit(
                    int(fields["known"]),
                    str(fields["job"]),
                    str(fields["operator"]),
                    int(fields["checkpoint"]),
                    WrittenAs(form, schema, tuple(partitioned_by), changes),
                    tuple(output.file for output in outputs),
                    tuple(map(committed_file, fields["compacted"])),
                )
                yield path, entry, outputs

    def _publish(self, entry: Commit, outputs: list[_Output], intent: Path | None = None) -> None:
        """Do what an intent says; every step may have been done before."""
        for output in outputs:
            source, target = _below(self._root, output.staged), _below(self._root, output.file.path)
            # gone: it was published, and perhaps moved away by a reader since
            if source.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                source.rename(target)
        self._sync(outputs)
        self._log.append(entry)
        # only now: a commit that is repeated looks for these files, then into the log
        self._delete([file.path for file in entry.compacted])
        (intent or self._intent(entry.checkpoint_id)).unlink(missing_ok=True)

    def _sync(self, outputs: list[_Output]) -> None:
        """Flush the directories of published files and those above, up to the table's."""
        directories = {
            above
            for output in outputs
            for above in (self._root / output.file.path).parents
            if above.is_relative_to(self._root)
        }
        # deepest first: a directory's entry is durable only once its parent is flushed
        for directory in sorted(directories, key=lambda path: len(path.parts), reverse=True):
            with contextlib.suppress(FileNotFoundError):  # a partition that was moved away whole
                sync_directory(directory)

    def _delete(self, paths: list[str]) -> None:
        for path in paths:
            _below(self._root, path).unlink(missing_ok=True)
        # directories of partitions, from the deepest; one that is used again meanwhile is made again
        above = {folder for path in paths for folder in Path(path).parents if _UNCOMPACTED in folder.parts}
        for folder in sorted(above, key=lambda folder: len(folder.parts), reverse=True):
            with contextlib.suppress(OSError):
                (self._root / folder).rmdir()

    @property
    def _staging(self) -> Path:
        return self._root / STAGING / self._folder


def hidden_path(folder: str, final: str) -> str:
    """Return where a file is until it is merged. The name does not depend on who commits it: a job and its
    copy may both do so.
    """
    return f"{STAGING}/{folder}/{_UNCOMPACTED}/{final}"


def is_hidden(path: str) -> bool:
    """Whether a committed file is still to be merged."""
    return path.startswith(f"{STAGING}/")


def _directory_of(hidden: str) -> str:
    """Return the directory that a hidden file's rows belong to, relative to the table's."""
    # .penstock.staging/<folder>/uncompacted/<directory>/<name>
    return "/".join(hidden.split("/")[3:-1])


def _below(root: Path, name: str) -> Path:
    """Return a path below the table's directory; refuse one that leads out of it."""
    # names come from files on disk: never write outside the table
    if ".." in Path(name).parts or Path(name).is_absolute():
        raise PenstockError(
            "STA-3502", f"'{name[:100]}' is no name below the table's directory", kind=Kind.EXTERNAL
        )
    return root / name
