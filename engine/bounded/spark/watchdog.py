"""A watchdog for calls into Spark. No call waits for ever on a virtual machine that is dead, hangs, or has
nothing left to do.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any, Protocol

from penstock.catalog.errors import Kind, PenstockError

# seconds between two checks of a call that has not ended
LOOK_S = 0.25
# a probe asks the virtual machine itself, so only every two seconds
_ASK_EVERY_LOOKS = 8
SILENT_S = 30.0
IDLE_S = 120.0


class Watched(Protocol):
    """The watched target of calls: a virtual machine of our own, or a server."""

    def gone(self) -> PenstockError | None:
        """Return the error of a target that is known to be dead, else ``None``; sends no request."""

    def busy(self) -> bool:
        """Ask whether Spark runs anything; may hang or raise."""

    def abandon(self) -> None:
        """End an unresponsive Spark, so that the calls that wait for it end."""


class SparkWatch:
    """Watches the calls of one query. For one waiting thread at a time."""

    def __init__(self, watched: Watched, idle_s: float = IDLE_S, silent_s: float = SILENT_S) -> None:
        """``idle_s``: how long Spark may run nothing while a call waits; ``silent_s``: how long it may not
        answer at all.
        """
        self._watched = watched
        self._idle_s, self._silent_s = idle_s, silent_s
        self._looks = 0
        self._pulse: _Pulse | None = None
        self._silent = self._idle = 0.0

    def call(self, what: str, work: Callable[[], Any]) -> Any:
        """Return what ``work()`` returns, computed in a thread. BND-5005 when Spark hangs, BND-5008 when it
        is gone.
        """
        call = WatchedCall(what, work)
        while not call.done.wait(LOOK_S):
            self.look(what)
        return call.result()

    def look(self, what: str) -> None:
        """Check once, :data:`LOOK_S` after the previous check; raise when waiting is pointless."""
        gone = self._watched.gone()
        if gone is not None:
            raise gone
        self._looks += 1
        # at most one probe is pending: a hung machine must not collect threads
        pulse = self._pulse
        if pulse is None:
            self._pulse = _Pulse(self._watched) if self._looks % _ASK_EVERY_LOOKS == 0 else None
        # no answer yet: count the silence
        elif not pulse.done.is_set():
            self._silent += LOOK_S
        else:
            # an answer ends the silence; it also says whether Spark works for anybody
            self._silent, self._pulse = 0.0, None
            self._idle = 0.0 if pulse.busy else self._idle
        self._idle += LOOK_S
        # hung: end it, because other threads wait in calls that would never return
        if self._silent > self._silent_s:
            self._watched.abandon()
            raise _stuck(f"Spark has not answered for {self._silent_s:.0f} s, in a call to {what}")
        # it answers, but runs nothing for us: a lost job, say; the machine itself is sound
        if self._idle > self._idle_s:
            raise _stuck(f"Spark has run nothing for {self._idle_s:.0f} s and a call to {what} has not ended")

    def rest(self) -> None:
        """Record progress: both timeouts start again."""
        self._silent = self._idle = 0.0


class WatchedCall:
    """A call that runs in its own thread; its caller need not wait for it."""

    def __init__(self, what: str, work: Callable[[], Any]) -> None:
        self.done = threading.Event()
        self._work = work
        self._value: Any = None
        self._error: BaseException | None = None
        threading.Thread(target=self._run, name=f"penstock-spark-{what}", daemon=True).start()

    def _run(self) -> None:
        try:
            self._value = self._work()
        except BaseException as error:  # noqa: BLE001  raised again in the thread that waits
            self._error = error
        finally:
            self.done.set()

    def result(self) -> Any:
        """Return the value of a finished call, or raise its error."""
        if self._error is not None:
            raise self._error
        return self._value


class _Pulse:
    """One probe whether Spark runs anything. ``busy`` is also ``False`` when it fails: the call itself raises
    the error.
    """

    def __init__(self, watched: Watched) -> None:
        self.done = threading.Event()
        self.busy = False
        self._watched = watched
        threading.Thread(target=self._run, name="penstock-spark-pulse", daemon=True).start()

    def _run(self) -> None:
        with contextlib.suppress(Exception):
            self.busy = self._watched.busy()
        self.done.set()


def _stuck(message: str) -> PenstockError:
    return PenstockError("BND-5005", message, kind=Kind.EXTERNAL, retriable=True, sqlstate="57014")
