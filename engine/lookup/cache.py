"""The lookup cache: the rows of looked-up keys, for a limited time; and the stored versions of tables that
are loaded whole.
"""

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
    """An LRU cache of at most ``max_rows`` rows; a key without rows counts as one.

    ``write_ms`` and ``access_ms``: how long an entry is valid after its lookup, and after its last access.
    ``missing``: whether keys without rows are cached. The caller passes times, in milliseconds of one clock.
    The cache is not state: a restored job looks up again.
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
        """Remove all entries."""
        # Key slots to row ids: the index numbers the keys, the links list each key's rows in the store.
        self._index = KeyIndex(self._types)
        self._store = RowStore(self._rows)
        self._links = MultiIndex()
        # By slot, milliseconds: when the key was looked up, and when it was last asked for.
        self._written_ms = np.zeros(self._index.capacity)
        self._asked_ms = np.zeros(self._index.capacity)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def rows(self) -> int:
        """The number of cached rows."""
        return len(self._store)

    def get(self, keys: Sequence[pa.Array], now_ms: float) -> tuple[np.ndarray, np.ndarray, pa.RecordBatch]:
        """Return for distinct keys which are cached, then for each cached row the index of its key, then the
        rows.
        """
        # the slot of each key, -1 for one that is not cached
        slots = self._index.lookup(keys)
        known = slots >= 0
        live = slots[known]
        # expired entries are dropped when they are asked for
        stale = (now_ms - self._written_ms[live] >= self._write_ms) | (
            # Also an entry that was just found: its time of access is the one before this.
            now_ms - self._asked_ms[live] >= self._access_ms
        )
        if stale.any():
            self._drop(live[stale])
            slots[np.flatnonzero(known)[stale]] = -1
            known = slots >= 0
            live = slots[known]
        # Only after the check: an expired entry must not be renewed by being asked for.
        self._asked_ms[live] = now_ms
        key_numbers, ids = self._links.expand(slots)
        # -1 has no rows in ``expand``.
        return known, key_numbers, self._store.take(ids)

    def put(
        self, keys: Sequence[pa.Array], key_numbers: np.ndarray, rows: pa.RecordBatch, now_ms: float
    ) -> None:
        """Replace the cached rows of some distinct keys. ``key_numbers``: the index of each row's key."""
        count = len(keys[0])
        # cache only the keys that have rows
        if not self._missing:
            has = np.zeros(count, np.bool_)
            has[key_numbers] = True
            chosen = np.flatnonzero(has)
            number = np.cumsum(has) - 1
            keys, key_numbers = [column.take(pa.array(chosen)) for column in keys], number[key_numbers]
        if not len(keys[0]):
            return
        # A key that is cached already is replaced whole: rows that the table no longer has must go.
        old = self._index.lookup(keys)
        if (old >= 0).any():
            self._drop(old[old >= 0])
        slots = self._index.lookup_or_insert(keys)
        if self._written_ms.size < self._index.capacity:
            self._written_ms, self._asked_ms = (
                grown(times, self._index.capacity) for times in (self._written_ms, self._asked_ms)
            )
        self._written_ms[slots] = self._asked_ms[slots] = now_ms
        # One link for each row: ``slots[places]`` is the slot of its key.
        self._links.link(slots[key_numbers], self._store.append(rows))
        self._shrink()

    def _shrink(self) -> None:
        """Evict the least recently used entries, down to 90 % of the limit so that evictions are rare."""
        live = self._index.live_slots()
        # an entry costs its rows; one without rows counts as one
        costs = np.maximum(self._links.counts(live), 1)
        if costs.sum() <= self._max_rows:
            return
        # least recently used first
        order = np.argsort(self._asked_ms[live], kind="stable")
        # Rows that stay after evicting so many of the oldest.
        left = costs.sum() - np.cumsum(costs[order])
        # The first point at which enough is evicted.
        self._drop(live[order[: int(np.argmax(left <= self._max_rows * 0.9)) + 1]])

    def _drop(self, slots: np.ndarray) -> None:
        _, ids = self._links.expand(slots)
        # A key without rows has no ids, but a slot.
        if ids.size:
            self._links.unlink(ids)
            self._store.drop(ids)
        self._index.remove(slots)


class TableVersions(ListState):
    """The table versions one subtask has loaded, under ``root``. A version is stored while a checkpoint that
    may be restored names it.

    A restored subtask uses the newest stored version of any subtask; when it is gone, the table is loaded
    again.
    """

    def __init__(self, root: Path, subtask: int, retained: int, clock: Clock) -> None:
        # A folder of each subtask: subtasks never remove each other's versions.
        self._root, self._own, self._retained, self._clock = root, f"of-{subtask}", retained, clock
        # By checkpoint: the version it names.
        self._named: dict[int, str | None] = {}
        self.version: str | None = None
        self.loaded_ms = 0
        # The rows of a restored version, until they are used.
        self.restored: pa.RecordBatch | None = None

    def keep(self, rows: pa.RecordBatch) -> None:
        """Stage a loaded version and make it the current one."""
        folder = self._root / self._own
        make_private(folder)
        name = f"attempt-{new_attempt(folder)}"
        # Durable before the version is named: a checkpoint may refer to it from now on.
        stage(folder / name, [rows])
        self.version, self.loaded_ms = f"{self._own}/{name}", self._clock.wall_ms()

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [] if self.version is None else [{"version": self.version, "loaded_ms": self.loaded_ms}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        # The newest first; the others serve where it is gone.
        for item in sorted(items, key=lambda item: -item["loaded_ms"]):
            try:
                (self.restored,) = StagedRows(self._root / item["version"]).batches()
            except PenstockError:
                continue  # of a savepoint that was moved, or damaged: the table is read again
            self.version, self.loaded_ms = item["version"], item["loaded_ms"]
            return

    def name(self, checkpoint_id: int) -> None:
        """Record the version that a checkpoint will name."""
        self._named[checkpoint_id] = self.version

    def complete(self, checkpoint_id: int) -> None:
        """Remove this subtask's versions that no restorable checkpoint names."""
        done = sorted(number for number in self._named if number <= checkpoint_id)
        # older checkpoints than those retained can no longer be restored
        for number in done[: -self._retained]:
            del self._named[number]
        named = {*self._named.values(), self.version}
        for path in (self._root / self._own).glob("attempt-*"):
            # The current version stays even if no checkpoint names it yet.
            if f"{self._own}/{path.name}" not in named:
                shutil.rmtree(path, ignore_errors=True)
