"""The files of a test's cases: a pattern that matches none is an error, or the test would pass without cases."""

from __future__ import annotations

from pathlib import Path


def case_files(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a folder that match a glob pattern, sorted. AssertionError when there are none."""
    found = sorted(folder.glob(pattern))
    assert found, f"no {pattern} in {folder}"
    return found
