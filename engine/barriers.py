"""Alignment of barriers: a channel whose barrier came waits until the barrier has come on all of them."""

from __future__ import annotations

from catalog.errors import Kind, PenstockError


class Alignment:
    """Knows, per input channel, whether it is blocked behind the current barrier or has ended."""

    def __init__(self, channels: int) -> None:
        self.blocked = [False] * channels
        self._ended = [False] * channels
        self._checkpoint_id: int | None = None

    @property
    def checkpoint_id(self) -> int | None:
        """The checkpoint being aligned, or ``None``."""
        return self._checkpoint_id

    def on_barrier(self, channel: int, checkpoint_id: int) -> int | None:
        """Block a channel behind its barrier; return the checkpoint id when that was the last one missing."""
        if self._checkpoint_id is not None and checkpoint_id != self._checkpoint_id:
            message = f"barrier {checkpoint_id} came on a channel while barrier {self._checkpoint_id} was being aligned"
            raise PenstockError("INT-9011", message, kind=Kind.INTERNAL, sqlstate="XX000")
        self._checkpoint_id = checkpoint_id
        self.blocked[channel] = True
        return self._released()

    def on_end(self, channel: int) -> int | None:
        """Count an ended channel as aligned for ever; return the checkpoint id when it was the last one missing."""
        self._ended[channel] = True
        return self._released()

    def complete(self) -> bool:
        """Whether the current barrier has come on every channel that has not ended."""
        return all(blocked or ended for blocked, ended in zip(self.blocked, self._ended, strict=True))

    def _released(self) -> int | None:
        if self._checkpoint_id is None or not self.complete():
            return None
        aligned, self._checkpoint_id = self._checkpoint_id, None
        self.blocked = [False] * len(self.blocked)
        return aligned
