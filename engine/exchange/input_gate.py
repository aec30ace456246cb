"""The input gate of a task: one ordered flow of events out of many channels, with barriers aligned or gone
ahead, and watermarks merged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.stream_elements import (
    MAX_WATERMARK_US,
    MIN_WATERMARK_US,
    Barrier,
    Batch,
    Element,
    EndOfInput,
    Idle,
    LatencyMarker,
    Watermark,
)
from penstock.engine.exchange.barrier_alignment import Alignment, newest
from penstock.engine.exchange.channel import ConsumerChannel
from penstock.engine.exchange.channel_state import ChannelRows
from penstock.engine.metrics.task_metrics import Queues


@dataclass(frozen=True)
class PortEnd:
    """Every channel of a port has ended."""

    port: int


@dataclass(frozen=True)
class BarrierAhead:
    """A barrier that has not come on every channel in its turn: act on it at once. ``OvertakenRows``
    follows when all that it overtook is known.
    """

    barrier: Barrier


@dataclass(frozen=True, eq=False)
class OvertakenRows:
    """The rows a barrier has overtaken on the way to this gate: they belong to its checkpoint, and go on
    to be taken as usual.
    """

    checkpoint_id: int
    channels: tuple[ChannelRows, ...]


@dataclass(frozen=True)
class PortTime:
    """The watermark of one port, ``None`` when all its open channels are idle."""

    port: int
    time_us: int | None


GateEvent = (
    Batch
    | Watermark
    | PortTime
    | Idle
    | Barrier
    | BarrierAhead
    | OvertakenRows
    | PortEnd
    | EndOfInput
    | LatencyMarker
)


class Collection:
    """The rows in flight of one checkpoint while channels are still missing: all that is taken from one
    before its barrier is found.
    """

    def __init__(self, checkpoint_id: int, channels: Sequence[ChannelRows], missing: Sequence[int]) -> None:
        self.checkpoint_id = checkpoint_id
        self.missing = list(missing)
        self._channels = tuple(channels)

    def record(self, index: int, batch: Batch) -> None:
        """Note rows taken from a channel whose barrier has not been found."""
        if index in self.missing:
            self._channels[index].add([batch])

    def add_before_barrier(self, index: int, queued: Sequence[Element]) -> None:
        """A channel's barrier, or its end, has been found behind what is ``queued``."""
        if index in self.missing:
            self.missing.remove(index)
            self._channels[index].add(queued)

    def rows(self) -> OvertakenRows:
        """Return what was found."""
        return OvertakenRows(
            self.checkpoint_id, tuple(channel for channel in self._channels if channel.batches)
        )


