"""Barrier alignment: which channels a checkpoint's barrier has arrived on, and which are blocked until it has
arrived on all.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.stream_elements import Barrier


class Alignment:
    """Tracks, per input channel, whether the current barrier has arrived, whether the channel is blocked
    behind it, and whether it has ended.

    Only one checkpoint runs at a time. So a newer barrier means that the older checkpoint was aborted, and an
    older barrier after it is ignored. ``blocking`` False does not block channels behind their barriers: rows
    of the next checkpoint then count in this one (at least once).
    """

    def __init__(self, channels: int, *, blocking: bool = True) -> None:
        self.blocked = [False] * channels
        self.barrier: Barrier | None = None
        self.settled = 0
        """The newest checkpoint whose barrier was released here."""
        self._came = [False] * channels
        self._ended = [False] * channels
        self._blocking = blocking

    def on_barrier(self, channel: int, barrier: Barrier) -> Barrier | None:
        """Record a channel's barrier; return the barrier when it was the last one missing."""
        current = self.barrier
        # a barrier of a checkpoint that is over or was aborted
        if barrier.checkpoint_id <= self.settled or (
            current is not None and barrier.checkpoint_id < current.checkpoint_id
        ):
            return None
        # Barriers that are only ever aligned never race: two at once are a fault of the coordinator.
        if current is not None and barrier.checkpoint_id != current.checkpoint_id:
            self._abandon(current, barrier)
        self.barrier = barrier
        self._came[channel] = True
        # exactly once: rows behind the barrier wait until it has arrived on all channels
        self.blocked[channel] = self._blocking
        return self._released()

    def on_end(self, channel: int) -> Barrier | None:
        """Count an ended channel as aligned for ever; return the barrier when it was the last one missing."""
        # no barrier follows on this channel, so none is waited for
        self._ended[channel] = True
        return self._released()

    def complete(self) -> bool:
        """Whether the current barrier has arrived on every channel that has not ended."""
        return all(came or ended for came, ended in zip(self._came, self._ended, strict=True))

    def missing(self, checkpoint_id: int) -> list[int]:
        """Return the open channels on which a checkpoint's barrier has not arrived."""
        # before the first barrier of a checkpoint it is missing everywhere
        mine = self.barrier is not None and self.barrier.checkpoint_id == checkpoint_id
        return [
            index
            for index, (came, ended) in enumerate(zip(self._came, self._ended, strict=True))
            if not ended and not (mine and came)
        ]

    def release(self, barrier: Barrier) -> None:
        """Release a barrier without the channels it is missing on; no channel stays blocked."""
        self._settle(barrier)

    def _abandon(self, current: Barrier, newer: Barrier) -> None:
        if self._blocking and current.overtakes_at_ms == newer.overtakes_at_ms == float("inf"):
            message = (
                f"barrier {newer.checkpoint_id} came on a channel while barrier {current.checkpoint_id} "
                "was being aligned"
            )
            raise PenstockError("INT-9011", message, kind=Kind.INTERNAL, sqlstate="XX000")
        self._clear()

    def _released(self) -> Barrier | None:
        if self.barrier is None or not self.complete():
            return None
        aligned = self.barrier
        self._settle(aligned)
        return aligned

    def _settle(self, barrier: Barrier) -> None:
        self.settled = barrier.checkpoint_id
        self._clear()

    def _clear(self) -> None:
        self.barrier = None
        self.blocked = [False] * len(self.blocked)
        self._came = [False] * len(self._came)


def newest(barriers: Sequence[Barrier]) -> Barrier | None:
    """Return the barrier of the newest checkpoint; of several, the one that may overtake first."""
    return max(barriers, key=lambda barrier: (barrier.checkpoint_id, -barrier.overtakes_at_ms), default=None)
