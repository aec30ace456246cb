"""A statement that has not returned yet, and that other threads may cancel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from penstock.catalog.errors import Kind, PenstockError


class Cancellable(Protocol):
    """What a statement waits for: its job, or itself before there is a job."""

    def cancel(self) -> None:
        """End it. Any thread may call it."""


HoldJob = Callable[["Cancellable | None"], None]
"""Is called with what can be cancelled before a statement waits, and with None after it."""


def hold_no_job(job: Cancellable | None) -> None:
    """Ignore the job: nobody will cancel it."""


class PendingStatement:
    """A statement that is planned, or that waits for the first state of a view. ``is_over``: whether its
    client has gone.
    """

    def __init__(self) -> None:
        self._cancelled = False
        self.is_over: Callable[[], bool] = lambda: False

    def cancel(self) -> None:
        """End its wait."""
        self._cancelled = True

    @property
    def is_cancelled(self) -> bool:
        """Whether nobody wants its result any more."""
        return self._cancelled or self.is_over()


def statement_cancelled() -> PenstockError:
    """Return the error of a statement that was cancelled while it waited."""
    return PenstockError(
        "CLI-6237",
        "the statement was cancelled",
        hint="run it again; nothing of it was started",
        kind=Kind.USER,
        sqlstate="57014",
    )
