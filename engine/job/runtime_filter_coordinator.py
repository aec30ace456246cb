"""The coordinator of runtime filters: it merges the join keys of a join's loaded side, and sends them to the
scans of the other side.

A filter only saves work: the rows it drops have no match. So no checkpoint contains it. After a restore the
joins report the keys of their restored state, and the filters are built again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.engine.api.operator import JoinKeys, KeysKnown
from penstock.engine.task.messages import OperatorEventReported, TaskId, TaskMessage
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.physical.operator_specs import JobGraph
from penstock.planner.physical.runtime_filter import RuntimeFilter


class FilteredTask(Protocol):
    """The interface of a task handle that the coordinator needs."""

    @property
    def task_id(self) -> TaskId:
        """The id of the task."""

    def post(self, message: TaskMessage) -> None:
        """Post a message to the task."""


class RuntimeFilterCoordinator:
    """Merges, for one deployment, the keys that the subtasks of a join report, and sends them once all have
    reported.
    """

    def __init__(self, graph: JobGraph, tasks: Sequence[FilteredTask]) -> None:
        # By join: the keys that each of its subtasks has reported.
        self._keys: dict[str, dict[TaskId, JoinKeys]] = {}
        # By join: how many subtasks must report.
        self._subtasks: dict[str, int] = {}
        # By chain: the joins whose keys its scans filter by.
        filtering: dict[int, set[str]] = {}
        for chain in graph.chains:
            for spec in chain.operators:
                if isinstance(spec.node, BinaryJoin) and spec.node.pruned is not None:
                    self._subtasks[spec.operator_id] = chain.parallelism
                if isinstance(spec.node, RuntimeFilter):
                    filtering.setdefault(chain.chain_id, set()).add(spec.node.join_id)
        # Only tasks with such a scan get keys.
        self._tasks = [
            (task, filtering[task.task_id.chain]) for task in tasks if task.task_id.chain in filtering
        ]

    def on_operator_event(self, report: OperatorEventReported) -> None:
        """Process an event of an operator; only a join's keys are used."""
        if not isinstance(report.event, JoinKeys):
            return
        join_id, reported = report.operator_id, self._keys.setdefault(report.operator_id, {})
        # A later report of a subtask replaces its earlier one.
        reported[report.task] = report.event
        # a filter of some subtasks' keys would drop rows that match in another subtask
        if len(reported) < self._subtasks[join_id]:
            return
        # lazy: kernels are loaded only once there are keys
        from penstock.engine.operators.join.runtime_filter import merge_keys

        known = merge_keys(list(reported.values()))
        # no key set to filter by: the scans stay unfiltered
        if known.keys is None:
            return
        for task, joins in self._tasks:
            if join_id in joins:
                task.post(KeysKnown(join_id, known))
