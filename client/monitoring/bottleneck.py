"""The slowest task of a job: the one that the others wait for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.engine.metrics.task_metrics import TaskFigures

# busy for half of its time: the task limits the job; backpressured for a tenth: it waits for the slowest one
_MUCH = 0.5
_SOME = 0.1


def bottleneck(tasks: Sequence[TaskFigures], *, running: bool) -> str:
    """Return a sentence that names the slowest task: by the last seconds while the job runs, by all its
    time after.
    """
    if not tasks:
        return "slowest: no task runs"
    shares = {id(task): _shares(task, running=running) for task in tasks}
    # a sink that waits for its target is the bottleneck, though it is not busy itself
    stuck = [
        task for task in tasks if task.operators[-1].name.startswith("sink ") and shares[id(task)][1] >= _MUCH
    ]
    if stuck:
        slowest = max(stuck, key=lambda task: shares[id(task)][1])
        return (
            f"slowest: {slowest.operators[-1].name}, which takes no more rows "
            f"{shares[id(slowest)][1]:.0%} of the time: the sink is the bottleneck"
        )
    slowest = max(tasks, key=lambda task: shares[id(task)][0])
    busy = shares[id(slowest)][0]
    if busy < _MUCH:
        return (
            f"slowest: nothing is, no task is busy more than {busy:.0%} of the time: the sources set the pace"
        )
    waiting = sorted({task.name for task in tasks if shares[id(task)][1] >= _SOME})
    behind = f"; {', '.join(waiting)} wait{'s' if len(waiting) == 1 else ''} for buffers" if waiting else ""
    return f"slowest: task {slowest.subtask} of {slowest.name}, busy {busy:.0%} of the time{behind}"


def _shares(task: TaskFigures, *, running: bool) -> tuple[float, float]:
    """Return the shares of its time that a task was busy, and backpressured."""
    spent = task.per_second if running else task.time
    whole = sum(spent) or 1.0
    return spent.busy / whole, spent.backpressured / whole
