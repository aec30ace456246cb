"""The common interface of Spark applications: in a virtual machine of our own, or on a Spark Connect
server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from penstock.engine.bounded.spark.watchdog import Watched


class SparkApplication(Watched, Protocol):
    """Opens sessions of one Spark application, and tags, cancels and measures their jobs."""

    @property
    def alive(self) -> bool:
        """Whether sessions can still be opened; sends no request."""

    def session(self) -> Any:
        """Return a new session with its own views, settings and functions."""

    def release(self, session: Any) -> None:
        """Release a session that is no longer needed."""

    def tag(self, session: Any, tag: str) -> None:
        """Tag the jobs this thread runs from now on."""

    def cancel(self, session: Any, tag: str) -> None:
        """Cancel the jobs with a tag, from any thread."""

    def progress(self, session: Any) -> str | None:
        """Return the progress in a few words, ``None`` when it is unknown."""

    def estimate_bytes(self, session: Any, frame: Any, text: str) -> int | None:
        """Return Spark's own estimate of a result's size, in bytes."""

    def reached_at(self, session: Any) -> str:
        """Return the address at which Spark's tasks can reach this machine."""

    def last_words(self) -> str:
        """Return the end of its log."""

    def close(self) -> None:
        """Release the application; a Spark started for this process alone ends."""


def stages_text(stages: Mapping[int, tuple[int, int]]) -> str:
    """Format the progress of stages: number to tasks done and tasks in all."""
    if not stages:
        return "Spark plans"
    # (done, tasks) over all stages that run now; a finished stage is no longer in the mapping
    done, tasks = (sum(counts) for counts in zip(*stages.values(), strict=True))
    return f"Spark: {done} of {tasks} tasks of stage {', '.join(map(str, sorted(stages)))}"
