"""The stream of rows behind a result, and weighted rows as users see them: changes with an op, or only the
rows that are new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.stream_elements import Batch
from penstock.engine.api.threads import EngineThread
from penstock.engine.changelog.row_kinds import OP_FIELD, change_rows, with_op_column
from penstock.engine.connectors.in_process.result_channels import ResultChannels

if TYPE_CHECKING:
    from penstock.engine.bounded.backend import BoundedResult
    from penstock.engine.job.job import Job


class Feed(Protocol):
    """Gives weighted batches until it has ended."""

    def next(self, timeout_s: float | None) -> Batch | None:
        """Return the next batch; None when the time is up or at the end (``ended`` tells which). Raises
        the error that ended it.
        """

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    def close(self) -> None:
        """Stop whatever computes the result and drop what is left; may be called from any thread, and
        twice.
        """


class TableFeed:
    """Rows that are there already: what SHOW, DESCRIBE or EXPLAIN say."""

    def __init__(self, rows: pa.Table | None = None) -> None:
        self._batches = [] if rows is None else rows.to_batches()

    def next(self, timeout_s: float | None) -> Batch | None:
        return Batch(self._batches.pop(0)) if self._batches else None

    @property
    def ended(self) -> bool:
        return not self._batches

    def close(self) -> None:
        self._batches.clear()


class BackendFeed:
    """The rows of a bounded backend."""

    def __init__(self, result: BoundedResult) -> None:
        self._result = result

    def next(self, timeout_s: float | None) -> Batch | None:
        self._result.wait(timeout_s)
        rows = self._result.poll()
        return None if rows is None else Batch(rows)

    @property
    def ended(self) -> bool:
        return self._result.ended

    def progress(self) -> str | None:
        """Return in a few words how far the backend is."""
        return self._result.progress()

    def close(self) -> None:
        self._result.cancel()


class JobFeed:
    """What the collect sink of a job gives; closing it cancels the job, and so does the last of ``rows`` rows
    where a LIMIT says that none follow.

    A thread waits for the job's end, so that a reader learns of it at once.
    """

    def __init__(self, job: Job, channels: ResultChannels, operator_id: str, rows: int | None = None) -> None:
        self._job = job
        self._channels = channels
        self._operator_id = operator_id
        self._left = rows
        self._channel = channels.channel(operator_id)
        EngineThread(target=self._await_end, name=f"penstock-result-{operator_id}").start()
        self._close_when_none_follow()

    def next(self, timeout_s: float | None) -> Batch | None:
        batch = self._channel.next(timeout_s)
        if batch is not None and self._left is not None:
            self._left -= batch.num_rows
            self._close_when_none_follow()
        return batch

    @property
    def ended(self) -> bool:
        return self._channel.ended

    def close(self) -> None:
        self._channel.close()
        if not self._job.state.terminal:
            self._job.cancel()
        self._channels.release(self._operator_id)

    def _close_when_none_follow(self) -> None:
        if self._left is not None and self._left <= 0:
            self.close()

    def _await_end(self) -> None:
        self._job.wait(None)
        self._channel.finish(self._job.error)


def op_rows(batch: Batch, upsert_key: tuple[int, ...] | None) -> pa.RecordBatch:
    """Return the changes of a batch with a first column ``op``: a -1 and a +1 of one upsert key are ``-U``
    and ``+U``, side by side.
    """
    rows, ops = change_rows(batch, upsert_key)
    return with_op_column(rows, ops)


def change_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a changelog: ``op``, then the row."""
    return pa.schema([OP_FIELD, *schema])


def new_rows(batch: Batch) -> pa.RecordBatch:
    """Return the rows a batch adds, without those it takes back."""
    if batch.weights is None:
        return batch.rows
    return batch.rows.take(array_of(np.repeat(np.arange(batch.num_rows), np.maximum(batch.weights, 0))))
