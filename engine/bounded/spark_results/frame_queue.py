"""Frames of rows that wait for their reader: in memory as far as there is room, else in files of limited
size, removed as they are read.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

SEGMENT_BYTES = 64 << 20


@dataclass
class HeldBytes:
    """How much all queues of a query hold, and how much they may."""

    memory_limit: int = 32 << 20
    disk_limit: int = 4 << 30
    memory: int = 0
    disk: int = 0

    def has_memory(self, first: bool) -> bool:
        """Whether a frame may stay in memory; half of it is kept for the queue that is read now, the
        ``first``.
        """
        return self.memory < (self.memory_limit if first else self.memory_limit // 2)

    def has_room(self, first: bool) -> bool:
        """Whether another frame may be asked for."""
        return self.has_memory(first) or self.disk < self.disk_limit


class _Segment:
    """One file of frames, gone when it is closed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("w+b", buffering=0)
        self.written = 0
        self.unread = 0

    def write(self, frame: bytearray) -> int:
        """Append a frame and return where it begins; a frame that did not fit (OSError) leaves nothing
        behind that is counted.
        """
        begin, view = self.written, memoryview(frame)
        while view:
            view = view[os.pwrite(self._file.fileno(), view, begin + len(frame) - len(view)) :]
        self.written += len(frame)
        self.unread += 1
        return begin

    def read(self, begin: int, size: int) -> bytearray:
        """Return a frame, the last time it is asked for."""
        frame = bytearray(size)
        self._file.seek(begin)
        done = 0
        while done < size:
            done += self._file.readinto(memoryview(frame)[done:]) or 0
        self.unread -= 1
        return frame

    def close(self) -> None:
        self._file.close()
        self._path.unlink(missing_ok=True)


class FrameQueue:
    """First in, first out; not for several threads at once."""

    def __init__(self, held: HeldBytes, path: Callable[[], Path]) -> None:
        """``path`` gives the name of a new file in a directory that is there."""
        self._held = held
        self._path = path
        self._frames: deque[bytearray | tuple[_Segment, int, int]] = deque()
        self._segment: _Segment | None = None

    def __len__(self) -> int:
        return len(self._frames)

    def push(self, frame: bytearray, first: bool) -> None:
        """Keep a frame; one for which the disk has no room stays in memory."""
        if not self._held.has_memory(first):
            try:
                self._frames.append(self._written(frame))
            except OSError:
                # the disk is full: what comes now waits with its task
                self._held.disk_limit = self._held.disk
            else:
                self._held.disk += len(frame)
                return
        self._held.memory += len(frame)
        self._frames.append(frame)

    def pop(self) -> bytearray:
        """Return the oldest frame; its place is free again."""
        entry = self._frames.popleft()
        if isinstance(entry, bytearray):
            self._held.memory -= len(entry)
            return entry
        segment, begin, size = entry
        frame = segment.read(begin, size)
        self._held.disk -= size
        if segment.unread == 0:
            self._drop(segment)
        return frame

    def clear(self) -> None:
        """Drop all frames and their files."""
        segments = {id(entry[0]): entry[0] for entry in self._frames if not isinstance(entry, bytearray)}
        for entry in self._frames:
            if isinstance(entry, bytearray):
                self._held.memory -= len(entry)
            else:
                self._held.disk -= entry[2]
        self._frames.clear()
        for segment in segments.values():
            self._drop(segment)

    def _written(self, frame: bytearray) -> tuple[_Segment, int, int]:
        segment = self._segment
        if segment is None or segment.written >= SEGMENT_BYTES:
            segment = self._segment = _Segment(self._path())
        return segment, segment.write(frame), len(frame)

    def _drop(self, segment: _Segment) -> None:
        if segment is self._segment:
            self._segment = None
        segment.close()
