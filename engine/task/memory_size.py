"""StateSize: how many bytes an operator's state holds in memory and on disk, counted array by array."""

from __future__ import annotations

import mmap
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.engine.api.stream_elements import Batch
from penstock.engine.storage.spill_files import ArrayPages, SpilledRows, SpillFiles

_OURS = ("penstock.engine.state.", "penstock.engine.api.stream_elements")
_MANY = 10_000


class Spillable(Protocol):
    """Part of a state that can go to disk."""

    def spillable_bytes(self) -> int:
        """Return how many bytes in memory would be there no more."""

    def spill(self, files: SpillFiles) -> None:
        """Write them to disk."""


@dataclass
class StateSize:
    """Bytes of arrays in memory, each counted once whoever shares it; bytes of those on disk, with their
    pages; the parts that can go there.
    """

    held: int = 0
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

    def _add(self, found: Any) -> None:
        if isinstance(found, np.ndarray):
            while isinstance(found.base, np.ndarray):
                found = found.base
            if isinstance(found.base, ArrayPages):
                found = found.base
        if id(found) in self._seen:
            return
        self._seen.add(id(found))
        match found:
            case np.ndarray():
                self.held += found.nbytes
            case pa.RecordBatch() | pa.Table() | pa.Array() | pa.ChunkedArray():
                self.held += found.nbytes
            case SpilledRows():
                self.spilled += found.size
                self.pages += found.pages
            case ArrayPages():
                self.spilled += len(found)
                self.pages.append(found)
            case list() | tuple() | dict() if len(found) > _MANY:
                self.held += found.__sizeof__()
            case list() | tuple():
                for item in found:
                    self._add(item)
            case dict():
                for item in found.values():
                    self._add(item)
            case _ if type(found).__module__.startswith(_OURS):
                self._add_object(found)

    def _add_object(self, found: Any) -> None:
        if isinstance(found, Batch):
            self._add((found.rows, found.weights, found.behind))
            return
        if hasattr(found, "spillable_bytes"):
            self.spillable.append(found)
        for item in tuple(vars(found).values()):
            self._add(item)
