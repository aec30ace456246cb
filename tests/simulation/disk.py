"""The storage all nodes share, and what may become of it: failures, a full disk, torn writes, flipped
bits, power that fails.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Callable
from random import Random

from penstock.engine.storage.memory import MemoryStorage
from penstock.engine.storage.storage import locked
from tests.simulation.world import Node

# these happen less often than the others, and must go wrong as well
RARER = {"publish": 8, "sync_directory": 3, "delete": 2}


class Disk(MemoryStorage):
    """The medium. ``fault`` is asked at every operation of every node and may raise."""

    def __init__(self, random: Random, coverage: Counter[str]) -> None:
        super().__init__()
        self.full = False
        self.owner: Node | None = None
        self.fault: Callable[[Node, str, str], None] = lambda node, verb, name: None
        self.failure_rate = random.choice([0.0, 0.0, 0.003, 0.02])
        self.torn_rate = random.choice([0.0, 0.01, 0.05])
        self._random = random
        self._coverage = coverage
        self._flipped: list[tuple[bytearray, int, int]] = []

    def fail(self, verb: str) -> None:
        """Raise what this operation meets, if it meets anything."""
        if self.full and (verb == "append" or (verb == "create" and self._random.random() < 0.2)):
            self._coverage[f"disk full at {verb}"] += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        if self.failure_rate and self._random.random() < self.failure_rate * RARER.get(verb, 1):
            self._coverage[f"{verb} failed"] += 1
            raise OSError(errno.EIO, f"injected at {verb}")

    def torn(self, data: bytes) -> bytes | None:
        """Return what reaches the medium of a write that fails half-way, ``None`` for one that does not."""
        if not self.torn_rate or self._random.random() >= self.torn_rate:
            return None
        self._coverage["append torn"] += 1
        return data[: self._random.randrange(len(data) + 1)]

    def flip(self) -> str | None:
        """Flip a bit of some file; return which."""
        names = [name for name in self.list() if self.size(name)]
        if not names:
            return None
        name = self._random.choice(names)
        data = self._file(name).data
        place, bit = self._random.randrange(len(data)), 1 << self._random.randrange(8)
        data[place] ^= bit
        self._flipped.append((data, place, bit))
        return name

    @property
    def damaged(self) -> bool:
        """Whether bits are flipped."""
        return bool(self._flipped)

    def repair(self) -> None:
        """Put the flipped bits right, as from a backup."""
        for data, place, bit in self._flipped:
            if place < len(data):
                data[place] ^= bit
        self._flipped = []


class NodeDisk:
    """The disk as one node's process has it: with the lock, and with what befalls the node at its
    operations.
    """

    fences = False

    def __init__(self, disk: Disk, node: Node) -> None:
        self._disk = disk
        self._node = node

    def __str__(self) -> str:
        return "the simulated disk"

    def create(self, name: str) -> None:
        self._disk.fault(self._node, "create", name)
        self._disk.create(name)

    def append(self, name: str, data: bytes) -> None:
        self._disk.fault(self._node, "append", name)
        written = self._disk.torn(data)
        self._disk.append(name, data if written is None else written)
        if written is not None:
            raise OSError(errno.EIO, "injected: torn write")

    def sync(self, name: str) -> None:
        self._disk.fault(self._node, "sync", name)
        self._disk.sync(name)

    def sync_directory(self) -> None:
        self._disk.fault(self._node, "sync_directory", "")
        self._disk.sync_directory()

    def publish(self, name: str, target: str) -> None:
        self._disk.fault(self._node, "publish", target)
        self._disk.publish(name, target)

    def delete(self, name: str) -> None:
        self._disk.fault(self._node, "delete", name)
        self._disk.delete(name)

    def list(self) -> list[str]:
        return self._disk.list()

    def size(self, name: str) -> int:
        return self._disk.size(name)

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        return self._disk.read(name, offset, length)

    def lock(self, *, take_over: bool = False) -> None:
        owner = self._disk.owner
        if owner is not None and owner.alive and owner is not self._node and not take_over:
            raise locked(str(self))
        self._disk.owner = self._node

    def renew(self, *, now: bool = False) -> bool:
        return self._disk.owner is self._node

    def close(self) -> None:
        if self._disk.owner is self._node:
            self._disk.owner = None
