"""A job's first deployment, when it loads history: who has read all there was, and as what the job goes on
from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine.job.job_events import RescaleRequested
from penstock.engine.task.messages import TaskId


class HistoryPhase:
    """``live``: the plan to go on as once the history's checkpoint is durable, None in any other
    deployment.
    """

    def __init__(self, live: RescaleRequested | None) -> None:
        self.live = live
        self._reading: set[TaskId] = set()

    def begins(self, sources: Sequence[TaskId]) -> None:
        """Take over a new deployment with these source tasks."""
        self._reading = set(sources)

    def read(self, task: TaskId) -> None:
        """A task has given all it has, or has ended."""
        self._reading.discard(task)

    @property
    def loading(self) -> bool:
        """Whether this deployment loads history: no checkpoint of it means anything before it has all of
        it.
        """
        return self.live is not None

    @property
    def done(self) -> bool:
        """Whether all of the history has been given."""
        return self.loading and not self._reading

    def over(self) -> RescaleRequested | None:
        """Return the plan to go on as, once."""
        live, self.live = self.live, None
        return live
