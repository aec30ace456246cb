"""Where Spark runs for this process: what a virtual machine of our own and a server of Spark Connect have
in common.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from penstock.engine.bounded.spark.watchdog import Watched


class SparkApplication(Watched, Protocol):
    """Gives sessions of one Spark application and looks after what they run."""

    @property
    def alive(self) -> bool:
        """Whether sessions can still be had; asks nobody."""

    def session(self) -> Any:
        """Return a session of its own: views, settings, functions."""

    def release(self, session: Any) -> None:
        """A session is not needed any more."""

    def tag(self, session: Any, tag: str) -> None:
        """Tag what this thread runs from now on."""

    def cancel(self, session: Any, tag: str) -> None:
        """Stop what was tagged, from any thread."""

    def progress(self, session: Any) -> str | None:
        """Return in a few words how far Spark is, ``None`` when nothing is known."""

    def estimate_bytes(self, session: Any, frame: Any, text: str) -> int | None:
        """Return Spark's own estimate of a result's size."""

    def reached_at(self, session: Any) -> str:
        """Return the address of this machine that Spark's tasks can reach it at."""

    def last_words(self) -> str:
        """Return the end of what it logged."""

    def close(self) -> None:
        """Let go of it; what was started for this process alone ends."""


def stages_text(stages: Mapping[int, tuple[int, int]]) -> str:
    """Return the words for stages: number to tasks done and tasks in all."""
    if not stages:
        return "Spark plans"
    done, tasks = (sum(counts) for counts in zip(*stages.values(), strict=True))
    return f"Spark: {done} of {tasks} tasks of stage {', '.join(map(str, sorted(stages)))}"
