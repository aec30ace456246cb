"""A job that runs at a server, as the client sees it."""

from __future__ import annotations

from typing import Any

from penstock.catalog.errors import PenstockError
from penstock.client.remote.flight_channel import FlightChannel
from penstock.client.remote.protocol import encode_words
from penstock.client.remote.wire_errors import decode_error
from penstock.engine.checkpoint.coordinator import CheckpointInfo, CheckpointKind
from penstock.engine.deploy.protocol.codec import decode
from penstock.engine.job.job_events import JobEvent
from penstock.engine.job.job_metrics import JobMetrics
from penstock.engine.job.job_state import JobState

_SLICE_S = 1.0
"""Of a wait in the main thread: Ctrl-C is handled between two requests."""


class RemoteJob:
    """The handle of a job of a server. Each property asks the server; a job goes on without its handle."""

    def __init__(self, channel: FlightChannel, job_id: str, name: str) -> None:
        self._channel = channel
        self.job_id = job_id
        self.name = name
        self._events: dict[JobEvent, JobEvent] = {}

    def __repr__(self) -> str:
        return f"<penstock.Job {self.job_id}: {self.name}, {self.state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteJob) and other.job_id == self.job_id

    def __hash__(self) -> int:
        return hash(self.job_id)

    @property
    def state(self) -> JobState:
        """The state of the job."""
        return JobState(self._facts()["state"])

    @property
    def error(self) -> PenstockError | None:
        """Why the job failed."""
        return _error(self._facts()["error"])

    @property
    def last_failure(self) -> PenstockError | None:
        """The job's last failure, even if it has restarted since."""
        return _error(self._facts()["last_failure"])

    @property
    def stopped(self) -> bool:
        """Whether it ended because it was stopped."""
        return bool(self._facts()["stopped"])

    @property
    def finished_before(self) -> bool:
        """Whether its state recorded that it had finished, so that it was not run again."""
        return bool(self._facts()["finished_before"])

    @property
    def parallelism(self) -> int:
        """The most subtasks any operator has."""
        return int(self._facts()["parallelism"])

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the job to end; return whether it has."""
        left_s = float("inf") if timeout_s is None else timeout_s
        while True:
            slice_s = max(0.0, min(left_s, _SLICE_S))
            if self._facts(wait=slice_s)["terminal"]:
                return True
            left_s -= slice_s
            if left_s <= 0:
                return False

    def cancel(self) -> None:
        """Cancel the job; uncommitted output is dropped. Does nothing when it has ended."""
        self._facts(act="cancel")

    def stop(self, *, drain: bool = False) -> None:
        """End the job after one more checkpoint. ``drain``: its sources end first; every window closes."""
        self._facts(act="drain" if drain else "stop")

    def metrics(self) -> JobMetrics:
        """Return the job's numbers as they are now."""
        sent = self._channel.action_bytes("penstock.job-metrics", encode_words({"id": self.job_id}))
        numbers, checkpoints, events = decode(sent)
        return JobMetrics(
            **numbers,
            checkpoints=tuple(
                CheckpointInfo(**{**each, "kind": CheckpointKind(each["kind"])}) for each in checkpoints
            ),
            # the same event is the same object at each call, as readers tell new ones by that
            events=tuple(
                self._events.setdefault(event, event) for event in (JobEvent(**each) for each in events)
            ),
        )

    def _known(self, event: JobEvent) -> JobEvent:
        return self._events.setdefault(event, event)

    def _facts(self, **words: Any) -> dict[str, Any]:
        return self._channel.action("penstock.job", {"id": self.job_id, **words})


def _error(sent: str | None) -> PenstockError | None:
    found = None if sent is None else decode_error(sent.encode())
    return None if found is None else found.raised()
