"""The memory budget of a slot's state. State beyond it is spilled to disk; a job fails with STA-3050 before
memory runs out.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.engine.api.stream_elements import Batch
from penstock.engine.storage.spill_files import (
    ArrayPages,
    SpilledRows,
    SpillFiles,
    evict_pages,
    mapped_bytes,
    pages_are_many,
)

# a part below limit / 32 is not spilled
_LEAST_PART = 32

# objects of other modules (schemas, clocks, kernels) are no state, so they are not searched
_STATE_MODULES = ("penstock.engine.state.", "penstock.engine.api.stream_elements")

# a larger list or dict is counted by its own size, not item by item: measuring happens while rows wait
_LARGE_CONTAINER = 10_000


class Spillable(Protocol):
    """A part of a state that can be spilled."""

    def spillable_bytes(self) -> int:
        """Return how many bytes of memory spilling would free."""

    def spill(self, files: SpillFiles) -> None:
        """Write the rows to disk."""


@dataclass
class StateSize:
    """Bytes of arrays in memory, each counted once even if shared; bytes of those on disk, with their pages;
    the parts that can be spilled.
    """

    resident: int = 0
    spilled: int = 0
    spillable: list[Spillable] = field(default_factory=list)
    pages: list[mmap.mmap] = field(default_factory=list)
    _seen: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, states: Iterable[object]) -> StateSize:
        """Return the size of states with all they are made of."""
        size = cls()
        for state in states:
            size._add(state)
        return size

    def _add(self, value: Any) -> None:
        if isinstance(value, np.ndarray):
            # a view: count the array that owns the memory, once for all its views
            while isinstance(value.base, np.ndarray):
                value = value.base
            if isinstance(value.base, ArrayPages):
                value = value.base
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        match value:
            case np.ndarray():
                self.resident += value.nbytes
            # Arrow memory
            case pa.RecordBatch() | pa.Table() | pa.Array() | pa.ChunkedArray():
                self.resident += value.nbytes
            # rows on disk: only their pages may be in memory
            case SpilledRows():
                self.spilled += value.size
                self.pages += value.pages
            # an array mapped from disk
            case ArrayPages():
                self.spilled += len(value)
                self.pages.append(value)
            case list() | tuple() | dict() if len(value) > _LARGE_CONTAINER:
                self.resident += value.__sizeof__()
            case list() | tuple():
                for item in value:
                    self._add(item)
            case dict():
                for item in value.values():
                    self._add(item)
            case _ if type(value).__module__.startswith(_STATE_MODULES):
                self._add_object(value)

    def _add_object(self, value: Any) -> None:
        if isinstance(value, Batch):
            self._add((value.rows, value.weights, value.behind))
            return
        # chunks of rows measure themselves: there may be thousands, and those on disk are no memory
        if hasattr(value, "resident_bytes"):
            self.resident += value.resident_bytes
            return
        # anything with spill() may be asked to write its rows to disk
        if hasattr(value, "spillable_bytes"):
            self.spillable.append(value)
        for item in tuple(vars(value).values()):
            self._add(item)


class MemoryBudget:
    """``limit`` bytes for the state of one slot's tasks. A part is spilled only when it is at least a
    thirty-second of it, so that files stay few.

    As many bytes of mapped files again may be resident, and more where the system has much memory available,
    before pages are evicted.
    """

    def __init__(self, limit: int, files: SpillFiles) -> None:
        self.limit = limit
        self._files = files
        self._resident: dict[object, int] = {}
        self._fixed: dict[object, int] = {}
        self._pages: dict[object, list[mmap.mmap]] = {}
        self._mapped_by_others = mapped_bytes()

    def settle(self, index: object, name: str, entries: int, states: Iterable[object]) -> StateSize:
        """Measure the state of one operator and keep the slot within its budget; STA-3050 when that fails."""
        states = list(states)
        size = self._measured(index, states)
        # 1. mapped files: their pages are of files, so releasing them loses nothing
        if any(self._pages.values()) and pages_are_many(self._mapped_by_others + self.limit):
            evict_pages([pages for mapped in self._pages.values() for pages in mapped])
        # 2. within the budget of the slot, all its operators together
        if sum(self._resident.values()) <= self.limit:
            return size
        # 3. over it: spill what this operator can
        for part in size.spillable:
            if self._is_worth_it(part.spillable_bytes()):
                part.spill(self._files)
        # the freed memory goes back to the system, so that other slots can use it
        pa.default_memory_pool().release_unused()
        size = self._measured(index, states)
        # 4. what no operator can spill is over the budget: fail before the system ends the process
        if sum(self._fixed.values()) > self.limit:
            raise self._over(name, entries, size)
        return size

    def _measured(self, index: object, states: list[object]) -> StateSize:
        size = StateSize.of(states)
        self._resident[index] = size.resident
        self._pages[index] = size.pages
        self._fixed[index] = size.resident - sum(
            n for part in size.spillable if self._is_worth_it(n := part.spillable_bytes())
        )
        return size

    def _is_worth_it(self, part_bytes: int) -> bool:
        return part_bytes * _LEAST_PART >= self.limit

    def _over(self, name: str, entries: int, size: StateSize) -> PenstockError:
        resident = sum(self._resident.values())
        return PenstockError(
            "STA-3050",
            f"state of {resident:,} bytes is over the budget of {self.limit:,} bytes per slot, and no "
            "more of it can go to disk",
            detail=f"{name} holds {entries:,} entries: {size.resident:,} bytes in memory, "
            f"{size.spilled:,} on disk",
            hint="SET 'state.memory.budget-per-slot' to more, give the state a TTL "
            "('table.exec.state.ttl'), or add slots ('parallelism.default')",
            sqlstate="53200",
            operator=name,
        )
