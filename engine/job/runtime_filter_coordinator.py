"""Runtime filters: what the loaded sides of joins tell of their keys, gathered for the scans of the other
sides.

A filter means nothing: rows it keeps from a join would have met no one there. So none is part of a
checkpoint; a job that is restored has its filters again when the joins have told the keys of their restored
state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.engine.api.operator import JoinKeys, KeysKnown
from penstock.engine.task.messages import OperatorEventReported, TaskId, TaskMessage
from penstock.planner.physical.operator_specs import JobGraph, JoinSpec
from penstock.planner.physical.runtime_filter import RuntimeFilterSpec


class FilteredTask(Protocol):
    """What is asked of a task's handle."""

    @property
    def task_id(self) -> TaskId:
        """Which task it is."""

    def post(self, message: TaskMessage) -> None:
        """Leave a message for the task."""


class RuntimeFilterCoordinator:
    """Gathers, for one deployment, the keys each subtask of a join tells, and passes them on once all
    have.
    """

    def __init__(self, graph: JobGraph, tasks: Sequence[FilteredTask]) -> None:
        self._keys: dict[str, dict[TaskId, JoinKeys]] = {}
        self._subtasks: dict[str, int] = {}
        filtering: dict[int, set[str]] = {}
        for chain in graph.chains:
            for spec in chain.operators:
                if isinstance(spec, JoinSpec) and spec.pruned is not None:
                    self._subtasks[spec.operator_id] = chain.parallelism
                if isinstance(spec, RuntimeFilterSpec):
                    filtering.setdefault(chain.chain_id, set()).add(spec.join_id)
        self._tasks = [
            (task, filtering[task.task_id.chain]) for task in tasks if task.task_id.chain in filtering
        ]

    def on_operator_event(self, report: OperatorEventReported) -> None:
        """Take the keys of one subtask of a join, if it is that which is told."""
        if not isinstance(report.event, JoinKeys):
            return
        join_id, reported = report.operator_id, self._keys.setdefault(report.operator_id, {})
        reported[report.task] = report.event
        if len(reported) < self._subtasks[join_id]:
            return
        # kernels: not before there are keys
        from penstock.engine.operators.join.runtime_filter import merge_keys

        known = merge_keys(list(reported.values()))
        if known.keys is None:
            return
        for task, joins in self._tasks:
            if join_id in joins:
                task.post(KeysKnown(join_id, known))
