"""The watermark generator: event time per split, merged by minimum. Rows behind their own split's watermark
are marked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, ListState, Operator, Output, SplitEvent, SplitEventKind
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch
from penstock.engine.expressions import EvaluationContext, compile_expression
from penstock.engine.expressions.datum import nulls_of, values_of
from penstock.engine.kernels.watermarks import advance
from penstock.engine.metrics.operator_metrics import SplitProgress
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.time_attributes import CurrentWatermark, WatermarkAssign, WatermarkFacts
from penstock.planner.physical.operator_specs import OperatorSpec


@dataclass
class _Split:
    """One open split. ``empty_since_ms``: the first poll without rows since its last row; ``idle``: whether
    that is longer ago than the idle timeout.
    """

    split_id: str
    watermark_us: int
    empty_since_ms: float | None = None
    idle: bool = False
    last_event_us: int | None = None


class WatermarkGeneratorOperator(Operator, ListState):
    """Rows with a NULL time are forwarded and do not move the watermark.

    A split's watermark is the greatest value of the watermark expression over its rows so far, so it depends
    on the split's content alone. The emitted watermark is the minimum over the open splits that are not idle.
    When all are idle, Idle is emitted. Watermarks from below, of another column, go no further.
    """

    passes_time = False

    def __init__(self, spec: OperatorSpec[WatermarkAssign, WatermarkFacts], options: JobOptions) -> None:
        self._node, self._facts = spec.node, spec.facts
        self._zone = options.time_zone
        self._splits: dict[int, _Split] = {}
        # watermarks of a checkpoint by split id, until the split opens in this subtask
        self._restored: dict[str, int] = {}
        self._seen_splits = False
        self._sent_us = MIN_WATERMARK_US
        self._idle = False
        # since when no split is open here; None while one is
        self._alone_since_ms: float | None = None

    def open(self, context: Context) -> None:
        self._context = context
        self._watermark = compile_expression(
            self._node.watermark, EvaluationContext(self._zone, context.clock)
        )
        self._alone_since_ms = context.clock.monotonic_ms()

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        split = self._splits.get(batch.origin)
        if split is None:
            split = self._splits[batch.origin] = _Split(f"#{batch.origin}", MIN_WATERMARK_US)
        # rows end the idleness of their split
        split.empty_since_ms, split.idle = None, False
        # rows before the watermark they make
        out.collect(self._advanced(split, batch))
        self._advance(out)

    def _advanced(self, split: _Split, batch: Batch) -> Batch:
        """Advance a split by a batch; return it, with the watermark before each row if some is behind."""
        times, marks = batch.rows.column(self._node.time_column), self._watermark(batch.rows)
        latest_us: int | None
        if not self._facts.marks_rows and batch.num_rows and not (times.null_count or marks.null_count):
            # the usual batch: one pass, and no array of watermarks unless a row is behind
            highest = np.empty(2, np.int64)
            if not advance(values_of(times), values_of(marks), split.watermark_us, highest):
                split.watermark_us, latest_us = highest.tolist()
                self._note(split, latest_us)
                return Batch(batch.rows, batch.weights, None, batch.origin)
        before, split.watermark_us = self._progress(marks, split.watermark_us)
        self._note(split, pc.max(times).value)
        return self._marked(batch, before)

    def _note(self, split: _Split, latest_us: int | None) -> None:
        """Report the split's progress in the metrics."""
        if latest_us is not None:
            known_us = split.last_event_us
            split.last_event_us = latest_us if known_us is None else max(latest_us, known_us)
        self._show(split)

    def _show(self, split: _Split) -> None:
        watermark_us = None if split.watermark_us == MIN_WATERMARK_US else split.watermark_us
        self._context.metrics.splits[split.split_id] = SplitProgress(
            split.last_event_us, watermark_us, split.idle
        )

    @staticmethod
    def _progress(column: pa.Array, start_us: int) -> tuple[np.ndarray, int]:
        """Return the split's watermark just before each row, and after the last, from each row's own."""
        values = values_of(column)
        missing = nulls_of(column)
        # a NULL watermark moves nothing
        if missing is not None:
            values = np.where(missing, MIN_WATERMARK_US, values)
        # `before[i]`: the greatest watermark of the rows before row i; the last entry is that after the batch
        before = np.empty(len(values) + 1, np.int64)
        before[0] = start_us
        before[1:] = values
        np.maximum.accumulate(before, out=before)
        return before[:-1], int(before[-1])

    def _marked(self, batch: Batch, before: np.ndarray) -> Batch:
        column = batch.rows.column(self._node.time_column)
        # late for its own split: its time is below the watermark of the rows before it
        behind = values_of(column) < before
        missing = nulls_of(column)
        if missing is not None:
            behind &= ~missing
            self._context.metrics.count("null_time_rows", int(missing.sum()))
        marked = self._facts.marks_rows or behind.any()
        return Batch(batch.rows, batch.weights, before if marked else None, batch.origin)

    def on_split(self, event: SplitEvent, out: Output) -> None:
        """Process an event of a split; it is not forwarded."""
        self._seen_splits = True
        now_ms = self._context.clock.monotonic_ms()
        match event.kind:
            # from now on the split holds the minimum back, at its restored watermark
            case SplitEventKind.OPENED:
                self._splits[event.origin] = _Split(
                    event.split_id, self._restored.pop(event.split_id, MIN_WATERMARK_US)
                )
                self._show(self._splits[event.origin])
            # the split counts no more: the minimum may rise
            case SplitEventKind.ENDED:
                self._splits.pop(event.origin, None)
                self._context.metrics.splits.pop(event.split_id, None)
            # the split had no rows: after the idle timeout it no longer holds the minimum back
            case SplitEventKind.EMPTY:
                self._emptied(event.origin, now_ms)
        self._alone_since_ms = None if self._splits else self._alone_since_ms or now_ms
        if self._splits and (event.kind is not SplitEventKind.OPENED or self._idle):
            # An opened split moves nothing: restored splits open one by one, and the first may be far
            # ahead of the others.
            self._advance(out)

    def _emptied(self, origin: int, now_ms: float) -> None:
        split = self._splits.get(origin)
        if split is None:
            return
        if split.empty_since_ms is None:
            split.empty_since_ms = now_ms
        split.idle = self._waited(split.empty_since_ms, now_ms)
        self._show(split)

    def _waited(self, since_ms: float, now_ms: float) -> bool:
        timeout_ms = self._facts.idle_timeout_ms
        # 0: splits never become idle
        return timeout_ms > 0 and now_ms - since_ms >= timeout_ms

    def on_processing_time(self, now_ms: int, out: Output) -> None:
        """A subtask without a split for the idle timeout (a watched table with few files) is idle."""
        if (
            self._alone_since_ms is not None
            and not self._idle
            and self._waited(self._alone_since_ms, self._context.clock.monotonic_ms())
        ):
            self._idle = True
            out.idle()

    def _advance(self, out: Output) -> None:
        """Emit the merged watermark when it has advanced, or when the subtask is no longer idle."""
        active = [split.watermark_us for split in self._splits.values() if not split.idle]
        # all splits are idle: report it once
        if not active:
            if not self._idle:
                self._idle = True
                out.idle()
            return
        merged_us = min(active)
        # the same watermark again ends the idleness for the operators above
        if merged_us > self._sent_us or self._idle:
            self._idle = False
            self._sent_us = max(merged_us, self._sent_us)
            self._context.metrics.watermark_us = self._sent_us if self._sent_us > MIN_WATERMARK_US else None
            out.watermark(self._sent_us)

    def on_watermark(self, time_us: int, out: Output) -> None:
        """Of the input only its end is forwarded."""
        if time_us == MAX_WATERMARK_US:
            self._sent_us = time_us

    def list_states(self) -> dict[str, ListState]:
        return {"splits": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        # no split was opened since the restore: nothing of the old snapshot may be lost
        items_here = {} if self._seen_splits else dict(self._restored)
        for split in self._splits.values():
            items_here[split.split_id] = split.watermark_us
        return [
            {"split_id": split_id, "watermark_us": watermark_us}
            for split_id, watermark_us in sorted(items_here.items())
        ]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        """Keep all items: which splits are this subtask's is known once they open. Where several subtasks
        knew a split, the furthest is right.
        """
        for item in items:
            known = self._restored.get(item["split_id"], MIN_WATERMARK_US)
            self._restored[item["split_id"]] = max(known, item["watermark_us"])


class CurrentWatermarkOperator(Operator):
    """Appends the watermark of each row's split, which the generator below marks every row with."""

    def __init__(self, spec: OperatorSpec[CurrentWatermark, OperatorFacts], options: JobOptions) -> None:
        self._schema = spec.schema.to_arrow()

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # the codec and the exchange write a row that is marked with nothing as the minimum
        marks = np.full(batch.num_rows, MIN_WATERMARK_US) if batch.behind is None else batch.behind
        column = array_of(marks, marks == MIN_WATERMARK_US).view(self._schema[-1].type)
        rows = pa.RecordBatch.from_arrays([*batch.rows.columns, column], schema=self._schema)
        out.collect(batch.with_rows(rows))
