"""The events of a job: a bounded list, each with a time, a kind and a sentence for users.

It also contains the request to switch plans, and the state of a job that loads history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.engine.api.clock import Clock
from penstock.engine.api.operator import Recovered, Warned
from penstock.engine.api.restart_strategy import RestartBudget
from penstock.engine.checkpoint.coordinator import CheckpointCoordinator
from penstock.engine.checkpoint.manifest import Manifest
from penstock.engine.checkpoint.plan_identity import PlanIdentity
from penstock.engine.checkpoint.store import CheckpointStore
from penstock.engine.task.messages import OperatorEventReported, TaskId
from penstock.planner.physical.operator_specs import JobGraph

# So many events, the newest: a job that fails for days must not fill memory.
MAX_EVENTS = 100


@dataclass(frozen=True)
class JobEvent:
    """One event; ``at_ms``: wall clock."""

    at_ms: int
    kind: str
    text: str


class JobEvents:
    """The newest ``MAX_EVENTS`` events of a job, written by its master, read by any thread."""

    def __init__(self, coordinator: CheckpointCoordinator, restored: Manifest | None, clock: Clock) -> None:
        self._coordinator = coordinator
        self._restored = restored
        self._clock = clock
        coordinator.on_aborted = self._checkpoint_failed
        self._events: deque[JobEvent] = deque(maxlen=MAX_EVENTS)
        # Monotonic milliseconds of the first failure of the current outage; None while the job runs.
        self._failed_ms: float | None = None
        # By operator: the failures listed already, as (code, sentence).
        self._warned: dict[str, set[tuple[str, str]]] = {}

    def all(self) -> tuple[JobEvent, ...]:
        """Return the events, oldest first."""
        return tuple(self._events)

    def restarting(self, error: PenstockError, delay_ms: float) -> None:
        """The job failed and restarts after ``delay_ms``."""
        # several failures before the job runs again are one outage, timed from the first
        if self._failed_ms is None:
            self._failed_ms = self._clock.monotonic_ms()
        self._append("RESTARTING", f"({_cause(error)}) {self._from()}, in {delay_ms / 1e3:.1f} s")

    def deployed(self, budget: RestartBudget, store: CheckpointStore | None) -> None:
        """All tasks run, or run again. A fallback to an earlier checkpoint is reported too."""
        if store is not None and store.fell_back is not None:
            self._append("FALLBACK", store.fell_back)
            # Reported once: the next deployment must not list it again.
            store.fell_back = None
        if self._failed_ms is not None:
            took_s = (self._clock.monotonic_ms() - self._failed_ms) / 1e3
            self._failed_ms = None
            self._append("RUNNING", f"recovered in {took_s:.1f} s, restart {budget.progress_text}")

    def on_operator_event(self, report: OperatorEventReported) -> None:
        """An operator reports an event. A failure the job survives is listed once, whichever subtasks report
        it, until it is over.
        """
        warned = self._warned.setdefault(report.operator_id, set())
        match report.event:
            # many subtasks report one outage of an external system: list it once
            case Warned(code, sentence) if (code, sentence) not in warned:
                warned.add((code, sentence))
                self._append("WARNING", f"{report.operator}: {code}: {sentence}; the job continues")
            # the outage is over: the next one is listed again
            case Recovered(sentence) if warned:
                warned.clear()
                self._append("RECOVERED", f"{report.operator}: {sentence}")

    def _checkpoint_failed(self, cause: str) -> None:
        """A checkpoint was aborted; the job runs on."""
        newest = self._newest
        last = (
            "there is no good one yet"
            if newest is None
            # Its age is what would be lost if the job failed now.
            else f"last good: {newest[0]} ({newest[1]:.1f} s ago)"
        )
        self._append("CHECKPOINT FAILED", f"{cause}; {last}; the job continues")

    def failed(self, error: PenstockError, budget: RestartBudget) -> None:
        """The job has failed. After restarts, the error's detail names their number, whether they had one
        cause, and where the job can resume.
        """
        if budget.restarts:
            error.detail = "\n".join(
                filter(None, [error.detail, f"{budget.exhausted_text}; {self._resume()}"])
            )
        self._append(
            "FAILED",
            f"{_cause(error)}" + (f"; {budget.exhausted_text}; {self._resume()}" if budget.restarts else ""),
        )

    def _append(self, kind: str, text: str) -> None:
        self._events.append(JobEvent(self._clock.wall_ms(), kind, text))

    def _from(self) -> str:
        newest = self._newest
        return (
            "from the beginning"
            if newest is None
            else f"from checkpoint {newest[0]} taken {newest[1]:.1f} s ago"
        )

    def _resume(self) -> str:
        newest = self._newest
        return "nothing to resume from" if newest is None else f"resume from: checkpoint {newest[0]}"

    @property
    def _newest(self) -> tuple[int, float] | None:
        """The newest checkpoint and its age in seconds."""
        # a checkpoint of this run
        if self._coordinator.history:
            newest = self._coordinator.history[-1]
            checkpoint_id, taken_ms = newest.checkpoint_id, newest.completed_at_ms
        # none yet: the one this run was restored from
        elif self._restored is not None:
            checkpoint_id, taken_ms = self._restored.checkpoint_id, self._restored.created_at_ms
        else:
            return None
        return checkpoint_id, max(0.0, (self._clock.wall_ms() - taken_ms) / 1e3)


def _cause(error: PenstockError) -> str:
    """Return the first line of an error, shortened."""
    return f"{error.code}: {error.message.splitlines()[0][:160]}"


@dataclass(frozen=True)
class RescaleRequested:
    """A request to switch plans: take a checkpoint after which no row is processed, then resume from it as
    ``graph``, which has the same state.
    """

    graph: JobGraph
    plan: PlanIdentity


class HistoryPhase:
    """Tracks the history load of a deployment. ``live``: the plan that follows once the history's checkpoint
    is durable, None for a deployment without history.
    """

    # The source tasks that have not emitted all of their history.
    def __init__(self, live: RescaleRequested | None) -> None:
        self.live = live
        self._reading: set[TaskId] = set()

    def begins(self, sources: Sequence[TaskId]) -> None:
        """Start a deployment with these source tasks."""
        self._reading = set(sources)

    def read(self, task: TaskId) -> None:
        """A task has emitted its whole history, or has ended."""
        self._reading.discard(task)

    @property
    def loading(self) -> bool:
        """Whether this deployment loads history. Until all of it is loaded, no checkpoint is useful."""
        return self.live is not None

    # A deployment without history is never done with it.
    @property
    def done(self) -> bool:
        """Whether the whole history was emitted."""
        return self.loading and not self._reading

    def over(self) -> RescaleRequested | None:
        """Return the live plan, once."""
        # Taken once: the next deployment is the live plan and stays it.
        live, self.live = self.live, None
        return live
