"""How far time has come in an operator: state of one value, the same in all subtasks when they meet at a barrier."""

from __future__ import annotations

from typing import Any

from penstock.engine.elements import MIN_WATERMARK_US


class ReachedTime:
    """Microseconds, beginning at the start of all time; restored it is the latest that any subtask had reached."""

    def __init__(self) -> None:
        self.us = MIN_WATERMARK_US

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [] if self.us == MIN_WATERMARK_US else [{"reached_us": self.us}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        self.us = max([self.us, *(item["reached_us"] for item in items)])
