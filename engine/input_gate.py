"""The input gate of a task: one ordered flow of events out of many channels, with barriers aligned and watermarks merged."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from engine.barriers import Alignment
from engine.channels import ConsumerChannel
from engine.elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Barrier, Batch, EndOfInput, Idle, LatencyMarker, Watermark
from engine.failpoints import failpoint
from engine.task_figures import Queues


@dataclass(frozen=True)
class PortEnd:
    """Every channel of a port has ended."""

    port: int


GateEvent = Batch | Watermark | Idle | Barrier | PortEnd | EndOfInput | LatencyMarker


class InputGate:
    """Takes from the channels in turn and gives what the task must act on; ``port`` tells where the last batch came from.

    While ports named in ``bounded_ports`` are still open, the other ports are not read (the bounded side is loaded first), except during an
    alignment, which needs every channel's barrier. A watermark given is the minimum over channels that are neither idle nor ended, and never
    goes back; Idle is given when every open channel is idle. The end of time counts when the channel ends, which is when its port's end is told.
    """

    def __init__(self, channels: Sequence[ConsumerChannel], ports: Sequence[int], bounded_ports: Sequence[int] = ()) -> None:
        self._channels = tuple(channels)
        self._ports = tuple(ports)
        self._alignment = Alignment(len(self._channels))
        self._watermarks = WatermarkMerge(len(self._channels))
        self._open_by_port = {port: self._ports.count(port) for port in self._ports}
        self._bounded = [port in bounded_ports for port in self._ports]
        self._held = self._holding()
        self._pending: deque[GateEvent] = deque()
        self._then_stop = False
        self._cursor = 0
        self.port = 0

    @property
    def aligning(self) -> bool:
        """Whether a barrier has come on some channels and is awaited on others."""
        return self._alignment.checkpoint_id is not None

    def queues(self) -> Queues:
        """Return how full the channels are; any thread may ask."""
        channels = self._channels
        capacity = sum(channel.capacity for channel in channels)
        return Queues(sum(len(channel) for channel in channels), capacity, sum(channel.size_bytes for channel in channels))

    def next(self, *, only_barriers: bool = False) -> GateEvent | None:
        """Return the next event, or ``None`` when no readable channel has one; ``only_barriers`` takes no rows and no news of time."""
        while True:
            if self._pending:
                return self._pending.popleft()
            index = self._readable(only_barriers)
            if index is None:
                return None
            element = self._channels[index].take()
            if isinstance(element, Batch):
                self.port = self._ports[index]
                return element
            self._on_control(index, element)

    def _readable(self, only_barriers: bool) -> int | None:
        """Return the next channel in turn that may be read now and has something."""
        count = len(self._channels)
        held = self._held and self._alignment.checkpoint_id is None
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
                self._pending.extend(self._watermarks.on_watermark(index, time_us))
            case Idle():
                self._pending.extend(self._watermarks.on_idle(index))
            case LatencyMarker():
                self._pending.append(element)
            case Barrier(checkpoint_id, then_stop):
                self._then_stop = then_stop
                aligned = self._alignment.on_barrier(index, checkpoint_id)
                if aligned is None:
                    failpoint("W4")
                self._release(aligned)
            case EndOfInput():
                self._on_end(index)

    def _on_end(self, index: int) -> None:
        port = self._ports[index]
        self._open_by_port[port] -= 1
        if self._open_by_port[port] == 0:
            self._pending.append(PortEnd(port))  # before time moves on: rows held for this port are on time now
            self._held = self._holding()
        self._pending.extend(self._watermarks.on_end(index))
        self._release(self._alignment.on_end(index))
        if not any(self._open_by_port.values()):
            self._pending.append(EndOfInput())

    def _release(self, checkpoint_id: int | None) -> None:
        if checkpoint_id is not None:
            self._pending.append(Barrier(checkpoint_id, self._then_stop))

    def _holding(self) -> bool:
        """Whether bounded ports are still open while others wait for them."""
        return any(bounded and self._open_by_port[port] > 0 for bounded, port in zip(self._bounded, self._ports, strict=True))


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
        """All open channels idle: say so once, at the highest time any of them has reached. All ended: the task ends time itself."""
        if self._all_idle or all(self._ended):
            return []
        self._all_idle = True
        events: list[Watermark | Idle] = []
        highest = max(time for time, ended in zip(self._times, self._ended, strict=True) if not ended)
        if self._merged < highest < MAX_WATERMARK_US:
            self._merged = highest
            events.append(Watermark(highest))
        return [*events, Idle()]
