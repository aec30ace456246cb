"""Every state a disk may be in after power fails: a log of operations, replayed to each prefix, with every
outcome of what was not synced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from penstock.engine.storage.memory import MemoryStorage

VERBS = ("create", "append", "sync", "sync_directory", "publish", "delete")


class RecordingStorage(MemoryStorage):
    """Keeps a log of what was done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[tuple[str, tuple[Any, ...]]] = []

    def create(self, name: str) -> None:
        self.log.append(("create", (name,)))
        super().create(name)

    def append(self, name: str, data: bytes) -> None:
        self.log.append(("append", (name, bytes(data))))
        super().append(name, data)

    def sync(self, name: str) -> None:
        self.log.append(("sync", (name,)))
        super().sync(name)

    def sync_directory(self) -> None:
        self.log.append(("sync_directory", ()))
        super().sync_directory()

    def publish(self, name: str, target: str) -> None:
        self.log.append(("rename", (name, target)))
        self._rename({target: self._file(name), name: None})
        self.sync_directory()

    def delete(self, name: str) -> None:
        self.log.append(("delete", (name,)))
        super().delete(name)


class Replayed(MemoryStorage):
    """A disk on which a log is done again."""

    def do(self, verb: str, words: tuple[Any, ...]) -> None:
        """Do one operation; a rename is not made durable by itself."""
        if verb == "rename":
            name, target = words
            self._rename({target: self._file(name), name: None})
        else:
            getattr(self, verb)(*words)


class Odometer:
    """Gives every sequence of choices once."""

    def __init__(self) -> None:
        self._digits: list[int] = []
        self._bases: list[int] = []
        self._at = 0

    def choose(self, outcomes: int) -> int:
        """Return one of ``outcomes``."""
        if self._at == len(self._digits):
            self._digits.append(0)
            self._bases.append(outcomes)
        self._at += 1
        return self._digits[self._at - 1]

    def advance(self) -> bool:
        """Go on to the next sequence; False when all were given."""
        self._at = 0
        while self._digits and self._digits[-1] == self._bases[-1] - 1:
            self._digits.pop()
            self._bases.pop()
        if not self._digits:
            return False
        self._digits[-1] += 1
        return True


Log = list[tuple[str, tuple[Any, ...]]]


def states_after(
    log: Log, prefix: int, skipped: Callable[[str, tuple[Any, ...]], bool]
) -> Iterator[Replayed]:
    """Yield every state the disk may be in when power fails behind so many operations; ``skipped`` ones
    never reach it.
    """
    odometer = Odometer()
    while True:
        disk = Replayed()
        for verb, words in log[:prefix]:
            if not skipped(verb, words):
                disk.do(verb, words)
        disk.crash(odometer.choose)
        yield disk
        if not odometer.advance():
            return
