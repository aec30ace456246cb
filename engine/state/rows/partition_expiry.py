"""PartitionEnds: when the window of each partition ends, by slot."""

from __future__ import annotations

import numpy as np

from penstock.engine.api.stream_elements import MAX_WATERMARK_US
from penstock.engine.state.index.word_index import grown


class PartitionEnds:
    """Ends of windows by the slot of their partition, microseconds. Derived from the rows: whoever
    restores rows notes their ends again.
    """

    def __init__(self) -> None:
        self._ends = np.zeros(0, np.int64)
        self._first = MAX_WATERMARK_US

    def note(self, slots: np.ndarray, ends: np.ndarray, capacity: int) -> None:
        """Say when the windows of slots (all below ``capacity``) end."""
        if capacity > self._ends.size:
            self._ends = grown(self._ends, capacity)
        self._ends[slots] = ends
        if ends.size:
            self._first = min(self._first, int(ends.min()))

    def due(self, live: np.ndarray, watermark_us: int) -> np.ndarray:
        """Return those of the live slots whose window has ended, by end; called with all of them."""
        if self._first > watermark_us:
            return live[:0]
        ends = self._ends[live]
        ended = ends <= watermark_us
        self._first = int(ends[~ended].min(initial=MAX_WATERMARK_US))
        return live[ended][np.argsort(ends[ended], kind="stable")]
