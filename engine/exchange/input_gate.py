"""The input gate of a task: one ordered stream of events out of many channels, with barriers aligned and
watermarks merged.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.failpoints import failpoint
from penstock.engine.api.row_pieces import LIMITS
from penstock.engine.api.stream_elements import (
    MAX_WATERMARK_US,
    Barrier,
    Batch,
    EndOfInput,
    Idle,
    LatencyMarker,
    Watermark,
)
from penstock.engine.exchange.barrier_alignment import Alignment
from penstock.engine.exchange.batch_concat import concat_batches
from penstock.engine.exchange.channel import CHANNEL_BYTES, ConsumerChannel
from penstock.engine.exchange.unaligned_barriers import BarrierAhead, OvertakenRows, UnalignedBarriers
from penstock.engine.exchange.watermark_merge import WatermarkMerge
from penstock.engine.metrics.task_metrics import Queues

# of batches merged into one: as much as a channel holds
_MERGED_BYTES = CHANNEL_BYTES


@dataclass(frozen=True)
class PortEnd:
    """Every channel of a port has ended."""

    port: int


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


class InputGate:
    """Reads the channels in turn and returns the events the task acts on; ``port`` is that of the last batch.

    While a port of ``bounded_ports`` is open, the other ports are not read: the bounded side of a join is
    loaded first. An alignment reads all, for it needs every channel's barrier. A watermark is the minimum
    over the channels that are neither idle nor ended; it never decreases. Idle is returned when every open
    channel is idle. A channel's end counts as the end of its time.

    Queued batches of a port are returned as one of at most ``max_rows`` rows, with the watermarks between
    them behind it. A later watermark changes no result, for each row says itself whether it is late. 0
    returns each batch alone.

    ``sources``: the subtask each channel comes from. ``overtakable``: for each channel, whether a barrier may
    overtake its rows. ``blocking``: see ``Alignment``. ``by_port``: watermarks are merged and returned port
    by port.
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
        max_rows: int = 0,
    ) -> None:
        self._channels = tuple(channels)
        self._ports = tuple(ports)
        self._sources = tuple(sources) or tuple(range(len(self._channels)))
        self._alignment = Alignment(len(self._channels), blocking=blocking)
        self._unaligned = UnalignedBarriers(
            self._channels,
            self._ports,
            self._sources,
            [index for index, may in enumerate(overtakable) if may],
            self._alignment,
        )
        self._watermarks = WatermarkMerge(len(self._channels))
        self._port_watermarks = (
            {port: WatermarkMerge(self._ports.count(port)) for port in self._ports} if by_port else {}
        )
        self._open_by_port = {port: self._ports.count(port) for port in self._ports}
        self._bounded = [port in bounded_ports for port in self._ports]
        # the operator of such ports wants to know the time of each batch
        self._max_rows = 0 if by_port else max_rows
        # while a bounded port is open, the other ports are not read
        self._loading = self._is_loading()
        # events of elements already taken, in order: one element may make several
        self._pending: deque[GateEvent] = deque()
        # the channel to look at first: channels are read in turn
        self._cursor = 0
        self.port = 0

    @property
    def due_ms(self) -> float | None:
        """When a buffered barrier may overtake, monotonic milliseconds; ``None`` when none waits for that."""
        return self._unaligned.due_ms

    @property
    def aligning(self) -> bool:
        """Whether a barrier has arrived on some channels and is missing on others."""
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
        """Whether some readable channel has rows in front."""
        # rows behind other events or behind a barrier do not come next
        if self._pending or self._alignment.barrier is not None:
            return False
        return any(
            isinstance(c.peek(), Batch) and (b or not self._loading)
            for c, b in zip(self._channels, self._bounded, strict=True)
        )

    def next(self, now_ms: float = 0.0, *, only_barriers: bool = False) -> GateEvent | None:
        """Return the next event, or ``None`` when no readable channel has one. ``only_barriers`` reads
        neither rows nor watermarks.
        """
        while True:
            if self._pending:
                return self._pending.popleft()
            # barriers first: one that overtakes must not wait for the rows it overtakes
            if self._unaligned.possible and (events := self._unaligned.advance(now_ms)):
                self._pending.extend(events)
                continue
            index = self._readable(only_barriers)
            if index is None:
                return None
            element = self._channels[index].take()
            if isinstance(element, Batch):
                self.port = self._ports[index]
                self._unaligned.record(index, element)
                # behind a barrier nothing is merged: an alignment reads element by element
                if element.num_rows < self._max_rows and self._alignment.barrier is None:
                    return self._with_queued(element)
                return element
            self._on_control(index, element)

    def put_back(self, port: int, source: int, batches: Sequence[Batch]) -> None:
        """Put restored rows in front of the channel from a subtask; a subtask that is no more has a
        successor.
        """
        # after a rescale there may be fewer channels than sources were
        mine = [index for index, known in enumerate(self._ports) if known == port]
        self._channels[mine[source % len(mine)]].put_back(batches)

    # Elements in their turn.

    def _with_queued(self, first: Batch) -> Batch:
        """Return a batch with those queued on its port behind it and behind watermarks only; the last of the
        watermarks is the next event. Operators have costs of each batch, and of each watermark.
        """
        batches, rows, size = [first], first.num_rows, first.size_bytes
        for index, channel in enumerate(self._channels):
            if self._ports[index] != self.port:
                continue
            while (element := channel.peek()) is not None:
                if isinstance(element, Batch):
                    rows, size = rows + element.num_rows, size + element.size_bytes
                    if rows > self._max_rows or size > min(_MERGED_BYTES, LIMITS.array_bytes):
                        return self._merged(batches)
                    batches.append(element)
                    self._unaligned.record(index, element)
                # barriers, ends and idleness have their own turn
                elif not isinstance(element, Watermark) or element.time_us >= MAX_WATERMARK_US:
                    break
                else:
                    self._on_control(index, element)
                channel.take()
        return self._merged(batches)

    def _merged(self, batches: list[Batch]) -> Batch:
        """Return the batches as one, and drop all pending watermarks but the last."""
        if len(self._pending) > 1 and all(isinstance(event, Watermark) for event in self._pending):
            self._pending = deque([self._pending[-1]])
        return batches[0] if len(batches) == 1 else concat_batches(batches)[0]

    def _readable(self, only_barriers: bool) -> int | None:
        """Return the next readable channel that has an element."""
        count = len(self._channels)
        # an alignment reads all ports: its barrier may be behind rows of a port that waits
        loading = self._loading and self._alignment.barrier is None
        blocked = self._alignment.blocked
        for step in range(count):
            index = (self._cursor + step) % count
            if blocked[index] or (loading and not self._bounded[index]) or not len(self._channels[index]):
                continue
            # back pressure: the task cannot take rows, but a barrier in front may pass
            if only_barriers and not isinstance(self._channels[index].peek(), Barrier):
                continue
            self._cursor = (index + 1) % count
            return index
        return None

    def _on_control(self, index: int, element: object) -> None:
        match element:
            # The end of time is not merged here: it counts when the channel ends.
            case Watermark(time_us) if time_us < MAX_WATERMARK_US:
                self._merge_time(index, lambda merge, channel: merge.on_watermark(channel, time_us))
            # the channel no longer holds the minimum back
            case Idle():
                self._merge_time(index, WatermarkMerge.on_idle)
            # no alignment: one for each channel is forwarded
            case LatencyMarker():
                self._pending.append(element)
            # aligned, or it overtakes
            case Barrier():
                self._on_barrier(index, element)
            # no more of this channel
            case EndOfInput():
                self._on_end(index)

    def _merge_time(
        self, index: int, update: Callable[[WatermarkMerge, int], list[Watermark | Idle]]
    ) -> None:
        """Merge the time of a channel with that of all others, or of its port's channels."""
        if not self._port_watermarks:
            self._pending.extend(update(self._watermarks, index))
            return
        port = self._ports[index]
        merged = update(self._port_watermarks[port], self._ports[:index].count(port))
        self._pending.extend(
            PortTime(port, event.time_us if isinstance(event, Watermark) else None) for event in merged
        )

    def _on_barrier(self, index: int, barrier: Barrier) -> None:
        self._pending.extend(self._unaligned.on_barrier(index, barrier))
        aligned = self._alignment.on_barrier(index, barrier)
        if aligned is None:
            failpoint("W4")
        self._release(aligned)
        # a newer barrier means that older checkpoints were aborted
        self._unaligned.drop_older(max(barrier.checkpoint_id, self._alignment.settled))

    def _on_end(self, index: int) -> None:
        # Order: port end, watermark, barrier, end of input. A barrier that waited for this channel comes
        # after its end.
        self._pending.extend(self._unaligned.on_end(index))
        port = self._ports[index]
        self._open_by_port[port] -= 1
        if self._open_by_port[port] == 0:
            # before the watermark advances: rows buffered for this port are not late
            self._pending.append(PortEnd(port))
            self._loading = self._is_loading()
        self._merge_time(index, WatermarkMerge.on_end)
        self._release(self._alignment.on_end(index))
        if not any(self._open_by_port.values()):
            self._pending.append(EndOfInput())

    def _release(self, barrier: Barrier | None) -> None:
        if barrier is not None:
            self._pending.append(barrier)

    def _is_loading(self) -> bool:
        """Whether bounded ports are open and block the others."""
        return any(
            bounded and self._open_by_port[port] > 0
            for bounded, port in zip(self._bounded, self._ports, strict=True)
        )
