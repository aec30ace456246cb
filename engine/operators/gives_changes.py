"""What window aggregates have in common whose results are given before their windows close, or change after."""

from __future__ import annotations

from typing import Any

from engine.elements import MIN_WATERMARK_US
from engine.operator import ListState, Operator, Output
from engine.thinned_changes import ThinnedChanges


class GivesChanges(Operator, ListState):
    """Changes go out thinned, all of them before a barrier; how far windows have closed is state, the same in all subtasks at a barrier."""

    _changes: ThinnedChanges
    _watermark_us: int

    def list_states(self) -> dict[str, ListState]:
        return {"closed": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [] if self._watermark_us == MIN_WATERMARK_US else [{"reached_us": self._watermark_us}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        self._watermark_us = max([self._watermark_us, *(item["reached_us"] for item in items)])

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        self._changes.give_due(out)

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        self._changes.give(out)

    def on_end(self, out: Output) -> None:
        self._changes.give(out)
