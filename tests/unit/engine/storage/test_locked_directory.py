"""Directories of one process: those of a living one are kept, those of one that has ended are deleted."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.engine.storage.locked_directory import delete_abandoned, locked_directory


def test_abandoned_directories_are_deleted(tmp_path: Path) -> None:
    mine, lock = locked_directory(tmp_path, "p-")
    ended, other = locked_directory(tmp_path, "p-")
    (ended / "rows").write_text("1")
    (tmp_path / "q-else").mkdir()
    # what the end of a process does
    os.close(other)
    delete_abandoned(tmp_path, "p-")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, "q-else"])
    os.close(lock)
