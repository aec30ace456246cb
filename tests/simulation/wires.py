"""Connections between nodes: bytes in order, sometimes late, cut, changed or repeated; and the control
connection over them.
"""

from __future__ import annotations

import itertools
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.engine.checkpoint.async_writer import EndWritten, PartWritten
from penstock.engine.deploy.protocol.messages import FromTasks, PostToTask, ToTasks
from penstock.engine.network.frame_kinds import FIRST_CONTROL
from penstock.engine.network.frames import FrameReader, FrameWriter
from penstock.engine.task.messages import CheckpointComplete, CompletionAcknowledged
from tests.simulation.world import Node


@dataclass
class Trouble:
    """How often what befalls the bytes of a wire, for each piece; ``twice``: messages."""

    late: float = 0.0
    twice: float = 0.0
    cut: float = 0.0
    changed: float = 0.0
    repeated: float = 0.0
    late_ms: float = 0.0

    def end(self) -> None:
        """No more."""
        self.late = self.twice = self.cut = self.changed = self.repeated = 0.0


class Wire:
    """One direction of a connection. ``take`` gets bytes at the far end, ``ended`` is called behind the
    last.
    """

    def __init__(
        self, name: str, source: Node, target: Node, trouble: Trouble, coverage: Counter[str]
    ) -> None:
        self.source, self.target = source, target
        self.take: Callable[[bytes], None] = lambda data: None
        self.ended: Callable[[], None] = lambda: None
        self.emptied: Callable[[], None] = lambda: None
        self._pieces: deque[bytes] = deque()
        self._end = self._closed = False
        self._held = False
        self.trouble = trouble
        self.coverage = coverage
        self._random = source.world.random
        self._arrives = target.runnable("wire", name, self._arrive)

    @property
    def waiting(self) -> int:
        """How many pieces are under way."""
        return len(self._pieces)

    def send(self, data: bytes) -> None:
        """Send bytes, behind all others."""
        if not (self._end or self._closed) and data:
            self._pieces.append(data)
            if not self._held:
                self.target.world.wake(self._arrives)

    def end(self) -> None:
        """Send nothing any more."""
        self._end = True
        self.target.world.wake(self._arrives)

    def cut(self) -> None:
        """Break: of what is under way a part arrives, maybe half a piece, then the end."""
        kept = self._random.randrange(len(self._pieces) + 1)
        broken = self._pieces[kept] if kept < len(self._pieces) else b""
        self._pieces = deque(itertools.islice(self._pieces, kept))
        if len(broken) > 1:
            self._pieces.append(broken[: self._random.randrange(1, len(broken))])
        self.end()

    def close(self) -> None:
        """Take nothing any more."""
        self._closed = True
        self._pieces.clear()

    def _arrive(self) -> str:
        if self._closed or self._held:
            return "closed"
        trouble, world = self.trouble, self.target.world
        if trouble.late and self._random.random() < trouble.late:
            self.coverage["bytes late"] += 1
            self._held = True
            world.at(world.now_ms + trouble.late_ms * self._random.random(), self.target, self._release)
            return "late"
        if self._pieces:
            data = self._with_trouble(self._pieces.popleft())
            self.take(data)
            if not self._pieces:
                self.emptied()
            if (self._pieces or self._end) and not self._closed:
                world.wake(self._arrives)
            return str(len(data))
        if self._end:
            self._closed = True
            self.ended()
        return "end"

    def _with_trouble(self, data: bytes) -> bytes:
        trouble = self.trouble
        drawn = self._random.random()
        if drawn >= trouble.cut + trouble.changed + trouble.repeated:
            return data
        if drawn < trouble.cut:
            self.coverage["connection cut"] += 1
            self.cut()
        elif drawn < trouble.cut + trouble.changed:
            place = self._random.randrange(len(data))
            self.coverage["byte changed"] += 1
            return data[:place] + bytes([data[place] ^ (1 << self._random.randrange(8))]) + data[place + 1 :]
        else:
            self.coverage["bytes repeated"] += 1
            self._pieces.appendleft(data)
        return data

    def _release(self) -> None:
        self._held = False
        self.target.world.wake(self._arrives)


class ControlEnd:
    """One side of a control connection: real frames, which carry the number of a message each."""

    def __init__(self, out: Wire, messages: dict[int, Any]) -> None:
        self.find_function: Any = None
        self._out = out
        self._messages = messages
        self._frames = FrameWriter()
        self._reader = FrameReader()

    def send(self, message: Any, name_function: Any = None) -> None:
        """Send a message; now and then one that may come twice does."""
        self._say(message)
        twice = self._out.trouble.twice
        if twice and _may_come_twice(message) and self._out.source.world.random.random() < twice:
            self._out.coverage["message twice"] += 1
            self._say(message)

    def received(self, data: bytes) -> list[Any]:
        """Return the messages that bytes complete. NET-500x for what is no frame."""
        return [
            self._messages[int.from_bytes(frame.payload, "little")] for frame in self._reader.receive(data)
        ]

    def close(self) -> None:
        """Say no more."""
        self._out.end()

    def _say(self, message: Any) -> None:
        number = len(self._messages)
        self._messages[number] = message
        self._out.send(b"".join(self._frames.encode(FIRST_CONTROL, parts=[number.to_bytes(8, "little")])))


def _may_come_twice(message: Any) -> bool:
    """Whether a message only says that something is so."""
    body = message.body if isinstance(message, FromTasks | ToTasks) else None
    return isinstance(body, PartWritten | EndWritten | CompletionAcknowledged) or (
        isinstance(body, PostToTask) and isinstance(body.message, CheckpointComplete)
    )
