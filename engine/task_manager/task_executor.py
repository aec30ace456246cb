"""The interfaces a job master runs tasks and I/O by: threads or processes in production, a seeded scheduler
in simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from penstock.engine.metrics.task_metrics import TaskFigures
from penstock.engine.task.messages import TaskId, TaskMessage
from penstock.engine.task_manager.task_deployment import Deployment


class NamedOperator(Protocol):
    """An operator as users and checkpoints know it."""

    @property
    def operator_id(self) -> str:
        """Its id, the same in every deployment."""

    @property
    def name(self) -> str:
        """What it is called."""


class TaskHandle(Protocol):
    """A task of this process, or a proxy for a task of another."""

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
        """Its phase."""

    def figures(self) -> TaskFigures:
        """Return what it has counted, as far as is known here; any thread may ask."""

    def post(self, message: TaskMessage) -> None:
        """Post a message to the task; any thread may."""


class Workers(Protocol):
    """Runs the tasks of one job and its I/O, and posts the results to the master."""

    def deploy(self, deployment: Deployment) -> Sequence[TaskHandle]:
        """Create the tasks of a deployment and return them in topological order; none runs before ``start``.
        Raises what creating them raises.

        Two steps, so that the master knows its tasks before one ends: a short job has ended before ``start``
        returns.
        """

    def start(self) -> None:
        """Run each task of the deployment in the slot of its subtask number until released.

        ``TasksStarted`` is posted when all run; other processes need time for that. A task that cannot be
        started is posted as failed.
        """

    def release(self) -> None:
        """Close all tasks; ``TasksReleased`` is posted when that is done (at once when none run)."""

    def run_io(self, work: Callable[[], Any], failed: Callable[[Exception], Any]) -> None:
        """Run blocking work elsewhere, in order. Post its result, or what ``failed`` returns for its
        exception.
        """
