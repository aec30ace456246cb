"""Lets something that may block be polled: a thread of its own takes items ahead, a poll takes what is
there.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from typing import Any

from penstock.engine.api.threads import EngineThread

CAPACITY_ITEMS = 16_384


class Pump:
    """Reads an iterator ahead, at most ``capacity`` items. ``ended`` says that it has ended and all was
    taken.
    """

    def __init__(self, items: Iterator[Any], name: str, capacity: int = CAPACITY_ITEMS) -> None:
        self._items = items
        self._capacity = capacity
        self._ready: deque[Any] = deque()
        self._changed = threading.Condition()
        self._finished = False
        self._stopped = False
        self._error: BaseException | None = None
        EngineThread(target=self._run, name=f"pump {name}").start()

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""
        with self._changed:
            return self._finished and not self._ready and self._error is None

    def take(self, most: int) -> list[Any]:
        """Return the items that are there, at most so many; an empty list when there is none now. Raises
        what the iterator raised.
        """
        with self._changed:
            taken = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
            if not taken and self._error is not None:
                error, self._error = self._error, None
                raise error
            self._changed.notify_all()
            return taken

    def close(self) -> None:
        """Stop reading ahead; a read that blocks ends with the process."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._items:
                if not self._put(item):
                    break
        except BaseException as raised:  # noqa: BLE001  handed over to the thread that polls
            error = raised
        with self._changed:
            self._finished, self._error = True, error

    def _put(self, item: Any) -> bool:
        with self._changed:
            self._changed.wait_for(lambda: len(self._ready) < self._capacity or self._stopped)
            self._ready.append(item)
            return not self._stopped
