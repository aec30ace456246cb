"""Where the batches of a result come from: a table at hand, the bounded backend, or the collect sink of a running job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import pyarrow as pa

from catalog.errors import PenstockError
from engine.connectors.collect import ResultChannels
from engine.elements import Batch
from engine.job_state import JobState


class Feed(Protocol):
    """Gives weighted batches until it has ended."""

    def next(self, timeout_s: float | None) -> Batch | None:
        """Return the next batch; None when the time is up or at the end (``ended`` tells which). Raises the error that ended it."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    def close(self) -> None:
        """Stop whatever computes the result and drop what is left; may be called from any thread, and twice."""


class TableFeed:
    """Rows that are there already: what SHOW, DESCRIBE or EXPLAIN say."""

    def __init__(self, rows: pa.Table) -> None:
        self._batches = rows.to_batches()

    def next(self, timeout_s: float | None) -> Batch | None:
        return Batch(self._batches.pop(0)) if self._batches else None

    @property
    def ended(self) -> bool:
        return not self._batches

    def close(self) -> None:
        self._batches.clear()


class BackendResult(Protocol):
    """What a bounded backend gives back."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches of the result."""

    def cancel(self) -> None:
        """Stop computing."""

    def close(self) -> None:
        """Release what the result holds."""


class BackendFeed:
    """The result of a bounded backend; ``next`` waits as long as the backend does."""

    def __init__(self, result: BackendResult, schema: pa.Schema) -> None:
        self._result = result
        self._batches = iter(result)
        self._schema = schema
        self._ended = False

    def next(self, timeout_s: float | None) -> Batch | None:
        if self._ended:
            return None
        rows = next(self._batches, None)
        if rows is None:
            self._finish()
            return None
        return Batch(rows if rows.schema.equals(self._schema) else rows.cast(self._schema))

    @property
    def ended(self) -> bool:
        return self._ended

    def close(self) -> None:
        if not self._ended:
            self._result.cancel()
            self._finish()

    def _finish(self) -> None:
        self._ended = True
        self._result.close()


class RunningJob(Protocol):
    """What a feed needs to know of a job."""

    @property
    def state(self) -> JobState:
        """Where the job stands."""

    @property
    def error(self) -> PenstockError | None:
        """What it failed of."""

    def cancel(self) -> None:
        """Stop now."""


class JobFeed:
    """What the collect sink of a job gives; closing it cancels the job."""

    def __init__(self, job: RunningJob, channels: ResultChannels, operator_id: str) -> None:
        self._job = job
        self._channels = channels
        self._operator_id = operator_id
        self._channel = channels.channel(operator_id)
        self._closed = False

    def next(self, timeout_s: float | None) -> Batch | None:
        over = self._job.state.terminal  # asked before the channel: what a job gave before it ended is in the channel by then
        batch = self._channel.next(0 if over else timeout_s)
        if batch is None and over and not self._closed:
            self._channel.finish(self._job.error)
            return self._channel.next(0)
        return batch

    @property
    def ended(self) -> bool:
        return self._channel.ended

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._channel.close()
            if not self._job.state.terminal:
                self._job.cancel()
            self._channels.release(self._operator_id)
