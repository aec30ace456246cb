"""What happens to a job while somebody waits for it or for its rows, told once on stderr: restarts and
why, checkpoints that fail.
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


class JobNews:
    """Tells the events of one job that were not told yet; of one that failed the error is told by others."""

    def __init__(self, job: Job, messages: Messages) -> None:
        self._job = job
        self._messages = messages
        self._last: JobEvent | None = None

    def tell(self) -> None:
        """Tell what has happened since."""
        for event in self._fresh():
            self._last = event
            if event.kind != "FAILED":
                between = " " if event.text.startswith("(") else ": "
                self._messages.note(f"job {self._job.job_id}: {event.kind.lower()}{between}{event.text}")

    def _fresh(self) -> list[JobEvent]:
        fresh: list[JobEvent] = []
        for event in reversed(self._job.metrics().events):
            if event is self._last:
                break
            fresh.insert(0, event)
        return fresh


@contextmanager
def news_told(job: Job | None, messages: Messages, every_s: float = EVERY_S) -> Iterator[None]:
    """Tell what happens to the job of a result while its rows are printed."""
    if job is None:
        yield
        return
    done, news = threading.Event(), JobNews(job, messages)

    def follow() -> None:
        while not done.wait(every_s):
            news.tell()

    following = threading.Thread(target=follow, name="penstock-news", daemon=True)
    following.start()
    try:
        yield
    finally:
        done.set()
        following.join()
        news.tell()
