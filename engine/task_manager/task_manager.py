"""The task manager: runs a job's tasks in slots, and its I/O in a thread."""

from __future__ import annotations

import errno
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any

from penstock.engine.api.clock import Clock
from penstock.engine.api.threads import EngineThread
from penstock.engine.exchange.channel import Wakeup
from penstock.engine.task.messages import TaskFailed, TaskReport, TasksReleased, TasksStarted
from penstock.engine.task.task import Did, Task
from penstock.engine.task_manager.interpreter_turns import PROCESS_TURNS, InterpreterTurns
from penstock.engine.task_manager.task_deployment import Deployment

# steps of one task before the next has its turn
STEPS_IN_A_ROW = 16

ROW_MS = 20.0
"""A turn of one task, milliseconds: after it the other tasks run, so that a slow task does not keep a source
from its barrier.
"""


class Slot:
    """Drives the tasks of one subtask number, last chain first: rows in flight drain before more are read.

    While it keeps up with its sources it makes its passes in ``turns``.
    """

    def __init__(
        self,
        name: str,
        clock: Clock,
        report: Callable[[TaskReport], None],
        turns: InterpreterTurns = PROCESS_TURNS,
    ) -> None:
        self._clock = clock
        self._report = report
        self._turns = turns
        self._tasks: list[Task] = []
        self._changed = threading.Condition()
        # set by other threads, read without the lock in wake()
        self._woken = False
        self._releasing = False
        self._on_released: Callable[[], None] | None = None
        self._thread = EngineThread(target=self._run, name=name)

    def wake(self) -> None:
        """Make the thread step its tasks again; cheap when it is about to anyway."""
        # the thread has not slept since: it will see the work anyway
        if self._woken:
            return
        with self._changed:
            self._woken = True
            self._changed.notify()

    def start(self, tasks: Sequence[Task], on_released: Callable[[], None]) -> None:
        """Start the thread over its tasks (in topological order); ``on_released`` is called from it when
        all of them are closed.
        """
        # last chain first: rows in channels are processed before sources read more
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
            # reset before the pass, so that a wake during it is not lost
            self._woken = False
            worked, wake_ms = self._take_turn() if self._keeps_up() else self._pass()
            if not worked:
                self._wait(wake_ms)
        for task in self._tasks:
            self._close(task)
        if self._on_released is not None:
            self._on_released()

    def _keeps_up(self) -> bool:
        """Whether no source of the slot has more rows for now: then latency counts, not throughput."""
        return all(task.keeps_up for task in self._tasks)

    def _take_turn(self) -> tuple[bool, float | None]:
        """Make a pass while no other slot that keeps up makes one."""
        turn = self._turns.acquire()
        try:
            return self._pass()
        finally:
            self._turns.release(turn)

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
        """Step a task while it has work; a source once, so that its rows are processed first."""
        worked = False
        until_ms = self._clock.monotonic_ms() + ROW_MS
        for _ in range(1 if task.is_source else STEPS_IN_A_ROW):
            # at least one step a turn, whatever the clock says
            if self._releasing or (worked and self._clock.monotonic_ms() >= until_ms):
                break
            try:
                result = task.step()
            # SystemExit of a program's function and panics of libraries too: a thread that ends of them would
            # leave a job that runs for ever and cannot be cancelled
            except BaseException as error:  # noqa: BLE001 - whatever a task raises becomes the job's failure
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
        except BaseException as error:  # noqa: BLE001 - as in _step; a job that has already ended ignores it
            self._report(TaskFailed(task.attempt, task.task_id, error))

    def _wait(self, wake_ms: float | None) -> None:
        """Sleep until woken or until a task wants to be stepped."""
        timeout_s = None if wake_ms is None else max(0.0, wake_ms - self._clock.monotonic_ms()) / 1e3
        with self._changed:
            # checked under the lock: a wake between the pass and this line must not be slept through
            if not self._woken and not self._releasing:
                self._changed.wait(timeout_s)


class IoThread:
    """A thread for blocking work, done in order. It starts with the first piece."""

    def __init__(self, name: str) -> None:
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = EngineThread(target=self._run, name=name)
        self._started = False

    def submit(self, work: Callable[[], None]) -> None:
        """Queue a piece of work."""
        if not self._started:
            self._started = True
            self._thread.start()
        self._work.put(work)

    def close(self) -> None:
        """End the thread after the queued work; waits for that, unless the thread itself asks."""
        if self._started:
            self._work.put(None)
            if threading.current_thread() is not self._thread:
                self._thread.join()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


def run_io(
    io: IoThread, post: Callable[[Any], None], work: Callable[[], Any], failed: Callable[[Exception], Any]
) -> None:
    """Have an I/O thread run work. Post its result, or what ``failed`` returns for its exception."""

    def run() -> None:
        try:
            outcome = work()
        except Exception as error:  # noqa: BLE001 - the master decides what a failed write means
            outcome = failed(error)
        post(outcome)

    io.submit(run)


class ThreadedWorkers:
    """The executor of one job in this process: a slot thread per subtask number, new for each deployment."""

    def __init__(self, name: str, clock: Clock, post: Callable[[Any], None], io: IoThread) -> None:
        self._name = name
        self._clock = clock
        self._post = post
        self._io = io
        self._attempt = 0
        self._slots: dict[int, Slot] = {}
        self._by_slot: dict[int, list[Task]] = {}
        self._running = 0
        self._lock = threading.Lock()

    def deploy(self, deployment: Deployment) -> Sequence[Task]:
        tasks = deployment.tasks(self._post, self._wakeup)
        self._attempt = deployment.attempt
        by_slot: dict[int, list[Task]] = {}
        for task in tasks:
            by_slot.setdefault(task.task_id.subtask, []).append(task)
            self._wakeup(task.task_id.subtask)
        # building the tasks asked for a slot for each channel; those without tasks have no thread to start
        self._slots = {number: self._slots[number] for number in by_slot}
        self._by_slot = by_slot
        return tasks

    def start(self) -> None:
        by_slot, self._by_slot = self._by_slot, {}
        self._running = len(by_slot)
        for started, (number, mine) in enumerate(by_slot.items()):
            try:
                self._slots[number].start(mine, self._slot_released)
            except (
                RuntimeError
            ) as cause:  # the system has no thread left: the tasks that did not start need not be waited for
                with self._lock:
                    self._running -= len(by_slot) - started
                # a restart may find some
                self._post(TaskFailed(self._attempt, mine[0].task_id, OSError(errno.EAGAIN, str(cause))))
                break
        self._post(TasksStarted(self._attempt))

    def release(self) -> None:
        # the threads close their tasks themselves: a task is only ever touched by its own thread
        slots, self._slots = self._slots, {}
        if not self._running:
            self._post(TasksReleased(self._attempt))
            return
        for slot in slots.values():
            slot.release()

    def run_io(self, work: Callable[[], Any], failed: Callable[[Exception], Any]) -> None:
        run_io(self._io, self._post, work, failed)

    def _wakeup(self, slot: int) -> Wakeup:
        if slot not in self._slots:
            self._slots[slot] = Slot(f"{self._name}-slot-{slot}", self._clock, self._post)
        return self._slots[slot].wake

    def _slot_released(self) -> None:
        with self._lock:
            self._running -= 1
            # the last of the threads reports for all
            last = self._running == 0
        if last:
            self._post(TasksReleased(self._attempt))
