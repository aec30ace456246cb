"""Slots that keep up with their sources run one at a time; a slot with a backlog, or one that waits for a
database, keeps nobody from running.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import pytest

from penstock.engine.api.clock import ManualClock
from penstock.engine.task.messages import TaskFailed
from penstock.engine.task.task import WORKED, Did, StepResult
from penstock.engine.task_manager.interpreter_turns import PROCESS_TURNS, InterpreterTurns
from penstock.engine.task_manager.task_manager import Slot

# longer than any step of these tests, on a slow machine too
LONG_S = 60.0


class SteppedTask:
    """A task that runs ``work`` in each step, so many times."""

    is_source = True

    def __init__(self, work: Callable[[], object], steps: int, keeps_up: bool) -> None:
        self._work = work
        self._left = steps
        self.keeps_up = keeps_up
        self.done = threading.Event()

    def step(self) -> StepResult:
        if not self._left:
            self.done.set()
            return StepResult(Did.WAITING)
        self._left -= 1
        self._work()
        return WORKED

    def close(self) -> None:
        """Nothing is open."""


def run(tasks: list[SteppedTask], turns: InterpreterTurns) -> None:
    """Run each task in a slot of its own until it has made its steps."""
    failures: list[TaskFailed] = []
    slots = [Slot(f"slot-{i}", ManualClock(), failures.append, turns) for i in range(len(tasks))]
    for slot, task in zip(slots, tasks, strict=True):
        slot.start([task], lambda: None)  # type: ignore[list-item]
    for task in tasks:
        assert task.done.wait(LONG_S)
    for slot in slots:
        slot.release()
        slot.join(LONG_S)
    assert not failures


def test_slots_that_keep_up_run_one_at_a_time() -> None:
    running = [0]
    seen: list[int] = []

    def work() -> None:
        running[0] += 1
        time.sleep(0.001)
        seen.append(running[0])
        running[0] -= 1

    run([SteppedTask(work, 20, keeps_up=True) for _ in range(3)], InterpreterTurns(LONG_S))
    assert seen == [1] * 60


def test_slots_with_a_backlog_run_side_by_side() -> None:
    """The negative control: each step waits until the other slot is in one too."""
    meeting = threading.Barrier(2, timeout=LONG_S)
    run([SteppedTask(meeting.wait, 5, keeps_up=False) for _ in range(2)], InterpreterTurns(LONG_S))


def test_turns_come_in_the_order_in_which_slots_ask() -> None:
    turns, order = InterpreterTurns(LONG_S), []

    def ask(name: int) -> None:
        turn = turns.acquire()
        order.append(name)
        turns.release(turn)

    mine = turns.acquire()
    asking = []
    for name in range(4):
        asking.append(threading.Thread(target=ask, args=(name,)))
        asking[-1].start()
        while len(turns._waiting) <= name:
            time.sleep(0.001)
    turns.release(mine)
    for thread in asking:
        thread.join(LONG_S)
    assert order == [0, 1, 2, 3]


def test_a_turn_that_lasts_too_long_is_over() -> None:
    turns = InterpreterTurns(0.01)
    late = turns.acquire()
    # nobody gives the first one back
    second = turns.acquire()
    assert second != late
    # the late one ends no turn but its own: the second is still taken
    turns.release(late)
    third = turns.acquire()
    turns.release(third)
    # given back: the next one need not wait, however long a turn may last
    assert InterpreterTurns(LONG_S).acquire() == 1
    assert turns.acquire() == third + 1


def test_a_pass_that_fails_gives_its_turn_back() -> None:
    turns = InterpreterTurns(LONG_S)

    class Broken(RuntimeError):
        pass

    slot = Slot("slot", ManualClock(), lambda report: None, turns)

    def fail() -> tuple[bool, float | None]:
        raise Broken

    slot._pass = fail  # type: ignore[method-assign]
    with pytest.raises(Broken):
        slot._take_turn()
    assert turns.acquire() == 2


def test_a_forked_process_does_not_wait_for_slots_that_it_does_not_have() -> None:
    """The lock is held while the program forks: without a new one the child would wait for ever."""
    with PROCESS_TURNS._lock:
        child = os.fork()
        if not child:
            signal.alarm(30)
            PROCESS_TURNS.release(PROCESS_TURNS.acquire())
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