class InputGate:
    """Takes from the channels in turn and gives what the task must act on; ``port`` tells where the last
    batch came from.

    While ports named in ``bounded_ports`` are still open, the other ports are not read (the bounded side is
    loaded first), except during an alignment, which needs every channel's barrier. A watermark given is the
    minimum over channels that are neither idle nor ended, and never goes back; Idle is given when every open
    channel is idle. The end of time counts when the channel ends, which is when its port's end is told.

    ``sources``: by channel the subtask it comes from. ``overtakable``: by channel whether a barrier may go
    ahead of its rows once its time has come; it does when it has had its turn on every channel where it may
    not. ``blocking``: see ``Alignment``. ``by_port``: watermarks are merged and told port by port.
    """

    def __init__(
        self,
        channels: Sequence[ConsumerChannel],
        ports: Sequence[int],
        bounded_ports: Sequence[int] = (),
        *,
        sources: Sequence[int] = (),
        overtakable: Sequence[bool] = (),
        blocking: bool = True,
        by_port: bool = False,
    ) -> None:
        self._channels = tuple(channels)
        self._ports = tuple(ports)
        self._sources = tuple(sources) or tuple(range(len(self._channels)))
        self._overtakable = tuple(index for index, may in enumerate(overtakable) if may)
        self._alignment = Alignment(len(self._channels), blocking=blocking)
        self._collection: Collection | None = None
        self._watermarks = WatermarkMerge(len(self._channels))
        self._port_watermarks = (
            {port: WatermarkMerge(self._ports.count(port)) for port in self._ports} if by_port else {}
        )
        self._open_by_port = {port: self._ports.count(port) for port in self._ports}
        self._bounded = [port in bounded_ports for port in self._ports]
        self._held = self._holding()
        self._pending: deque[GateEvent] = deque()
        self._cursor = 0
        self.port = 0
        self.due_ms: float | None = None
        """When a barrier that waits its turn may overtake, monotonic milliseconds; ``None`` when none
        waits for that.
        """

    @property
    def aligning(self) -> bool:
        """Whether a barrier has come on some channels and is awaited on others."""
        return self._alignment.barrier is not None

    def queues(self) -> Queues:
        """Return how full the channels are; any thread may ask."""
        channels = self._channels
        capacity = sum(channel.capacity for channel in channels)
        return Queues(
            sum(len(channel) for channel in channels),
            capacity,
            sum(channel.size_bytes for channel in channels),
        )

    @property
    def rows_ready(self) -> bool:
        """Whether some channel that may be read has rows in front."""
        if self._pending or self._alignment.barrier is not None:
            return False
        return any(
            isinstance(c.peek(), Batch) and (b or not self._held)
            for c, b in zip(self._channels, self._bounded, strict=True)
        )

    def next(self, now_ms: float = 0.0, *, only_barriers: bool = False) -> GateEvent | None:
        """Return the next event, or ``None`` when no readable channel has one; ``only_barriers`` takes no
        rows and no news of time.
        """
        while True:
            if self._pending:
                return self._pending.popleft()
            if self._overtakable and self._look_ahead(now_ms):
                continue
            index = self._readable(only_barriers)
            if index is None:
                return None
            element = self._channels[index].take()
            if isinstance(element, Batch):
                self.port = self._ports[index]
                if self._collection is not None:
                    self._collection.record(index, element)
                return element
            self._on_control(index, element)

    def put_back(self, port: int, source: int, batches: Sequence[Batch]) -> None:
        """Put restored rows before all that comes on the channel from a subtask; one that is no more has
        its successor's.
        """
        mine = [index for index, known in enumerate(self._ports) if known == port]
        self._channels[mine[source % len(mine)]].put_back(batches)

    # Barriers that go ahead.

    def _look_ahead(self, now_ms: float) -> bool:
        """Let a barrier go ahead when it may, and look for what it has overtaken; return whether there is
        an event for it.
        """
        barrier = self._announced()
        self.due_ms = None
        if barrier is not None and barrier.overtakes_at_ms > now_ms:
            self.due_ms = barrier.overtakes_at_ms
        elif barrier is not None and self._had_its_turn(barrier):
            missing = self._alignment.missing(barrier.checkpoint_id)
            channels = [
                ChannelRows(port, source) for port, source in zip(self._ports, self._sources, strict=True)
            ]
            self._alignment.release(barrier)
            self._collection = Collection(barrier.checkpoint_id, channels, missing)
            self._pending.append(BarrierAhead(barrier))
        if self._collection is not None:
            self._collect(self._collection)
        return bool(self._pending)

    def _announced(self) -> Barrier | None:
        """Return the newest barrier known that may some time overtake and has not gone on yet."""
        known = [self._alignment.barrier, *(self._channels[index].announced for index in self._overtakable)]
        settled, never = self._alignment.settled, float("inf")
        waiting = [
            b for b in known if b is not None and b.checkpoint_id > settled and b.overtakes_at_ms < never
        ]
        return newest(waiting) if waiting else None

    def _had_its_turn(self, barrier: Barrier) -> bool:
        """Whether a barrier is missing only where it may overtake."""
        return set(self._alignment.missing(barrier.checkpoint_id)) <= set(self._overtakable)

    def _collect(self, collection: Collection) -> None:
        for index in tuple(collection.missing):
            queued = self._channels[index].queued_before(collection.checkpoint_id)
            if queued is not None:
                collection.add_before_barrier(index, queued)
        self._report_when_complete(collection)

    def _report_when_complete(self, collection: Collection) -> None:
        if not collection.missing:
            self._collection = None
            self._pending.append(collection.rows())

    # What comes in its turn.

    def _readable(self, only_barriers: bool) -> int | None:
        """Return the next channel in turn that may be read now and has something."""
        count = len(self._channels)
        held = self._held and self._alignment.barrier is None
        blocked = self._alignment.blocked
        for step in range(count):
            index = (self._cursor + step) % count
            if blocked[index] or (held and not self._bounded[index]) or not len(self._channels[index]):
                continue
            if only_barriers and not isinstance(self._channels[index].peek(), Barrier):
                continue
            self._cursor = (index + 1) % count
            return index
        return None

    def _on_control(self, index: int, element: object) -> None:
        match element:
            case Watermark(time_us) if time_us < MAX_WATERMARK_US:
                self._merge_time(index, lambda merge, channel: merge.on_watermark(channel, time_us))
            case Idle():
                self._merge_time(index, WatermarkMerge.on_idle)
            case LatencyMarker():
                self._pending.append(element)
            case Barrier():
                self._on_barrier(index, element)
            case EndOfInput():
                self._on_end(index)

    def _merge_time(self, index: int, news: Callable[[WatermarkMerge, int], list[Watermark | Idle]]) -> None:
        """Merge news of a channel's time with that of all others, or with those of its port."""
        if not self._port_watermarks:
            self._pending.extend(news(self._watermarks, index))
            return
        port = self._ports[index]
        told = news(self._port_watermarks[port], self._ports[:index].count(port))
        self._pending.extend(
            PortTime(port, event.time_us if isinstance(event, Watermark) else None) for event in told
        )

    def _on_barrier(self, index: int, barrier: Barrier) -> None:
        collection = self._collection
        if collection is not None and collection.checkpoint_id == barrier.checkpoint_id:
            collection.add_before_barrier(index, ())
            self._report_when_complete(collection)
        aligned = self._alignment.on_barrier(index, barrier)
        if aligned is None:
            failpoint("W4")
        self._release(aligned)
        if (
            collection is not None
            and max(barrier.checkpoint_id, self._alignment.settled) > collection.checkpoint_id
        ):
            self._collection = None  # given up for a newer one

    def _on_end(self, index: int) -> None:
        if self._collection is not None:
            self._collection.add_before_barrier(index, ())
            self._report_when_complete(self._collection)
        port = self._ports[index]
        self._open_by_port[port] -= 1
        if self._open_by_port[port] == 0:
            # before time moves on: rows held for this port are on time now
            self._pending.append(PortEnd(port))
            self._held = self._holding()
        self._merge_time(index, WatermarkMerge.on_end)
        self._release(self._alignment.on_end(index))
        if not any(self._open_by_port.values()):
            self._pending.append(EndOfInput())

    def _release(self, barrier: Barrier | None) -> None:
        if barrier is not None:
            self._pending.append(barrier)

    def _holding(self) -> bool:
        """Whether bounded ports are still open while others wait for them."""
        return any(
            bounded and self._open_by_port[port] > 0
            for bounded, port in zip(self._bounded, self._ports, strict=True)
        )


