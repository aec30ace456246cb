"""Task handles: what a job's master knows of a task, wherever it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from penstock.engine.metrics.task_metrics import TaskFigures
from penstock.engine.task.messages import TaskId, TaskMessage


class NamedOperator(Protocol):
    """An operator as people and checkpoints know it."""

    @property
    def operator_id(self) -> str:
        """Its id, the same in every deployment."""

    @property
    def name(self) -> str:
        """What it is called."""


class TaskHandle(Protocol):
    """A task of this process, or one that stands for a task of another."""

    @property
    def task_id(self) -> TaskId:
        """Which subtask of which chain it is."""

    @property
    def is_source(self) -> bool:
        """Whether barriers are injected here."""

    @property
    def operators(self) -> Sequence[NamedOperator]:
        """The operators of its chain, first to last."""

    @property
    def phase(self) -> str:
        """Where it is in its life."""

    def figures(self) -> TaskFigures:
        """Return what it has counted, as far as is known here; any thread may ask."""

    def post(self, message: TaskMessage) -> None:
        """Leave a message for the task; any thread may."""
