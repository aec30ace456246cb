"""Work that may wait for a server, done by a thread of its own while the source is polled."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.engine.api.threads import EngineThread

Result = TypeVar("Result")


class Background(Generic[Result]):
    """One call in a thread. ``discard`` is called with a result that nobody wants any more."""

    def __init__(self, act: Callable[[], Result], discard: Callable[[Result], None], name: str) -> None:
        self._act, self._discard = act, discard
        self._lock = threading.Lock()
        self._result: list[Result] = []
        self._error: BaseException | None = None
        self._dropped = False
        EngineThread(target=self._run, name=name).start()

    def take(self) -> Result | None:
        """Return the result, once; ``None`` while it is not there. Re-raises what the call raised."""
        with self._lock:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            return self._result.pop() if self._result else None

    def drop(self) -> None:
        """Let nobody wait for the result any more."""
        with self._lock:
            self._dropped = True
            if self._result:
                self._discard(self._result.pop())

    def _run(self) -> None:
        try:
            result = self._act()
        except BaseException as error:  # noqa: BLE001  handed over to the thread that polls
            with self._lock:
                self._error = error
            return
        with self._lock:
            if self._dropped:
                self._discard(result)
            else:
                self._result.append(result)
