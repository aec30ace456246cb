"""What a job's master needs of the world that runs its tasks and its I/O: threads in production, a seeded scheduler in simulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from engine.channels import Wakeup
from engine.task import Task


class Workers(Protocol):
    """Runs the tasks of one job and its I/O, and posts what comes of it to the master."""

    def wakeup(self, slot: int) -> Wakeup:
        """Return what wakes a slot of the next deployment."""

    def start(self, attempt: int, tasks: Sequence[Task]) -> None:
        """Run tasks, each in the slot of its subtask number, until released."""

    def release(self) -> None:
        """Close all tasks; ``TasksReleased`` is posted when that is done (at once when none run)."""

    def run_io(self, work: Callable[[], Any], failed: Callable[[Exception], Any]) -> None:
        """Run blocking work elsewhere, in order, and post what it returns, or what ``failed`` makes of its exception."""
