"""Polling of blocking iterators. A thread reads items ahead, and a poll returns the items that have
arrived.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Any

from penstock.engine.api.threads import EngineThread

# items read ahead, unless the caller sets another number
CAPACITY_ITEMS = 16_384


def _wake_nobody() -> None:
    pass


class Pump:
    """Reads an iterator ahead, at most ``capacity`` items. ``ended`` becomes true once the iterator has ended
    and every item was polled.

    ``arrived`` is called in the pump's thread when an item comes and there was none before, and at the end.
    """

    def __init__(
        self,
        items: Iterator[Any],
        name: str,
        capacity: int = CAPACITY_ITEMS,
        arrived: Callable[[], None] = _wake_nobody,
    ) -> None:
        self._items, self._arrived = items, arrived
        self._capacity = capacity
        self._ready: deque[Any] = deque()
        self._changed = threading.Condition()
        self._finished = False
        self._stopped = False
        self._error: BaseException | None = None
        EngineThread(target=self._run, name=f"pump {name}").start()

    @property
    def ended(self) -> bool:
        """Whether no item can follow."""
        with self._changed:
            return self._finished and not self._ready and self._error is None

    @property
    def is_empty(self) -> bool:
        """Whether nothing has come that was not polled: the next item is reported to ``arrived``."""
        with self._changed:
            return not self._ready

    def take(self, most: int) -> list[Any]:
        """Return at most so many of the items that have arrived; an empty list when there is none yet.
        Re-raises the iterator's exception.
        """
        with self._changed:
            items = [self._ready.popleft() for _ in range(min(most, len(self._ready)))]
            # items that arrived before the exception are returned first
            if not items and self._error is not None:
                error, self._error = self._error, None
                raise error
            self._changed.notify_all()
            return items

    def close(self) -> None:
        """Stop reading ahead; a blocked read ends with the process."""
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
        # a generator runs its own clean-up here, in the thread that it has run in
        if isinstance(self._items, Generator) and error is None:
            try:
                self._items.close()
            except BaseException as raised:  # noqa: BLE001  as above
                error = raised
        with self._changed:
            self._finished, self._error = True, error
        self._arrived()

    def _put(self, item: Any) -> bool:
        with self._changed:
            # backpressure on the iterator; close() wakes the thread
            self._changed.wait_for(lambda: len(self._ready) < self._capacity or self._stopped)
            self._ready.append(item)
            is_first, stopped = len(self._ready) == 1, self._stopped
        # who polled found nothing: it may sleep
        if is_first:
            self._arrived()
        return not stopped
