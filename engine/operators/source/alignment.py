"""Watermark alignment: splits that are far ahead in event time wait for those behind. This holds in one
subtask, between the subtasks of a source and between the sources of a group.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from penstock.catalog.connectors.common_options import ALIGNMENT_DRIFT, ALIGNMENT_GROUP, ALIGNMENT_INTERVAL
from penstock.catalog.connectors.registry import option
from penstock.catalog.tables import CatalogTable
from penstock.engine.api.operator import Context
from penstock.engine.api.stream_elements import MIN_WATERMARK_US


class AlignedSplit(Protocol):
    """What alignment looks at: the event time of a split, and since when its polls return nothing."""

    time_us: int
    empty_since_ms: float | None


class AlignmentGroup:
    """The times that the subtasks of one group have reached, microseconds; ``None``: that one waits for rows
    or has ended, and nobody waits for it.

    Slot threads share it. Each step is one operation of a dict, which the interpreter does as a whole.
    """

    def __init__(self) -> None:
        self._reached: dict[tuple[str, int], int | None] = {}

    def report(self, member: tuple[str, int], time_us: int | None) -> None:
        """Say how far a subtask (operator id, number) is."""
        self._reached[member] = time_us

    def leave(self, member: tuple[str, int]) -> bool:
        """Remove a subtask; return whether none is left."""
        self._reached.pop(member, None)
        return not self._reached

    def lowest(self) -> int | None:
        """Return the lowest time of the subtasks that others wait for."""
        reached = list(self._reached.values())
        return min((time_us for time_us in reached if time_us is not None), default=None)


class WatermarkAlignments:
    """The groups of the jobs of this process, each by job, attempt and name."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, int, str], AlignmentGroup] = {}

    def join(self, key: tuple[str, int, str], member: tuple[str, int]) -> AlignmentGroup:
        """Return a group that a subtask is a member of from now on. The others wait until it reports."""
        group = self._groups.setdefault(key, AlignmentGroup())
        group.report(member, MIN_WATERMARK_US)
        return group

    def leave(self, key: tuple[str, int, str], member: tuple[str, int]) -> None:
        """Remove a subtask, and its group with the last one."""
        group = self._groups.get(key)
        if group is not None and group.leave(member):
            self._groups.pop(key, None)


@dataclass
class SplitAlignment:
    """One subtask's side of its group. ``limit_us``: splits beyond it wait; None: no split waits."""

    drift_us: int
    interval_ms: int
    group: AlignmentGroup
    services: WatermarkAlignments
    key: tuple[str, int, str]
    member: tuple[str, int]
    limit_us: int | None = None
    due_ms: float = 0.0

    def update(self, now_ms: float, splits: Iterable[AlignedSplit]) -> None:
        """Report this subtask's lowest split, and learn the limit when that is due.

        A split whose polls have returned nothing for an interval is at its end: nobody waits for it.
        """
        active = [split.time_us for split in splits if not self._is_idle(split, now_ms)]
        self.group.report(self.member, min(active, default=None))
        if now_ms >= self.due_ms:
            self.due_ms = now_ms + self.interval_ms
            self.learn()

    def learn(self) -> None:
        """Learn the limit from what all subtasks have reported. Called before a subtask waits."""
        lowest = self.group.lowest()
        self.limit_us = None if lowest is None else lowest + self.drift_us

    def _is_idle(self, split: AlignedSplit, now_ms: float) -> bool:
        return split.empty_since_ms is not None and now_ms - split.empty_since_ms >= self.interval_ms

    def allows(self, split: AlignedSplit) -> bool:
        """Whether a split is near enough to those behind it to be read."""
        return self.limit_us is None or split.time_us <= self.limit_us

    def leave(self) -> None:
        """Nobody waits for this subtask any more."""
        self.services.leave(self.key, self.member)


def alignment_of(table: CatalogTable, context: Context) -> SplitAlignment | None:
    """Return the alignment of one subtask of a source; None for a table without
    ``scan.watermark.alignment.max-drift``.
    """
    if ALIGNMENT_DRIFT not in table.options or table.watermark is None:
        return None
    drift_ms, interval_ms = option(table, ALIGNMENT_DRIFT), option(table, ALIGNMENT_INTERVAL)
    assert isinstance(drift_ms, int) and isinstance(interval_ms, int), "both are durations"
    services: WatermarkAlignments = context.services.get(WatermarkAlignments)
    # a table without a group is aligned with itself
    name = str(option(table, ALIGNMENT_GROUP) or f"source {context.operator_id}")
    key, member = (context.job_id, context.attempt, name), (context.operator_id, context.subtask)
    return SplitAlignment(drift_ms * 1000, interval_ms, services.join(key, member), services, key, member)
