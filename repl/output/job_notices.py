"""The events of a job while somebody waits for it or for its rows, each reported once on stderr: restarts
and why, checkpoints that fail.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.repl.output.messages import Messages

if TYPE_CHECKING:
    from penstock.engine.job.job import Job
    from penstock.engine.job.job_events import JobEvent

EVERY_S = 0.5


class JobNotices:
    """Reports each event of one job once; the error of one that failed is reported by its waiter."""

    def __init__(self, job: Job, messages: Messages) -> None:
        self._job = job
        self._messages = messages
        self._last: JobEvent | None = None

    def report(self) -> None:
        """Report what has happened since the last call."""
        for event in self._new_events():
            self._last = event
            if event.kind != "FAILED":
                between = " " if event.text.startswith("(") else ": "
                self._messages.note(f"job {self._job.job_id}: {event.kind.lower()}{between}{event.text}")

    def _new_events(self) -> list[JobEvent]:
        fresh: list[JobEvent] = []
        for event in reversed(self._job.metrics().events):
            if event is self._last:
                break
            fresh.insert(0, event)
        return fresh


@contextmanager
def reporting_events(job: Job | None, messages: Messages, every_s: float = EVERY_S) -> Iterator[None]:
    """Report the events of the job of a result while its rows are printed."""
    if job is None:
        yield
        return
    done, notices = threading.Event(), JobNotices(job, messages)

    def report_until_done() -> None:
        while not done.wait(every_s):
            notices.report()

    reporter = threading.Thread(target=report_until_done, name="penstock-notices", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        done.set()
        reporter.join()
        notices.report()
