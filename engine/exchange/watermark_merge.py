"""Watermark merging: the event time of an input, from the watermarks and idleness of its channels."""

from __future__ import annotations

from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Idle, Watermark


class WatermarkMerge:
    """The minimum watermark over the channels that are open and not idle. It never decreases."""

    def __init__(self, channels: int) -> None:
        self._times = [MIN_WATERMARK_US] * channels
        # idle or ended: not part of the minimum
        self._silent = [False] * channels
        self._ended = [False] * channels
        self._merged = MIN_WATERMARK_US
        self._all_idle = False

    def on_watermark(self, channel: int, time_us: int) -> list[Watermark | Idle]:
        """Record a channel's watermark; this also ends its idleness."""
        self._times[channel] = max(self._times[channel], time_us)
        self._silent[channel] = False
        return self._merge()

    def on_idle(self, channel: int) -> list[Watermark | Idle]:
        """Record that a channel is idle: it does not count in the minimum until its next watermark."""
        self._silent[channel] = True
        return self._merge()

    def on_end(self, channel: int) -> list[Watermark | Idle]:
        """Record that a channel has ended: it never counts in the minimum again."""
        self._ended[channel] = self._silent[channel] = True
        return self._merge()

    def _merge(self) -> list[Watermark | Idle]:
        active = [time for time, silent in zip(self._times, self._silent, strict=True) if not silent]
        if not active:
            return self._nobody_active()
        # after Idle the same watermark is emitted again: it ends the idleness of the operators behind
        woken, self._all_idle = self._all_idle, False
        lowest = min(active)
        if lowest > self._merged:
            self._merged = lowest
            return [Watermark(lowest)]
        return [Watermark(self._merged)] if woken else []

    def _nobody_active(self) -> list[Watermark | Idle]:
        """All open channels are idle: emit Idle once, after the highest watermark any of them has reached.
        When all have ended, the task itself ends time.
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
