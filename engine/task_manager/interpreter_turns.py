"""Turns at the interpreter: of the slots of a process that keep up with their sources, one runs at a time.

Threads share one interpreter, and a thread gives it away in each kernel and in each call of Arrow. When rows
come a few at a time those calls are short, and the other thread takes the interpreter in the middle of a
step. Each such change costs a wake-up, about 0.1 ms: two slots that exchange 5 M rows/s made fifty in a pass,
which took 4 ms for 1. So slots whose sources have no more rows for now run their passes one after the other.

Slots with rows to catch up on take no turns: their batches are large, and their kernels run side by side.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from dataclasses import dataclass, field

# A turn that lasts longer is over: the slot is in a large batch, or waits for a database. A pass that keeps
# up takes about 1 ms.
TURN_S = 0.003


@dataclass(eq=False)
class _Waiter:
    """A slot that waits: the lock that is released when it is called, and its turn from then on."""

    called: threading.Lock = field(default_factory=threading.Lock)
    turn: int = 0


class InterpreterTurns:
    """Gives turns in the order in which slots ask. Whoever has waited for ``most_s`` gets one too: a turn
    delays, it never excludes.
    """

    def __init__(self, most_s: float = TURN_S) -> None:
        self._most_s = most_s
        self.begin()

    def begin(self) -> None:
        """Forget all turns and who waits for one: nobody runs."""
        self._lock = threading.Lock()
        self._waiting: deque[_Waiter] = deque()
        # turns are numbered: the newest, and whether it has been given back
        self._turn = 0
        self._free = True

    def acquire(self) -> int:
        """Wait for a turn and return it, for ``release``."""
        with self._lock:
            if self._free:
                return self._next()
            waiting = _Waiter()
            waiting.called.acquire()
            self._waiting.append(waiting)
        if not waiting.called.acquire(timeout=self._most_s):
            with self._lock:
                # it may have been called since the wait ended
                if waiting in self._waiting:
                    self._waiting.remove(waiting)
                    return self._next()
        return waiting.turn

    def release(self, turn: int) -> None:
        """End a turn, and call the slot that has waited longest. One that lasted too long has been ended."""
        with self._lock:
            if turn != self._turn:
                return
            if self._waiting:
                waiting = self._waiting.popleft()
                waiting.turn = self._next()
                waiting.called.release()
            else:
                self._free = True

    def _next(self) -> int:
        self._turn += 1
        self._free = False
        return self._turn


PROCESS_TURNS = InterpreterTurns()
"""The turns of this process: its jobs share the interpreter too."""
# A program may fork while slots run. In the child none of them runs, and one may have held the lock.
os.register_at_fork(after_in_child=PROCESS_TURNS.begin)
