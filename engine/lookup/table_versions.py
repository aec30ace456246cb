"""Versions of a table that is read again on an interval: each is staged, and a checkpoint names the one
that rows met.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import Clock
from penstock.engine.api.operator import ListState
from penstock.engine.storage.local import make_private
from penstock.engine.storage.staged_rows import StagedRows, new_attempt, stage


class TableVersions(ListState):
    """The versions one subtask has loaded, under ``root``, as long as a checkpoint that may be restored names
    them.

    A restored subtask takes the newest version that any had; one that is no longer there is loaded anew.
    """

    def __init__(self, root: Path, subtask: int, retained: int, clock: Clock) -> None:
        self._root, self._own, self._retained, self._clock = root, f"of-{subtask}", retained, clock
        self._named: dict[int, str | None] = {}
        self.version: str | None = None
        self.loaded_ms = 0
        self.restored: pa.RecordBatch | None = None

    def keep(self, rows: pa.RecordBatch) -> None:
        """Stage a version that has been loaded; from now on it is the one in force."""
        folder = self._root / self._own
        make_private(folder)
        name = f"attempt-{new_attempt(folder)}"
        stage(folder / name, [rows])
        self.version, self.loaded_ms = f"{self._own}/{name}", self._clock.wall_ms()

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [] if self.version is None else [{"version": self.version, "loaded_ms": self.loaded_ms}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        for item in sorted(items, key=lambda item: -item["loaded_ms"]):
            try:
                (self.restored,) = StagedRows(self._root / item["version"]).batches()
            except PenstockError:
                continue  # of a savepoint that was moved, or damaged: the table is read again
            self.version, self.loaded_ms = item["version"], item["loaded_ms"]
            return

    def name(self, checkpoint_id: int) -> None:
        """Note which version a checkpoint will name."""
        self._named[checkpoint_id] = self.version

    def complete(self, checkpoint_id: int) -> None:
        """Remove this subtask's versions that no checkpoint names that may still be restored."""
        done = sorted(number for number in self._named if number <= checkpoint_id)
        for number in done[: -self._retained]:
            del self._named[number]
        kept = {*self._named.values(), self.version}
        for path in (self._root / self._own).glob("attempt-*"):
            if f"{self._own}/{path.name}" not in kept:
                shutil.rmtree(path, ignore_errors=True)
