"""Unaligned barriers: a barrier overtakes the rows in front of it, and those rows become channel state of its
checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.stream_elements import Barrier, Batch, Element
from penstock.engine.exchange.barrier_alignment import Alignment, newest
from penstock.engine.exchange.channel import ConsumerChannel
from penstock.engine.exchange.channel_state import ChannelRows


@dataclass(frozen=True)
class BarrierAhead:
    """A barrier that overtakes rows: the task takes its snapshot at once. ``OvertakenRows`` follows when all
    overtaken rows are known.
    """

    barrier: Barrier


@dataclass(frozen=True, eq=False)
class OvertakenRows:
    """The rows a barrier overtook on its way to this gate. They are channel state of its checkpoint, and are
    processed as usual afterwards.
    """

    checkpoint_id: int
    channels: tuple[ChannelRows, ...]


class ChannelStateCollection:
    """Collects the channel state of one checkpoint: all rows read from a channel before its barrier is
    found.
    """

    def __init__(self, checkpoint_id: int, channels: Sequence[ChannelRows], missing: Sequence[int]) -> None:
        self.checkpoint_id = checkpoint_id
        self.missing = list(missing)
        self._channels = tuple(channels)

    def record(self, index: int, batch: Batch) -> None:
        """Record rows read from a channel whose barrier has not been reached."""
        if index in self.missing:
            self._channels[index].add([batch])

    def add_before_barrier(self, index: int, queued: Sequence[Element]) -> None:
        """A channel's barrier, or its end, was found behind the ``queued`` elements."""
        if index in self.missing:
            self.missing.remove(index)
            self._channels[index].add(queued)

    def rows(self) -> OvertakenRows:
        """Return the collected rows."""
        return OvertakenRows(
            self.checkpoint_id, tuple(channel for channel in self._channels if channel.batches)
        )


class UnalignedBarriers:
    """Lets a barrier overtake the rows of an input gate, and collects the rows it overtook.

    A barrier overtakes once its time has come (``overtakes_at_ms``) and it is missing only on channels whose
    rows it may overtake. ``overtakable`` are their indices; ``sources`` are the subtasks that channels come
    from.
    """

    def __init__(
        self,
        channels: Sequence[ConsumerChannel],
        ports: Sequence[int],
        sources: Sequence[int],
        overtakable: Sequence[int],
        alignment: Alignment,
    ) -> None:
        self._channels, self._ports, self._sources = channels, ports, sources
        self._overtakable = tuple(overtakable)
        self._alignment = alignment
        self._collection: ChannelStateCollection | None = None
        # without such channels the gate never asks: barriers are only aligned
        self.possible = bool(self._overtakable)
        self.due_ms: float | None = None
        """When a buffered barrier may overtake, monotonic milliseconds; ``None`` when none waits for that."""

    def advance(self, now_ms: float) -> list[BarrierAhead | OvertakenRows]:
        """Let the newest barrier overtake if it may now, and look for the rows it overtook; return the events
        this makes.
        """
        events: list[BarrierAhead | OvertakenRows] = []
        barrier = self._announced()
        self.due_ms = None
        # still aligned until its time has come
        if barrier is not None and barrier.overtakes_at_ms > now_ms:
            self.due_ms = barrier.overtakes_at_ms
        # it overtakes now: the channels it is missing on have rows in front of it, which become channel state
        elif barrier is not None and self._may_overtake(barrier):
            missing = self._alignment.missing(barrier.checkpoint_id)
            channels = [
                ChannelRows(port, source) for port, source in zip(self._ports, self._sources, strict=True)
            ]
            self._alignment.release(barrier)
            # a newer barrier replaces the collection of an older one: that checkpoint was aborted
            self._collection = ChannelStateCollection(barrier.checkpoint_id, channels, missing)
            events.append(BarrierAhead(barrier))
        return events + self._collect()

    def record(self, index: int, batch: Batch) -> None:
        """Record rows read from a channel: channel state if its barrier has not been reached."""
        if self._collection is not None:
            self._collection.record(index, batch)

    def on_barrier(self, index: int, barrier: Barrier) -> list[OvertakenRows]:
        """A barrier was read from a channel: no further row of it is channel state."""
        if self._collection is None or self._collection.checkpoint_id != barrier.checkpoint_id:
            return []
        return self.on_end(index)

    def on_end(self, index: int) -> list[OvertakenRows]:
        """A channel has ended: none of its further rows is channel state."""
        if self._collection is None:
            return []
        self._collection.add_before_barrier(index, ())
        return self._completed(self._collection)

    def drop_older(self, checkpoint_id: int) -> None:
        """Drop the collection of a checkpoint older than this one: it was aborted for the newer."""
        if self._collection is not None and checkpoint_id > self._collection.checkpoint_id:
            self._collection = None

    def _announced(self) -> Barrier | None:
        """Return the newest barrier known that may overtake at some time and was not released yet."""
        # a barrier is known when it was read from one channel, or is queued on another
        known = [self._alignment.barrier, *(self._channels[index].announced for index in self._overtakable)]
        settled, never = self._alignment.settled, float("inf")
        waiting = [
            b for b in known if b is not None and b.checkpoint_id > settled and b.overtakes_at_ms < never
        ]
        return newest(waiting) if waiting else None

    def _may_overtake(self, barrier: Barrier) -> bool:
        """Whether a barrier is missing only on channels where it may overtake."""
        return set(self._alignment.missing(barrier.checkpoint_id)) <= set(self._overtakable)

    def _collect(self) -> list[OvertakenRows]:
        """Look for the barrier in the queues of the channels it is missing on."""
        collection = self._collection
        if collection is None:
            return []
        for index in tuple(collection.missing):
            # None: the barrier is still on its way in this channel
            queued = self._channels[index].queued_before(collection.checkpoint_id)
            if queued is not None:
                collection.add_before_barrier(index, queued)
        return self._completed(collection)

    def _completed(self, collection: ChannelStateCollection) -> list[OvertakenRows]:
        if collection.missing:
            return []
        self._collection = None
        return [collection.rows()]
