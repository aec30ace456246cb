"""Where a source stands behind its history: all splits of that read to their end, and no row given."""

from __future__ import annotations

from typing import Any

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, HeadOperator, ListState, Output, SourceStatus
from penstock.planner.physical.operator_specs import ReadSplitsSpec

_REST_MS = 1_000


class ReadSplitsOperator(HeadOperator, ListState):
    """Its state is that of the source with the same id, which goes on from it."""

    def __init__(self, spec: ReadSplitsSpec, options: JobOptions) -> None:
        self._splits = spec.splits

    def open(self, context: Context) -> None:
        self._context = context

    def list_states(self) -> dict[str, ListState]:
        return {"splits": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        return [{"split": split, "position": None, "finished": True} for split in self._splits]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        """Nothing is restored into a history: it begins anew."""

    def poll(self, out: Output) -> SourceStatus:
        return SourceStatus(rests=True, wake_ms=int(self._context.clock.monotonic_ms()) + _REST_MS)
