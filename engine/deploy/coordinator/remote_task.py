"""A task of a worker as the job's master holds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.engine.metrics.task_metrics import OperatorFigures, TaskFigures
from penstock.engine.task.messages import TaskId, TaskMessage
from penstock.engine.task.task import TaskPhase
from penstock.planner.physical.operator_specs import AnyOperatorSpec, Chain


class RemoteTask:
    """Sends what is posted; its figures are those the worker said last."""

    def __init__(
        self, chain: Chain, subtask: int, *, is_source: bool, send: Callable[[TaskId, TaskMessage], None]
    ) -> None:
        self.task_id = TaskId(chain.chain_id, subtask)
        self.is_source = is_source
        self.operators: tuple[AnyOperatorSpec, ...] = chain.operators
        self._send = send
        nothing = tuple(OperatorFigures(spec.operator_id, spec.name) for spec in chain.operators)
        self._figures = TaskFigures(chain.chain_id, subtask, TaskPhase.NEW, is_source, nothing)
        self._delivered: dict[str, int] = {}

    @property
    def phase(self) -> str:
        """Where it is in its life."""
        return self._figures.phase

    def figures(self) -> TaskFigures:
        """Return what the worker said last; rows that have come here count even if it has not said so yet."""
        known, delivered = self._figures, self._delivered
        if not delivered:
            return known
        operators = tuple(
            replace(each, rows_in=max(each.rows_in, delivered.get(each.operator_id, 0)))
            for each in known.operators
        )
        return replace(known, operators=operators)

    def post(self, message: TaskMessage) -> None:
        """Send a message to the task."""
        self._send(self.task_id, message)

    def counted(self, figures: TaskFigures) -> None:
        """Take the worker's figures."""
        self._figures = figures

    def delivered(self, operator_id: str, rows: int) -> None:
        """Note that rows of a collect sink have come here."""
        self._delivered = {**self._delivered, operator_id: self._delivered.get(operator_id, 0) + rows}
