"""Watermark states: the event time an operator has reached, one value that all subtasks agree on at a
barrier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.engine.api.operator import KeyGroups, ListState
from penstock.engine.api.stream_elements import MIN_WATERMARK_US


class KeyGroupWatermarkState(ListState):
    """Microseconds, beginning at the start of all time. A list state, so that no keyed entry is rewritten
    when time advances.

    It is restored before the keyed states that read it, and has the watermark by key group. Older checkpoints
    lack it: the watermark is unknown then.
    """

    def __init__(self, groups: KeyGroups) -> None:
        self.us = MIN_WATERMARK_US
        self._groups = groups
        # By key group, of the checkpoint restored: subtasks may have differed, and rescaling moves key
        # groups.
        self._restored: np.ndarray | None = None

    def snapshot_items(self) -> list[dict[str, Any]]:
        # One item a subtask: the range of its key groups, and its watermark.
        return [{"first_group": self._groups.start, "end_group": self._groups.end, "passed_us": self.us}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        if items:
            # Groups that no item names stay unknown.
            self._restored = np.full(self._groups.max_parallelism, MIN_WATERMARK_US)
        for item in items:
            assert self._restored is not None
            self._restored[item["first_group"] : item["end_group"]] = item["passed_us"]

    def of(self, groups: np.ndarray) -> np.ndarray:
        """Return the watermark of key groups at the restored checkpoint, the start of all time where it is
        unknown.
        """
        return np.full(groups.size, MIN_WATERMARK_US) if self._restored is None else self._restored[groups]

    def least_us(self, otherwise: int) -> int:
        """Return the least watermark of this subtask's key groups, ``otherwise`` where it is unknown."""
        return (
            otherwise
            if self._restored is None
            else int(self._restored[self._groups.start : self._groups.end].min())
        )


class OperatorWatermarkState:
    """Microseconds, beginning at the start of all time; restored it is the latest that any subtask had
    reached.
    """

    def __init__(self) -> None:
        self.us = MIN_WATERMARK_US

    # Nothing reached yet: no item.
    def snapshot_items(self) -> list[dict[str, Any]]:
        return [] if self.us == MIN_WATERMARK_US else [{"reached_us": self.us}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        self.us = max([self.us, *(item["reached_us"] for item in items)])
