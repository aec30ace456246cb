"""What window aggregates have in common whose results are given before their windows close, or change
after.
"""

from __future__ import annotations

from typing import Any

from penstock.engine.api.operator import ListState
from penstock.engine.api.stream_elements import MIN_WATERMARK_US
from penstock.engine.operators.change_buffer import GivesThinned


class GivesChanges(GivesThinned, ListState):
    """How far windows have closed is state, the same in all subtasks at a barrier."""

    _watermark_us: int

    def list_states(self) -> dict[str, ListState]:
        return {**super().list_states(), "closed": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [] if self._watermark_us == MIN_WATERMARK_US else [{"reached_us": self._watermark_us}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        self._watermark_us = max([self._watermark_us, *(item["reached_us"] for item in items)])
