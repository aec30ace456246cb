"""The stream of rows behind a result, and weighted rows as users see them: changes with an op, or only the
rows that are new.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from penstock.client.results.session_memory import SessionMemory
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.stream_elements import Batch
from penstock.engine.api.threads import EngineThread
from penstock.engine.changelog.consolidate import Fold, summed
from penstock.engine.changelog.row_kinds import OP_FIELD, change_rows, with_op_column
from penstock.engine.connectors.in_process.result_channels import ResultChannels

if TYPE_CHECKING:
    from penstock.catalog.errors import PenstockError
    from penstock.engine.bounded.backend import BoundedResult
    from penstock.engine.job.job import Job


class ResultStream(Protocol):
    """The weighted batches of a result, one after the other."""

    def next(self, timeout_s: float | None) -> Batch | None:
        """Return the next batch, or None at the end or when the time is up; ``ended`` distinguishes them.
        Raises the error that ended the stream.
        """

    @property
    def ended(self) -> bool:
        """Whether nothing more will come."""

    def close(self) -> None:
        """Stop whatever computes the result and drop the remaining rows. Any thread may call it, and
        repeatedly.
        """


class TableStream:
    """The stream of rows that exist already, as SHOW, DESCRIBE and EXPLAIN return them."""

    def __init__(self, rows: pa.Table | None = None) -> None:
        self._batches = [] if rows is None else rows.to_batches()

    def next(self, timeout_s: float | None) -> Batch | None:
        return Batch(self._batches.pop(0)) if self._batches else None

    @property
    def ended(self) -> bool:
        return not self._batches

    def close(self) -> None:
        self._batches.clear()


class BackendStream:
    """The stream of rows that a bounded backend computes; ``name`` is the backend's."""

    def __init__(self, result: BoundedResult, name: str) -> None:
        self.name = name
        self._result = result

    def next(self, timeout_s: float | None) -> Batch | None:
        # wait does not return rows: poll is None when the time is up, and at the end
        self._result.wait(timeout_s)
        rows = self._result.poll()
        return None if rows is None else Batch(rows)

    @property
    def ended(self) -> bool:
        return self._result.ended

    def progress(self) -> str | None:
        """Return the backend's progress in a few words, or None."""
        return self._result.progress()

    def memory_bytes(self) -> int:
        """Return the bytes of the rows that wait to be read."""
        return self._result.memory_bytes()

    def fail(self, error: PenstockError) -> None:
        """Stop the query: the next call raises ``error``."""
        self._result.fail(error)

    def close(self) -> None:
        self._result.cancel()


class FoldedStream:
    """The final rows of another stream that ends: nothing before its end, then every row once."""

    def __init__(
        self,
        stream: ResultStream,
        schema: pa.Schema,
        in_order: Callable[[pa.Table], pa.Table],
        memory: SessionMemory | None = None,
    ) -> None:
        self._stream = stream
        self._fold = Fold(schema)
        self._memory = memory or SessionMemory()
        self._memory.add_fold(self._fold)
        self._in_order = in_order
        self._final: TableStream | None = None
        self._closed = False

    def next(self, timeout_s: float | None) -> Batch | None:
        if self._final is None:
            batch = self._stream.next(timeout_s)
            if batch is not None:
                self._fold.add(batch)
                self._memory.check()
            # a failed stream has raised its error above: no rows of it are final
            if not self._stream.ended:
                return None
            # the error that ended it is raised by one more call
            self._stream.next(0)
            # closed by another thread in the middle: what came so far is no answer
            self._final = TableStream(None if self._closed else self._in_order(self._fold.rows()))
        return self._final.next(timeout_s)

    @property
    def ended(self) -> bool:
        return self._final is not None and self._final.ended

    def close(self) -> None:
        self._closed = True
        self._stream.close()
        self._final = TableStream()


class JobStream:
    """The stream of rows from a job's collect sink. Closing it cancels the job. ``rows``: the number of
    rows after which the job is cancelled, because its LIMIT allows no more. A thread waits for the job's
    end, so that a reader notices it at once.
    """

    def __init__(self, job: Job, channels: ResultChannels, operator_id: str, rows: int | None = None) -> None:
        self._job = job
        self._channels = channels
        self._operator_id = operator_id
        self._left = rows
        self._channel = channels.channel(operator_id)
        # without it a reader would see the end of a failed job only at its next poll
        EngineThread(target=self._await_end, name=f"penstock-result-{operator_id}").start()
        self._close_when_none_follow()

    def next(self, timeout_s: float | None) -> Batch | None:
        batch = self._channel.next(timeout_s)
        if batch is not None and self._left is not None:
            # a LIMIT emits no retractions, so rows may simply be counted
            self._left -= batch.num_rows
            self._close_when_none_follow()
        return batch

    @property
    def ended(self) -> bool:
        return self._channel.ended

    def memory_bytes(self) -> int:
        """Return the bytes of the rows that wait to be read, and of the job's state in memory."""
        return self._channel.nbytes + self._job.metrics().state_bytes

    def fail(self, error: PenstockError) -> None:
        """Cancel the job: the next call raises ``error``."""
        self._channel.fail(error)
        self._job.cancel()

    def close(self) -> None:
        # all rows were read: the job ends by itself, and is not to be seen as cancelled
        is_complete = self._channel.ended and not self._channel.closed
        # the channel first: a sink that waits for the reader runs on, so that the job can end
        self._channel.close()
        if not is_complete and not self._job.state.terminal:
            self._job.cancel()
        self._channels.release(self._operator_id)

    def _close_when_none_follow(self) -> None:
        if self._left is not None and self._left <= 0:
            self.close()

    def _await_end(self) -> None:
        self._job.wait(None)
        # with None the reader sees the end of the rows, with an error it raises that
        self._channel.finish(self._job.error)


def op_rows(batch: Batch, upsert_key: tuple[int, ...] | None) -> pa.RecordBatch:
    """Return the changes of a batch with a first column ``op``. A -1 and a +1 of one upsert key become
    ``-U`` and ``+U``, side by side.
    """
    rows, ops = change_rows(batch, upsert_key)
    return with_op_column(rows, ops)


def change_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of a changelog: ``op``, then the row."""
    return pa.schema([OP_FIELD, *schema])


def visible_rows(batch: Batch, schema: pa.Schema) -> Batch:
    """Return a batch with its first columns only, those of a schema. Rows that are equal in them are one:
    what it adds and takes away again is no change.
    """
    rows = pa.RecordBatch.from_arrays(batch.rows.columns[: len(schema)], schema=schema)
    if batch.weights is None:
        return Batch(rows)
    summed_rows, weights = summed(pa.Table.from_batches([rows]), batch.weights)
    return (
        Batch(summed_rows.combine_chunks().to_batches()[0], weights)
        if len(weights)
        else Batch(rows.slice(0, 0))
    )


def new_rows(batch: Batch) -> pa.RecordBatch:
    """Return the rows that a batch adds, without its retractions."""
    # no weights: every row counts +1
    if batch.weights is None:
        return batch.rows
    return batch.rows.take(array_of(np.repeat(np.arange(batch.num_rows), np.maximum(batch.weights, 0))))
