"""A call that a client waits for, and may leave before it returns."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.threads import EngineThread

T = TypeVar("T")
_LOOK_S = 0.05  # an end is seen at once; only a client that goes, or the server's close, is looked for


class AbandonableCall(Generic[T]):
    """Runs a call in a thread of its own. ``result`` returns what it returned, and leaves it alone once
    ``is_over``.

    ``drop`` gets what an abandoned call returns after all. So the wait for an INSERT ends with its client,
    while its job goes on.
    """

    def __init__(self, call: Callable[[], T], drop: Callable[[T], None], name: str) -> None:
        self._call = call
        self._drop = drop
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._abandoned = False
        self._value: T | None = None
        self._error: BaseException | None = None
        EngineThread(self._run, name).start()

    def result(self, is_over: Callable[[], bool]) -> T:
        """Return what the call returned, or raise its error. Raises CLI-6237 once ``is_over``."""
        while not self._done.wait(_LOOK_S):
            if is_over() and self._abandon():
                message = "the statement was left alone: its client has gone, or the server closes"
                hint = "SHOW JOBS lists the job of an INSERT, which continues"
                raise PenstockError("CLI-6237", message, hint=hint, kind=Kind.EXTERNAL, sqlstate="57014")
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # a call without an error has returned a T

    def _run(self) -> None:
        try:
            self._value = self._call()
        except BaseException as error:  # noqa: BLE001  the waiting thread raises it
            self._error = error
        with self._lock:
            abandoned = self._abandoned
            self._done.set()
        if abandoned and self._error is None:
            self._drop(self._value)  # type: ignore[arg-type]

    def _abandon(self) -> bool:
        """Leave the call alone; False when it has returned at this moment."""
        with self._lock:
            self._abandoned = not self._done.is_set()
            return self._abandoned