class WatermarkMerge:
    """The minimum watermark over channels that are open and not idle; it never goes back."""

    def __init__(self, channels: int) -> None:
        self._times = [MIN_WATERMARK_US] * channels
        self._silent = [False] * channels
        self._ended = [False] * channels
        self._merged = MIN_WATERMARK_US
        self._all_idle = False

    def on_watermark(self, channel: int, time_us: int) -> list[Watermark | Idle]:
        """Take a channel's watermark, which also ends its idleness."""
        self._times[channel] = max(self._times[channel], time_us)
        self._silent[channel] = False
        return self._merge()

    def on_idle(self, channel: int) -> list[Watermark | Idle]:
        """Let a channel hold nobody back until its next watermark."""
        self._silent[channel] = True
        return self._merge()

    def on_end(self, channel: int) -> list[Watermark | Idle]:
        """Let a channel hold nobody back for ever."""
        self._ended[channel] = self._silent[channel] = True
        return self._merge()

    def _merge(self) -> list[Watermark | Idle]:
        active = [time for time, silent in zip(self._times, self._silent, strict=True) if not silent]
        if not active:
            return self._nobody_active()
        woken, self._all_idle = self._all_idle, False
        lowest = min(active)
        if lowest > self._merged:
            self._merged = lowest
            return [Watermark(lowest)]
        return [Watermark(self._merged)] if woken else []

    def _nobody_active(self) -> list[Watermark | Idle]:
        """All open channels idle: say so once, at the highest time any of them has reached. All ended: the
        task ends time itself.
        """
        if self._all_idle or all(self._ended):
            return []
        self._all_idle = True
        events: list[Watermark | Idle] = []
        highest = max(time for time, ended in zip(self._times, self._ended, strict=True) if not ended)
        if self._merged < highest < MAX_WATERMARK_US:
            self._merged = highest
            events.append(Watermark(highest))
        return [*events, Idle()]
