"""Slots: one thread each, stepping the tasks it is given until they are released. The only room where
tasks meet threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from penstock.engine.api.clock import Clock
from penstock.engine.api.threads import EngineThread
from penstock.engine.task.messages import TaskFailed, TaskReport
from penstock.engine.task.task import Did, Task

STEPS_IN_A_ROW = 16
ROW_MS = 20.0
"""After so long the others get their turn: a slow task must not keep a source from its barrier."""


class Slot:
    """Drives the tasks of one subtask number, last chain first, so that what is in flight drains before
    more is taken in.
    """

    def __init__(self, name: str, clock: Clock, report: Callable[[TaskReport], None]) -> None:
        self._clock = clock
        self._report = report
        self._tasks: list[Task] = []
        self._changed = threading.Condition()
        self._woken = False
        self._releasing = False
        self._on_released: Callable[[], None] | None = None
        self._thread = EngineThread(target=self._run, name=name)

    def wake(self) -> None:
        """Make the thread look at its tasks again; cheap when it is about to anyway."""
        if self._woken:
            return
        with self._changed:
            self._woken = True
            self._changed.notify()

    def start(self, tasks: Sequence[Task], on_released: Callable[[], None]) -> None:
        """Start the thread over its tasks (in topological order); ``on_released`` is called from it when
        all of them are closed.
        """
        self._tasks = list(reversed(tasks))
        self._on_released = on_released
        self._thread.start()

    def release(self) -> None:
        """Ask the thread to close its tasks after the step it is in, and to end."""
        with self._changed:
            self._releasing = self._woken = True
            self._changed.notify()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait for the thread's end."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while not self._releasing:
            self._woken = False
            worked, wake_ms = self._pass()
            if not worked:
                self._wait(wake_ms)
        for task in self._tasks:
            self._close(task)
        if self._on_released is not None:
            self._on_released()

    def _pass(self) -> tuple[bool, float | None]:
        """Step every task; return whether any did something, and when the earliest of them wants to be
        stepped again.
        """
        worked, earliest = False, None
        for task in tuple(self._tasks):
            did, wake_ms = self._step(task)
            worked = worked or did
            if wake_ms is not None and (earliest is None or wake_ms < earliest):
                earliest = wake_ms
        return worked, earliest

    def _step(self, task: Task) -> tuple[bool, float | None]:
        """Step a task while it has work (a source once, so that what it gave is taken first)."""
        worked = False
        until_ms = self._clock.monotonic_ms() + ROW_MS
        for _ in range(1 if task.is_source else STEPS_IN_A_ROW):
            if self._releasing or (worked and self._clock.monotonic_ms() >= until_ms):
                break
            try:
                result = task.step()
            except Exception as error:  # noqa: BLE001 - whatever a task raises becomes the job's failure
                self._tasks.remove(task)
                self._report(TaskFailed(task.attempt, task.task_id, error))
                self._close(task)
                return True, None
            if result.did is not Did.WORKED:
                return worked, result.wake_ms
            worked = True
        return worked, None

    def _close(self, task: Task) -> None:
        try:
            task.close()
        except Exception as error:  # noqa: BLE001 - as in _step; a job that has already ended ignores it
            self._report(TaskFailed(task.attempt, task.task_id, error))

    def _wait(self, wake_ms: float | None) -> None:
        """Sleep until woken or until a task wants to be stepped."""
        timeout_s = None if wake_ms is None else max(0.0, wake_ms - self._clock.monotonic_ms()) / 1e3
        with self._changed:
            if not self._woken and not self._releasing:
                self._changed.wait(timeout_s)
