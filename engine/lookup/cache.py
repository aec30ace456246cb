"""What was looked up, remembered for a while: keys to the rows a table had for them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.api.clock import Clock
from penstock.engine.api.operator import ListState
from penstock.engine.state.index.key_index import KeyIndex
from penstock.engine.state.index.multi_index import MultiIndex
from penstock.engine.state.index.word_index import grown
from penstock.engine.state.rows.row_store import RowStore
from penstock.engine.storage.local import make_private
from penstock.engine.storage.staged_rows import StagedRows, new_attempt, stage

_NEVER = float("inf")


class LookupCache:
    """At most ``max_rows`` rows (a key without one counts as one), those first given up that were not asked
    for the longest.

    ``write_ms``, ``access_ms``: how long an entry is good after it was looked up, and after it was last asked
    for; ``missing``: whether keys without a row are remembered. Times are given by the caller, in
    milliseconds of one clock. It is no state: a restored job asks again.
    """

    def __init__(
        self,
        keys: Sequence[pa.DataType],
        rows: pa.Schema,
        *,
        max_rows: float,
        write_ms: float | None,
        access_ms: float | None,
        missing: bool,
    ) -> None:
        self._types, self._rows = list(keys), rows
        self._max_rows = max_rows
        self._write_ms, self._access_ms = write_ms or _NEVER, access_ms or _NEVER
        self._missing = missing
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._index = KeyIndex(self._types)
        self._store = RowStore(self._rows)
        self._links = MultiIndex()
        self._written_ms = np.zeros(self._index.capacity)
        self._asked_ms = np.zeros(self._index.capacity)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def rows(self) -> int:
        """How many rows it holds."""
        return len(self._store)

    def get(self, keys: Sequence[pa.Array], now_ms: float) -> tuple[np.ndarray, np.ndarray, pa.RecordBatch]:
        """Return for each of some distinct keys whether it is known, and the known rows behind the place
        of their key.
        """
        slots = self._index.lookup(keys)
        known = slots >= 0
        live = slots[known]
        stale = (now_ms - self._written_ms[live] >= self._write_ms) | (
            now_ms - self._asked_ms[live] >= self._access_ms
        )
        if stale.any():
            self._drop(live[stale])
            slots[np.flatnonzero(known)[stale]] = -1
            known = slots >= 0
            live = slots[known]
        self._asked_ms[live] = now_ms
        places, ids = self._links.expand(slots)
        return known, places, self._store.take(ids)

    def put(self, keys: Sequence[pa.Array], places: np.ndarray, rows: pa.RecordBatch, now_ms: float) -> None:
        """Remember the rows of some distinct keys (``places``: of which key each row is), in place of what
        was known of them.
        """
        count = len(keys[0])
        if not self._missing:
            has = np.zeros(count, np.bool_)
            has[places] = True
            chosen = np.flatnonzero(has)
            number = np.cumsum(has) - 1
            keys, places = [column.take(pa.array(chosen)) for column in keys], number[places]
        if not len(keys[0]):
            return
        old = self._index.lookup(keys)
        if (old >= 0).any():
            self._drop(old[old >= 0])
        slots = self._index.lookup_or_insert(keys)
        if self._written_ms.size < self._index.capacity:
            self._written_ms, self._asked_ms = (
                grown(times, self._index.capacity) for times in (self._written_ms, self._asked_ms)
            )
        self._written_ms[slots] = self._asked_ms[slots] = now_ms
        self._links.link(slots[places], self._store.append(rows))
        self._shrink()

    def _shrink(self) -> None:
        """Give up the entries not asked for the longest; a tenth more than must be, so that it is seldom
        done.
        """
        live = self._index.live_slots()
        costs = np.maximum(self._links.counts(live), 1)
        if costs.sum() <= self._max_rows:
            return
        order = np.argsort(self._asked_ms[live], kind="stable")
        left = costs.sum() - np.cumsum(costs[order])
        self._drop(live[order[: int(np.argmax(left <= self._max_rows * 0.9)) + 1]])

    def _drop(self, slots: np.ndarray) -> None:
        _, ids = self._links.expand(slots)
        if ids.size:
            self._links.unlink(ids)
            self._store.drop(ids)
        self._index.remove(slots)


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
