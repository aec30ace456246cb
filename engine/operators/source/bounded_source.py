"""The bounded source: the result of a subplan that the bounded backend computes, emitted by subtask 0 and
replayed exactly after a restore.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, HeadOperator, ListState, Output, SourceStatus
from penstock.engine.api.stream_elements import Batch
from penstock.engine.bounded.backend import BoundedResult
from penstock.engine.bounded.exact_types import ExactBatches
from penstock.engine.bounded.registry import BoundedBackends
from penstock.engine.storage.staged_rows import StagedRows, attempt_directory, is_complete, new_attempt
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.scan import BoundedInput
from penstock.planner.physical.operator_specs import OperatorSpec

# milliseconds until the next poll while the backend still computes
_ASK_AGAIN_MS = 20


class BoundedSourceOperator(HeadOperator, ListState):
    """Emits the rows of a bounded query without blocking.

    A query may return its rows in another order when it runs again, so a position in them is not stable. With
    checkpoints the result is staged first, and emitted only once it is complete: a position is then (attempt,
    batch, row) of files that stay.
    """

    def __init__(self, spec: OperatorSpec[BoundedInput, OperatorFacts], options: JobOptions) -> None:
        self._node = spec.node
        self._options = options
        # only a job that may restore needs rows that stay the same
        self._staged_first = options.state_dir is not None or options.checkpoint_interval_ms > 0
        self._exact = ExactBatches(spec.schema)
        self._result: BoundedResult | None = None
        self._staged: StagedRows | None = None
        self._rows: pa.RecordBatch | None = None
        self._attempt = self._batch = self._row = 0
        self._done = False

    def open(self, context: Context) -> None:
        self._context = context
        # one subtask emits the whole result
        self._done = context.subtask != 0
        if self._done:
            return
        backends: BoundedBackends = context.services.get(BoundedBackends)
        self._backend = backends.for_plan(self._node.plan, self._options.bounded_backend or None)
        if self._staged_first:
            self._root = backends.staging_root(self._options.state_dir, context.job_id, context.operator_id)

    def list_states(self) -> dict[str, ListState]:
        return {"position": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        if self._context.subtask != 0:
            return []
        # attempt: number of the staging directory; batch, row: the next row to emit; done: nothing is left
        return [{"attempt": self._attempt, "batch": self._batch, "row": self._row, "done": self._done}]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        if self._context.subtask != 0 or not items:
            return
        (item,) = items
        self._done = item["done"]
        directory = attempt_directory(self._root, item["attempt"]) if self._staged_first else None
        # An incomplete directory of which nothing was emitted: the query runs again, in a new attempt. With
        # rows emitted the files must be there: check() fails otherwise.
        if self._done or directory is None or not (is_complete(directory) or item["batch"] or item["row"]):
            return
        self._staged = StagedRows(directory)
        self._staged.check()  # before anything is emitted
        self._attempt, self._batch, self._row = item["attempt"], item["batch"], item["row"]

    def poll(self, out: Output) -> SourceStatus:
        if self._done:
            return SourceStatus(ended=True)
        if self._rows is None:
            self._rows = self._next()
        # the backend has no batch yet, or the result is complete
        if self._rows is None:
            if self._done:
                return SourceStatus(ended=True)
            return SourceStatus(wake_ms=int(self._context.clock.monotonic_ms()) + _ASK_AGAIN_MS)
        piece = self._rows.slice(self._row, self._options.batch_max_rows)
        self._row += piece.num_rows
        # the position moves before the batch is emitted; no snapshot is taken in between
        if self._row >= self._rows.num_rows:
            self._rows, self._batch, self._row = None, self._batch + 1, 0
        out.collect(Batch(piece))
        return SourceStatus(more=True)

    def _next(self) -> pa.RecordBatch | None:
        """The batch at the position, ``None`` when there is none yet, or none any more (the source is
        done).
        """
        # after a restore: read the files of the earlier attempt
        if self._staged is not None:
            if self._batch < len(self._staged):
                return self._exact.cast(self._staged.batch(self._batch))
            self._done = True
            return None
        # the query starts at the first poll, not when the task opens
        if self._result is None:
            self._result = self._start()
        rows = self._result.poll()
        if rows is None and self._result.ended:
            self._done = True
        return rows

    def _start(self) -> BoundedResult:
        if not self._staged_first:
            return self._backend.run(self._node.plan, time_zone=self._options.time_zone)
        # a directory of its own: files of a failed attempt are never mixed with these
        self._attempt = new_attempt(self._root)
        directory = attempt_directory(self._root, self._attempt)
        return self._backend.run(self._node.plan, staging_dir=directory, time_zone=self._options.time_zone)

    def close(self) -> None:
        if self._result is not None:
            self._result.close()
