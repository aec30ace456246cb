"""The head of a job's objects: one small object that says who writes there and which names are published. It
changes only by compare-and-swap, so it does for an object store what a lock and a rename do for a disk.
"""

from __future__ import annotations

import base64
import itertools
import os
import platform
from pathlib import Path
from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.storage.sealed_json import BrokenSealError, seal, unseal

HEAD = "HEAD"
_FORMAT, _VERSION = "penstock-object-head", 1


# of the writers of this process: those that have not ended
_WRITING: set[int] = set()
_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Holder:
    """Who writes: the machine, the process there, and its number among the writers of that process.
    ``started`` tells a process from a later one of that number; "" where the system does not say.
    """

    machine: str
    process: int
    started: str
    number: int

    @property
    def is_gone(self) -> bool:
        """Whether it is certain that the writer has ended. Its process ran on this machine and has died, or
        is this one and has closed it. Others are never certainly gone.
        """
        if self.machine != _machine() or not self.started:
            return False
        if _started(self.process) != self.started:
            return True
        return self.process == os.getpid() and self.number not in _WRITING

    @classmethod
    def new(cls) -> Holder:
        """Return a new writer of this process."""
        holder = cls(_machine(), os.getpid(), _started(os.getpid()), next(_NUMBERS))
        _WRITING.add(holder.number)
        return holder

    def end(self) -> None:
        """Record that the writer has ended."""
        _WRITING.discard(self.number)


@dataclass(frozen=True)
class PublishedFile:
    """A published name: its content, or the key of the object that has it."""

    length: int
    data: bytes | None = None
    key: str = ""


@dataclass(frozen=True)
class Head:
    """``fence`` counts the writers so far: each has a number of its own. ``beat`` counts the changes, so no
    two versions have the same bytes. ``holder`` None: nobody writes.
    """

    fence: int
    beat: int
    holder: Holder | None
    names: dict[str, PublishedFile]

    def encoded(self) -> bytes:
        """Return its bytes."""
        names = {
            name: {"length": entry.length, "key": entry.key}
            if entry.data is None
            else {"length": entry.length, "data": base64.b64encode(entry.data).decode("ascii")}
            for name, entry in sorted(self.names.items())
        }
        holder = None
        if self.holder is not None:
            holder = [self.holder.machine, self.holder.process, self.holder.started, self.holder.number]
        fields = {"fence": self.fence, "beat": self.beat, "holder": holder, "names": names}
        return seal({"format": _FORMAT, "version": _VERSION, **fields})

    @classmethod
    def decoded(cls, data: bytes, where: str) -> Head:
        """Return the head of some bytes. DAT-5512 when they are damaged or of a newer format."""
        try:
            fields = unseal(data)
            if fields["format"] != _FORMAT or fields["version"] > _VERSION:
                raise _unreadable(where, f"its format is {fields['format']} {fields['version']}")
            holder = fields["holder"]
            return cls(
                int(fields["fence"]),
                int(fields["beat"]),
                None if holder is None else _holder(*holder),
                {name: _entry(entry) for name, entry in fields["names"].items()},
            )
        except (BrokenSealError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise _unreadable(where, str(error)[:200]) from error


def _holder(machine: Any, process: Any, started: Any, number: Any) -> Holder:
    return Holder(str(machine), int(process), str(started), int(number))


def _entry(fields: dict[str, Any]) -> PublishedFile:
    data = fields.get("data")
    return PublishedFile(
        int(fields["length"]),
        None if data is None else base64.b64decode(data, validate=True),
        str(fields.get("key", "")),
    )


def _unreadable(where: str, why: str) -> PenstockError:
    return PenstockError(
        "DAT-5512",
        f"{where}/{HEAD} cannot be read: {why}",
        hint="restore the object from a version of the bucket, or begin with another prefix",
        sqlstate="58030",
    )


def _machine() -> str:
    # the name alone may be that of two containers; the boot's number is new with each start of the machine
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        boot = space = ""
    return f"{platform.node()} {boot} {space}".strip()


def _started(process: int) -> str:
    """Return when a process started, in ticks since the boot; "" when there is none, or no /proc."""
    try:
        # the name of the program may hold blanks and brackets: fields are counted from its last bracket
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]
