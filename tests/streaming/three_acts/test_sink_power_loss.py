"""Power fails behind every operation of a file sink's prepare and commit, with every outcome of what was not
synced: no row is lost or doubled.

The sink works on a real directory; what a file held and a directory named when they were last synced is what
the disk has for certain. A rename is done or not done, as on filesystems with a journal, and certain once
either of its directories is synced. Left out, each kind of sync is missed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.catalog.errors import PenstockError
from penstock.engine.connectors.filesystem.commit_log import COMMITS
from tests.harness.reading import Taken
from tests.harness.runtime.power_loss import Odometer
from tests.unit.engine.connectors.filesystem.test_sink import batch, ids, sink

Names = dict[str, dict[str, int]]  # by directory, "" the topmost: names and the inodes they stand for
Contents = dict[int, bytes | None]  # by inode; None: a directory
Renamed = tuple[str, str, str, str]  # directory and name before, directory and name after


@dataclass(frozen=True)
class Moment:
    """The disk behind an operation: what programs see, what is certain, and the last checkpoint that is
    durable, with its pending commits.
    """

    seen: Names
    contents: Contents
    certain: Names
    synced: Contents
    checkpoint: int
    pending: list[dict[str, Any]]
    renames: tuple[Renamed, ...]


class Recorder:
    """Watches a directory while a sink works in it; ``ignored`` syncs never reach the disk."""

    def __init__(self, root: Path, ignored: Callable[[Path], bool]) -> None:
        self._root, self._ignored = root, ignored
        self._certain: Names = {"": {}}
        self._synced: Contents = {}
        self.checkpoint, self.pending = 0, []
        self.moments: list[Moment] = []
        self._renames: list[Renamed] = []

    def synced(self, path: Path) -> None:
        if path.is_relative_to(self._root) and not self._ignored(path):
            seen, contents = _tree(self._root)
            if path.is_dir():
                self._is_certain(_relative(path, self._root), seen)
            else:
                number = path.stat().st_ino
                self._synced[number] = contents[number]

    def _is_certain(self, directory: str, seen: Names) -> None:
        self._certain[directory] = seen[directory]
        for before, name, after, new in [
            rename for rename in self._renames if directory in (rename[0], rename[2])
        ]:
            self._certain.setdefault(before, {}).pop(name, None)
            self._certain.setdefault(after, {})[new] = seen[after][new]
            self._renames.remove((before, name, after, new))

    def renamed(self, source: Path, target: Path) -> None:
        self._renames.append(
            (
                _relative(source.parent, self._root),
                source.name,
                _relative(target.parent, self._root),
                target.name,
            )
        )
        self.note()

    def note(self) -> None:
        seen, contents = _tree(self._root)
        certain = {directory: dict(names) for directory, names in self._certain.items()}
        self.moments.append(
            Moment(
                seen,
                contents,
                certain,
                dict(self._synced),
                self.checkpoint,
                list(self.pending),
                tuple(self._renames),
            )
        )


def _relative(path: Path, root: Path) -> str:
    return "" if path == root else path.relative_to(root).as_posix()


def _tree(root: Path) -> tuple[Names, Contents]:
    names: Names = {}
    contents: Contents = {}
    for directory, folders, files in os.walk(root):
        here = Path(directory)
        # the commit log tells of rows, it holds none
        folders[:] = [name for name in folders if name != COMMITS]
        names[_relative(here, root)] = {name: (here / name).stat().st_ino for name in (*folders, *files)}
        contents |= {(here / name).stat().st_ino: None for name in folders}
        contents |= {(here / name).stat().st_ino: (here / name).read_bytes() for name in files}
    return names, contents


def recorded(
    root: Path, monkeypatch: pytest.MonkeyPatch, ignored: Callable[[Path], bool] = lambda path: False
) -> list[Moment]:
    """Write two checkpoints' rows, three a checkpoint, and commit them; return every moment of it."""
    recorder = Recorder(root, ignored)
    fsync = os.fsync

    def watched(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if COMMITS not in path.parts:
            recorder.synced(path)
            recorder.note()

    def noted(call: Callable[..., Any]) -> Callable[..., Any]:
        def watched_call(*words: Any, **more: Any) -> Any:
            result = call(*words, **more)
            if COMMITS not in Path(words[0]).parts:
                recorder.note()
            return result

        return watched_call

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", watched)
        for name in ("mkdir", "rmdir", "unlink"):
            patched.setattr(os, name, noted(getattr(os, name)))
        rename = os.rename
        patched.setattr(
            os,
            "rename",
            lambda source, target: (rename(source, target), recorder.renamed(Path(source), Path(target))),
        )
        writing = sink(ids(root / "out", "json"))
        for checkpoint in (1, 2):
            writing.on_batch(batch(*range(3 * checkpoint - 2, 3 * checkpoint + 1)), 0, Taken())
            recorder.note()
            writing.before_barrier(checkpoint, Taken())
            recorder.checkpoint, recorder.pending = checkpoint, writing.snapshot_items()
            recorder.note()
            writing.on_checkpoint_complete(checkpoint)
            recorder.note()
    return recorder.moments


def outcomes(moment: Moment, target: Path) -> Iterator[Path]:
    """Make every state the disk may be in at a moment, each in a directory of its own."""
    odometer, number = Odometer(), 0
    while True:
        root = target / str(number)
        done = {rename: odometer.choose(2) == 1 for rename in moment.renames}
        _make(moment, "", root, odometer, done)
        yield root
        number += 1
        if not odometer.advance():
            return


def _make(moment: Moment, directory: str, place: Path, odometer: Odometer, done: dict[Renamed, bool]) -> None:
    place.mkdir()
    certain, seen = moment.certain.get(directory, {}), moment.seen.get(directory, {})
    for name in sorted({*certain, *seen}):
        one, other = certain.get(name), seen.get(name)
        held = [
            is_done
            for (before, old, after, new), is_done in done.items()
            if (directory, name) in ((before, old), (after, new))
        ]
        if held:
            chosen = other if held[0] else one
        else:
            chosen = one if one == other or odometer.choose(2) else other
        if chosen is None:
            continue
        content = moment.contents.get(chosen, moment.synced.get(chosen))
        if content is None:
            _make(moment, f"{directory}/{name}".lstrip("/"), place / name, odometer, done)
            continue
        kept = moment.synced.get(chosen) or b""
        tail = len(content) - len(kept)
        (place / name).write_bytes(
            content[: len(kept) + (0, tail // 2, tail)[odometer.choose(3)]] if tail > 0 else kept
        )


def broken(moments: list[Moment], target: Path) -> tuple[int, int]:
    """Return how many of how many states do not come back to the rows of the last checkpoint."""
    wrong = count = 0
    for number, moment in enumerate(moments):
        (target / str(number)).mkdir(parents=True)
        for root in outcomes(moment, target / str(number)):
            count += 1
            try:
                again = sink(ids(root / "out", "json"))
                again.restore_items(
                    [{"checkpoint": moment.checkpoint, "items": item["items"]} for item in moment.pending]
                )
                again.close()
                found = [] if not any((root / "out").glob("part-*")) else seen_in(root / "out")
            except (PenstockError, OSError):
                found = [-1]
            wrong += found != list(range(1, 3 * moment.checkpoint + 1))
    return wrong, count


def seen_in(directory: Path) -> list[int]:
    """Return the ids published; -1 for a line that was torn."""
    lines = [line for path in directory.glob("part-*") for line in path.read_text().splitlines()]
    return sorted(
        int(line.removeprefix('{"id":')[:-1]) if line.startswith('{"id":') and line.endswith("}") else -1
        for line in lines
    )


def test_no_row_is_lost_or_doubled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disk").mkdir()
    moments = recorded(tmp_path / "disk", monkeypatch)
    assert len(moments) > 20 and seen_in(tmp_path / "disk" / "out") == [1, 2, 3, 4, 5, 6]
    wrong, count = broken(moments, tmp_path / "tried")
    assert wrong == 0
    assert count > 2 * len(moments)


SKIPPED: dict[str, Callable[[Path], bool]] = {
    "a staged file": lambda path: path.is_file(),
    "the staging directory": lambda path: path.is_dir() and ".penstock.staging" in path.as_posix(),
    "the table's directory": lambda path: path.name == "out",
    "everything": lambda path: True,
}


@pytest.mark.parametrize("what", SKIPPED)
def test_a_sync_less_is_seen(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "disk").mkdir()
    assert broken(recorded(tmp_path / "disk", monkeypatch, SKIPPED[what]), tmp_path / "tried")[0] > 0
