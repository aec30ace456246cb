"""What a user sees while a query runs: one line of progress, drawn over itself, and the events of its job.

Each event, a restart or a failed checkpoint, is reported once on stderr.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TextIO

from penstock.catalog.errors import PenstockError
from penstock.client.results.result import Result
from penstock.repl.output.messages import Messages
from penstock.repl.output.status_reports import StatusReports

if TYPE_CHECKING:
    from penstock.engine.job.job import Job
    from penstock.engine.job.job_events import JobEvent


# A query that ends sooner shows no line at all.
FIRST_S = 0.5
EVERY_S = 0.2
# To the first column, then erase to the end of the line.
_CLEAR = "\r\x1b[K"


@contextmanager
def progress_line(
    result: Result, out: TextIO, first_s: float = FIRST_S, every_s: float = EVERY_S
) -> Iterator[None]:
    """Show a result's progress on a terminal, after ``first_s`` seconds and then every ``every_s``;
    elsewhere show nothing.
    """
    if not out.isatty():
        yield
        return
    done = threading.Event()
    drawing = threading.Thread(
        target=_draw, args=(result, out, done, first_s, every_s), name="penstock-progress", daemon=True
    )
    drawing.start()
    try:
        yield
    finally:
        done.set()
        # The line is erased before rows are printed; a stopped terminal delays them by a second at most.
        drawing.join(timeout=1)


def _draw(result: Result, out: TextIO, done: threading.Event, first_s: float, every_s: float) -> None:
    shown, wait_s = "", first_s
    while not done.wait(wait_s):
        said, wait_s = result.progress() or "", every_s
        # The result may have ended while its progress was computed: nothing is drawn into its rows.
        if said != shown and not done.is_set():
            out.write(f"{_CLEAR}{said}")
            out.flush()
            shown = said
    # Rows begin in the first column of an empty line.
    if shown:
        out.write(_CLEAR)
        out.flush()


# also how late an asked status may come
EVENTS_EVERY_S = 0.25


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
                # The text of a restart begins with its cause in parentheses.
                between = " " if event.text.startswith("(") else ": "
                self._messages.note(f"job {self._job.job_id}: {event.kind.lower()}{between}{event.text}")

    def _new_events(self) -> list[JobEvent]:
        fresh: list[JobEvent] = []
        for event in reversed(self._job.metrics().events):
            # By identity, since two events may be equal. The job has its newest events only: if the last one
            # is no longer among them, all are new.
            if event is self._last:
                break
            fresh.insert(0, event)
        return fresh


@contextmanager
def reporting(
    job: Job | None, status: StatusReports | None, messages: Messages, every_s: float = EVENTS_EVERY_S
) -> Iterator[None]:
    """Report the events of the job of a result, and the result's status, while its rows are printed."""
    notices = None if job is None else JobNotices(job, messages)
    if notices is None and status is None:
        yield
        return
    done = threading.Event()

    def report() -> None:
        # a server that was lost has no events to report: the rows raise that
        if notices is not None:
            with suppress(PenstockError):
                notices.report()

    def report_until_done() -> None:
        while not done.wait(every_s):
            report()
            with suppress(PenstockError):
                if status is not None and (lines := status.due()):
                    messages.note("\n".join(lines))

    reporter = threading.Thread(target=report_until_done, name="penstock-notices", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        done.set()
        # First the thread ends, then the events since its last look: report is not for two threads at once.
        reporter.join()
        report()
