"""Staged files: written hidden, flushed, then published by one rename each, in an order that survives a loss of power."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from catalog.errors import Kind, PenstockError
from engine.connectors.commit_log import sync_directory

STAGING = ".penstock.staging"
STAGED_SUFFIX = ".inprogress"


class StagedFiles:
    """The staging directory of one sink operator below its table's directory. Names given out and taken are relative to these two."""

    def __init__(self, root: Path, owner: str) -> None:
        self.root = root
        self._staging = root / STAGING / owner

    def reserve(self, name: str, number: int, taken: Collection[str]) -> tuple[str, int]:
        """Return a staged name nobody has and that is none of those ``taken``, ``<name>-<number>`` with the number counted up, and that number."""
        self._staging.mkdir(parents=True, exist_ok=True)
        while f"{name}-{number}{STAGED_SUFFIX}" in taken or (self._staging / f"{name}-{number}{STAGED_SUFFIX}").exists():
            number += 1
        return f"{name}-{number}{STAGED_SUFFIX}", number

    @contextlib.contextmanager
    def told(self) -> Iterator[None]:
        """Let an error of the system say which directory cannot be written: DAT-4606."""
        try:
            yield
        except OSError as error:
            why = os.strerror(error.errno) if error.errno else str(error)
            hint = "make room there, or see to the disk: what is not committed yet is written again"
            message = f"files cannot be written to {self.root}: {why}"
            raise PenstockError("DAT-4606", message, hint=hint, kind=Kind.EXTERNAL, retriable=True, sqlstate="53100") from error

    def staged(self, name: str) -> Path:
        """Return where a staged file is."""
        return self._staging / _plain(name)

    def sync(self) -> None:
        """Flush the staging directory and those above it, so that prepared names outlive a loss of power."""
        for directory in (self._staging, self._staging.parent, self.root, self.root.parent):
            sync_directory(directory)

    def free_name(self, directory: str, stem: str, suffix: str, number: int) -> tuple[str, int]:
        """Return a final name below the table's directory that no file has, and its number."""
        while (self.root / directory / f"{stem}-{number:04d}{suffix}").exists():
            number += 1
        return f"{directory}/{stem}-{number:04d}{suffix}".lstrip("/"), number

    def publish(self, staged: str, final: str) -> bool:
        """Give a staged file its final name; False when that was done before. DAT-4604 when the file is nowhere."""
        source, target = self.staged(staged), self.root / final
        if ".." in Path(final).parts or Path(final).is_absolute():
            raise PenstockError("STA-3502", f"'{final[:100]}' is no name below the table's directory", kind=Kind.EXTERNAL)
        if not source.exists():
            if target.exists():
                return False
            hint = "the staged file was deleted by hand, or the checkpoint is of another directory"
            raise PenstockError("DAT-4604", f"prepared file {staged} of {self.root} is gone; it cannot be published", hint=hint, kind=Kind.EXTERNAL)
        if target.exists():
            raise PenstockError("DAT-4605", f"{target} exists already; {staged} is not published over it", kind=Kind.EXTERNAL)
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        return True

    def sync_published(self, finals: list[str]) -> None:
        """Flush the directories published files stand in, up to the table's."""
        directories = {(self.root / final).parent for final in finals}
        directories |= {above for directory in list(directories) for above in directory.parents if above.is_relative_to(self.root)}
        for directory in sorted(directories, key=lambda path: len(path.parts), reverse=True):
            sync_directory(directory)

    def discard(self, staged: str) -> None:
        """Delete a staged file if it is there."""
        self.staged(staged).unlink(missing_ok=True)

    def leftovers(self) -> list[str]:
        """Return the names of all staged files of this operator, sorted."""
        return sorted(path.name for path in self._staging.glob(f"*{STAGED_SUFFIX}")) if self._staging.is_dir() else []

    def tidy(self) -> None:
        """Remove the staging directories that are empty."""
        for directory in (self._staging, self._staging.parent):
            try:
                directory.rmdir()
            except OSError:  # not empty, or gone: another sink of the table is at work
                return


def _plain(name: str) -> str:
    """Return a staged name after refusing one that leads out of the staging directory."""
    if Path(name).name != name or name in ("", ".", ".."):
        raise PenstockError("STA-3502", f"'{name[:100]}' is no name of a staged file", kind=Kind.EXTERNAL)
    return name
