"""Storage in memory, for checkpoints that end with the process, and for tests that simulate power loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.engine.api.failpoints import failpoint
from penstock.engine.storage.storage import check_name


@dataclass
class _File:
    # ``durable``: so many bytes survive a crash.
    data: bytearray = field(default_factory=bytearray)
    durable: int = 0


class MemoryStorage:
    """Files in a dictionary. ``crash`` simulates power loss: unsynced bytes and names may survive or not."""

    fences = False

    def __init__(self) -> None:
        # Names as they are, names as they were at the last sync of the directory, and the changes since.
        self._names: dict[str, _File] = {}
        self._durable_names: dict[str, _File] = {}
        self._unsynced: list[dict[str, _File | None]] = []

    def __str__(self) -> str:
        return "memory"

    def create(self, name: str) -> None:
        if name in self._names:
            raise FileExistsError(name)
        self._rename({check_name(name): _File()})

    def append(self, name: str, data: bytes) -> None:
        self._names[name].data += data

    def sync(self, name: str) -> None:
        self._names[name].durable = len(self._names[name].data)

    def sync_directory(self) -> None:
        self._durable_names = dict(self._names)
        self._unsynced = []

    # One change: a rename is atomic even in a crash.
    def publish(self, name: str, target: str) -> None:
        self._rename({check_name(target): self._file(name), name: None})
        failpoint("C9")
        self.sync_directory()

    def list(self) -> list[str]:
        return sorted(self._names)

    def delete(self, name: str) -> None:
        if name in self._names:
            self._rename({name: None})

    def size(self, name: str) -> int:
        return len(self._file(name).data)

    def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        data = self._file(name).data
        return bytes(data[offset:] if length is None else data[offset : offset + length])

    def lock(self, *, take_over: bool = False) -> None:
        """No other process reaches this memory; a second writer is fenced off by its epoch."""

    def shut(self) -> None:
        """No other process reaches this memory."""

    def location(self) -> str:
        return "memory"

    def renew(self, *, now: bool = False) -> bool:
        return True

    def close(self) -> None:
        """Nothing is open."""

    def crash(self, choose: Callable[[int], int]) -> None:
        """Lose power: ``choose(n)`` picks one of n outcomes for each unsynced tail (none, half or all
        survives) and each unsynced name (old or new).
        """
        # What was durable survives.
        names = dict(self._durable_names)
        # each unsynced name independently survives or not
        for change in self._unsynced:
            if choose(2):
                _apply(names, change)
        for file in {id(file): file for file in names.values()}.values():
            tail = len(file.data) - file.durable
            surviving = file.durable + (0, tail // 2, tail)[choose(3)] if tail else file.durable
            del file.data[surviving:]
            file.durable = surviving
        self._names, self._durable_names, self._unsynced = dict(names), dict(names), []

    def _file(self, name: str) -> _File:
        if name not in self._names:
            raise FileNotFoundError(name)
        return self._names[name]

    def _rename(self, change: dict[str, _File | None]) -> None:
        _apply(self._names, change)
        self._unsynced.append(change)


def _apply(names: dict[str, _File], change: dict[str, _File | None]) -> None:
    for name, file in change.items():
        if file is None:
            names.pop(name, None)
        else:
            names[name] = file
