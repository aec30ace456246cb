"""The source operator: it reads this subtask's splits of a table, and knows its position in each. Its variant
reads a materialized view.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.connectors.connector import Boundedness
from penstock.catalog.connectors.registry import boundedness, scan_rate
from penstock.catalog.errors import Kind, PenstockError
from penstock.catalog.types import is_timestamp
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import (
    Context,
    HeadOperator,
    KeyedState,
    KeysKnown,
    ListState,
    Output,
    SourceStatus,
    SplitEvent,
    SplitEventKind,
)
from penstock.engine.api.scan_pruning import Skipping
from penstock.engine.api.source import (
    CheckpointListener,
    Position,
    PositionedSource,
    ScanRequest,
    SplitReader,
    reports_arrivals,
    split_owner,
)
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.changelog.consolidate import Fold, negated
from penstock.engine.connectors.in_process.materialized_views import MaterializedTables
from penstock.engine.connectors.registry import source_connector
from penstock.engine.expressions.compiler import compile_expression, compile_predicate
from penstock.engine.expressions.kernel_factory import EvaluationContext
from penstock.engine.formats.decoded_batch import empty_columns
from penstock.engine.operators.source.alignment import alignment_of
from penstock.engine.operators.source.split_meter import SplitMeter
from penstock.engine.state.rows.table_contents import Contents
from penstock.planner.expressions.nodes import expression_of
from penstock.planner.logical.scan import Scan, SourceFacts
from penstock.planner.physical.operator_specs import OperatorSpec

# readers (files) that are open at once
MAX_OPEN = 64

# milliseconds until a split without rows is polled again
EMPTY_PAUSE_MS = 10

# The same of a split that reports its next rows. A poll also lets a reader notice an outage, and a split
# become idle: five of them a second take 0.1 % of a processor.
REPORTED_PAUSE_MS = 200

# Where several splits have event time, the first batch of each has so many rows at most. The watermark waits
# for the first row of each: 40 files of whole batches were 1.3 million rows before it.
FIRST_ROWS = 1024

# about the bytes of a batch: with wide rows fewer of them are read at once
BATCH_BYTES = 16 << 20

PACE_MS = 1.0
"""A paced source emits the rows due in this time at once: smaller batches would keep the thread from other
tasks.
"""

BURST_MS = 1000.0
"""A paced source that had no rows, or was blocked, catches up on at most this time: one second as in Guava's
(and so Flink's) token bucket.
"""

# milliseconds between two looks at the version of a materialized view
PAUSE_MS = 10


_MORE = SourceStatus(more=True)

# A batch of fewer rows than asked for is all that a source had, if it is small. Readers of files return whole
# pieces, mostly larger ones, however many rows follow.
SMALL_ROWS = 32_768

_CAUGHT_UP = SourceStatus(more=True, caught_up=True)


@dataclass(eq=False)
class _Split:
    """One split of this subtask. ``time_us``: the event time it has reached; ``again_ms``: when to poll an
    empty one again.

    ``rows``: those read in this deployment; ``empty_since_ms``: the first poll without rows
    since its last row.
    """

    origin: int
    split_id: str
    position: Position | None = None
    finished: bool = False
    reader: SplitReader | None = None
    time_us: int = MIN_WATERMARK_US
    again_ms: float = 0.0
    rows: int = 0
    empty_since_ms: float | None = None

    def item(self) -> dict[str, Any]:
        """Return the split as an item of state."""
        position = self.reader.position() if self.reader is not None else self.position
        return {"split": self.split_id, "position": position, "finished": self.finished}


class SourceOperator(HeadOperator, ListState):
    """Reads splits, the one furthest behind in event time first: splits then advance together, and windows
    need little state.

    Every split of the subtask counts as open from the start, so its watermark cannot pass unread rows. The
    splits of a bounded table are listed once and assigned in the order of their ids. Those of a table that
    discovers splits are assigned by a stable hash of the id.
    """

    def __init__(self, spec: OperatorSpec[Scan, SourceFacts], options: JobOptions) -> None:
        self._spec, self._node, self._facts = spec, spec.node, spec.facts
        self._options = options
        self._splits: list[_Split] = []
        # ids of all splits that were ever listed, other subtasks' too: a discovery skips them
        self._known: set[str] = set()
        # whether the splits were listed, or restored
        self._looked = False
        # so many of `_splits` were reported to the watermark generator as open
        self._announced = 0
        # announced splits that are not finished
        self._live: list[_Split] = []
        self._open_readers = 0
        # by checkpoint, in their order: positions of the readers that want to know that it is durable
        self._reported: dict[int, list[tuple[_Split, Position]]] = {}
        self._keep = (
            None
            if spec.node.predicate is None
            else compile_predicate(spec.node.predicate, EvaluationContext(options.time_zone))
        )

    def open(self, context: Context) -> None:
        self._context = context
        self._time_of = _event_time(self._spec, EvaluationContext(self._options.time_zone, context.clock))
        table, columns = self._node.table, self._node.columns
        request = (
            table,
            columns,
            self._node.predicate,
            self._options.batch_max_rows,
            context.clock,
            context.services,
            context.metrics,
        )
        self._skipping = Skipping(context.metrics) if self._facts.skips else None
        self._connector = source_connector(
            ScanRequest(*request, self._skipping, context.keeps_snapshots, context.arrivals)
        )
        # a table that ends is listed once: a subtask that has read its splits ends, and could not read more
        endless = boundedness(table) is Boundedness.UNBOUNDED
        self._discover_ms = self._connector.discover_every_ms() if endless else None
        self._next_discovery_ms = 0.0
        self._rate = 0.0
        # token bucket: `_emitted` rows of what was due since this time
        self._budget_from_ms: float | None = None
        self._emitted = 0
        self._rows_at_once = self._options.batch_max_rows
        self._alignment = alignment_of(table, context)
        self._meter = SplitMeter(context.metrics, context.clock.monotonic_ms())

    def list_states(self) -> dict[str, ListState]:
        return {"splits": self}

    def snapshot_items(self) -> list[dict[str, Any]]:
        # a snapshot before the first poll lists all splits too
        self._look()
        return [split.item() for split in self._splits]

    def restore_items(self, items: list[dict[str, Any]]) -> None:
        if not items:
            return
        states = {item["split"]: item for item in items}
        # all ids of the snapshot in one order, so that every subtask assigns them alike
        self._connector.recall(sorted(states))
        self._assign(sorted(states))
        for split in self._splits:
            item = states[split.split_id]
            split.position, split.finished = item["position"], item["finished"]
        self._looked = True

    def on_keys(self, known: KeysKnown) -> None:
        for join_id, places in self._facts.skips:
            if self._skipping is not None and join_id == known.join_id:
                self._skipping.learn(known.keys, [self._spec.schema.names[place] for place in places])

    def poll(self, out: Output) -> SourceStatus:
        # Order: new splits are announced before any row is read. The watermark then waits for them.
        now_ms = self._context.clock.monotonic_ms()
        # the connector does not say of which split
        if self._context.arrivals.take():
            for live in self._live:
                live.again_ms = now_ms
        self._look()
        self._discover(now_ms)
        self._announce(out)
        self._meter.measure(now_ms, self._live)
        if self._alignment is not None:
            self._alignment.update(now_ms, self._readable())
        allowed, refill_ms = self._allowance(now_ms)
        split = self._next_split(now_ms)
        # nothing to read now: say when to poll again
        if split is None or not allowed:
            return self._wait_status(now_ms, refill_ms if split is not None else None)
        # opened only now, at its restored position: at most MAX_OPEN are open
        if split.reader is None:
            split.reader = self._connector.open(split.split_id, split.position)
            self._open_readers += 1
        most = min(self._rows_at_once, self._first_rows(split))
        rows = split.reader.poll(min(allowed, most))
        # all that the split had for now, or all that its rate allows
        caught_up = (
            rows is not None and rows.num_rows < most and (allowed < most or rows.num_rows < SMALL_ROWS)
        )
        if rows is not None:
            self._emit(rows, split, out)
        # the split has no more rows, now and ever
        elif split.reader.ended:
            self._finish(split, out)
        else:
            # an empty split may become idle: the watermark generator counts the time
            split.again_ms = now_ms + (
                REPORTED_PAUSE_MS if reports_arrivals(split.reader) else EMPTY_PAUSE_MS
            )
            split.empty_since_ms = now_ms if split.empty_since_ms is None else split.empty_since_ms
            out.split(SplitEvent(SplitEventKind.EMPTY, split.origin, split.split_id))
        if not self._live and self._discover_ms is None:
            return SourceStatus(ended=True)
        return _CAUGHT_UP if caught_up else _MORE

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        reported = [
            (split, split.item()["position"])
            for split in self._splits
            if isinstance(split.reader, CheckpointListener)
        ]
        if reported:
            self._reported[checkpoint_id] = reported

    def on_checkpoint_complete(self, checkpoint_id: int) -> None:
        # an earlier checkpoint that was never reported complete is contained in this one
        for done in [known for known in self._reported if known <= checkpoint_id]:
            for split, position in self._reported.pop(done):
                if isinstance(split.reader, CheckpointListener):
                    split.reader.checkpoint_completed(position)

    def close(self) -> None:
        # one that fails to close keeps neither the others open nor those waiting that align with this source
        with contextlib.ExitStack() as closing:
            if self._alignment is not None:
                closing.callback(self._alignment.leave)
            for split in self._splits:
                if split.reader is not None:
                    closing.callback(split.reader.close)

    def _assign(self, split_ids: list[str]) -> None:
        """Assign splits: add those of the ids that are this subtask's. The ids are all of a table, or the
        newly discovered ones.
        """
        own, all_ = self._context.subtask, self._context.parallelism
        for index, split_id in enumerate(split_ids):
            # New splits change the order of ids, but not a hash: a split stays with its subtask.
            owner = split_owner(split_id, all_) if self._discover_ms is not None else index % all_
            if owner == own:
                self._splits.append(_Split(len(self._splits), split_id, self._first_position(split_id)))
        self._known.update(split_ids)
        share = len(self._splits) / max(1, len(self._known))  # a discovery without new splits changes nothing
        # the lower one of the connector's own option and of every table's
        rates = [rate for rate in (self._connector.rows_per_second(), scan_rate(self._node.table)) if rate]
        self._rate = min(rates, default=0) * share

    def _first_position(self, split_id: str) -> Position | None:
        connector = self._connector
        return connector.first_position(split_id) if isinstance(connector, PositionedSource) else None

    def _look(self) -> None:
        """List the splits once; a restored subtask has them in its state."""
        if not self._looked:
            self._looked = True
            self._assign(self._connector.splits())

    def _discover(self, now_ms: float) -> None:
        """List the splits again when a discovery is due."""
        if self._discover_ms is not None and now_ms >= self._next_discovery_ms:
            self._assign([split_id for split_id in self._connector.splits() if split_id not in self._known])
            self._next_discovery_ms = now_ms + self._discover_ms

    def _announce(self, out: Output) -> None:
        for split in self._splits[self._announced :]:
            if not split.finished:
                self._live.append(split)
                out.split(SplitEvent(SplitEventKind.OPENED, split.origin, split.split_id))
        self._announced = len(self._splits)

    def _next_split(self, now_ms: float) -> _Split | None:
        """Return the split to read: of those open (or to be opened, at most 64) the one furthest behind in
        event time.
        """
        # no event time: one split after the other
        ready = (split for split in self._live if split.again_ms <= now_ms)
        if self._time_of is None:
            return next(ready, None)
        first = self._furthest_behind(now_ms)
        # all are ahead of what was reported at the last look
        if first is None and self._alignment is not None:
            self._alignment.learn()
            first = self._furthest_behind(now_ms)
        return first

    def _first_rows(self, split: _Split) -> int:
        """Return how many rows may be read of a split now: few of one that was not read yet, so that the
        others come to their turn.
        """
        first = self._time_of is not None and not split.rows and len(self._live) > 1
        return FIRST_ROWS if first else self._options.batch_max_rows

    def _furthest_behind(self, now_ms: float) -> _Split | None:
        ready: Iterable[_Split] = (split for split in self._readable() if split.again_ms <= now_ms)
        if self._alignment is not None:
            ready = filter(self._alignment.allows, ready)
        return min(ready, key=lambda split: (split.time_us, split.origin), default=None)

    def _readable(self) -> Iterable[_Split]:
        """Return the live splits that are open or may be opened: no further one is until one is finished."""
        if self._open_readers < MAX_OPEN:
            return self._live
        return [split for split in self._live if split.reader is not None]

    def _emit(self, rows: pa.RecordBatch | Batch, split: _Split, out: Output) -> None:
        self._emitted += rows.num_rows
        split.rows += rows.num_rows
        split.empty_since_ms = None
        batch = (
            Batch(rows, origin=split.origin)
            if isinstance(rows, pa.RecordBatch)
            else replace(rows, origin=split.origin)
        )
        # the next poll asks for as many rows of this width as make about BATCH_BYTES
        per_row = max(1, batch.size_bytes // max(1, batch.num_rows))
        self._rows_at_once = min(self._options.batch_max_rows, max(1, BATCH_BYTES // per_row))
        # WHERE pushed into the scan: applied here too, for a connector may only skip whole pieces of a file
        stored = batch if self._keep is None else batch.filter(self._keep(batch.rows))
        if self._time_of is not None and stored.num_rows:
            split.time_us = max(split.time_us, self._time_of(stored.rows))
        out.collect(stored)

    def _finish(self, split: _Split, out: Output) -> None:
        # read before the reader is closed: it is the position of the last row
        split.position = split.reader.position() if split.reader is not None else split.position
        if split.reader is not None:
            split.reader.close()
            self._open_readers -= 1
        split.reader, split.finished = None, True
        self._live.remove(split)
        self._meter.end(split)
        if self._alignment is not None and not self._live and self._discover_ms is None:
            self._alignment.leave()
        self._context.metrics.count("splits_finished")
        out.split(SplitEvent(SplitEventKind.ENDED, split.origin, split.split_id))

    def _allowance(self, now_ms: float) -> tuple[int, float]:
        """Return how many rows may be emitted now and, when none, the time when the next may.

        A token bucket: rows that were due and not emitted are caught up on, at most ``BURST_MS`` of them.
        """
        if not self._rate:
            return self._options.batch_max_rows, now_ms
        if self._budget_from_ms is None:
            self._budget_from_ms = now_ms
        # rows due since the start of the budget; the first is due at once
        due = (now_ms - self._budget_from_ms) * self._rate / 1000 + 1
        allowed, at_once = int(due) - self._emitted, max(1, int(self._rate * PACE_MS / 1000))
        most = max(at_once, int(self._rate * BURST_MS / 1000))
        # too far behind: move the start of the budget, so that the older rows are no longer due
        if allowed > most:
            self._budget_from_ms += (allowed - most) * 1000 / self._rate
            allowed = most
        return allowed if allowed >= at_once else 0, self._budget_from_ms + (
            self._emitted + at_once - 1
        ) * 1000 / self._rate

    def _wait_status(self, now_ms: float, refill_ms: float | None) -> SourceStatus:
        if not self._live and self._discover_ms is None:
            return SourceStatus(ended=True)
        # whatever comes first: an empty split, the next discovery, the next row that is due
        times = [split.again_ms for split in self._live if split.again_ms > now_ms]
        times += [] if self._discover_ms is None else [self._next_discovery_ms]
        times += [] if refill_ms is None else [refill_ms]
        # splits that wait for others
        times += [] if self._alignment is None else [now_ms + EMPTY_PAUSE_MS]
        return SourceStatus(wake_ms=int(min(times, default=now_ms)) + 1)


def _event_time(spec: OperatorSpec[Scan, SourceFacts], context: EvaluationContext) -> Any:
    """Return a function from a batch to the event time it reaches (microseconds), ``None`` for a table
    without watermark.

    It only decides the order of reading. A computed time is that of the last row; if not all its columns are
    read it is unknown.
    """
    table = spec.node.table
    if table.watermark is None:
        return None
    # the time is a column of the source: the greatest value of the batch
    schema_index = table.source_schema.index_of(table.watermark.column)
    places = {source: place for place, source in enumerate(spec.node.columns)}
    if (
        schema_index is not None
        and schema_index in places
        and is_timestamp(table.source_schema[schema_index].type)
    ):
        place = places[schema_index]
        return lambda rows: _micros(pc.max(rows.column(place)))
    # the time is computed, as in ts AS TO_TIMESTAMP(text): evaluate the last row only
    for column in table.computed:
        expression = expression_of(column.expression)
        if column.name == table.watermark.column and expression.columns() <= places.keys():
            evaluate = compile_expression(expression.remap(places), context)
            return lambda rows: _micros(evaluate(rows.slice(rows.num_rows - 1))[0])
    return lambda rows: MIN_WATERMARK_US


def _micros(value: pa.Scalar) -> int:
    return value.cast(pa.timestamp("us")).value if value.is_valid else MIN_WATERMARK_US


class MaterializedViewSourceOperator(HeadOperator):
    """Follows a materialized view. One subtask does, so that no barrier separates two parts of one version.

    What was emitted is state: after a restore the difference to the current view is emitted.
    """

    def __init__(self, spec: OperatorSpec[Scan, SourceFacts], options: JobOptions) -> None:
        self._name = spec.node.table.options["name"]
        self._schema = spec.node.table.source_schema.to_arrow()
        self._columns = list(spec.node.columns)
        self._keep = (
            None
            if spec.node.predicate is None
            else compile_predicate(spec.node.predicate, EvaluationContext(options.time_zone))
        )
        self._version = 0

    def open(self, context: Context) -> None:
        self._context = context
        self._emitted = Contents(self._schema, context.key_groups.start)
        self._view = context.services.get(MaterializedTables).contents(self._name)

    def keyed_states(self) -> dict[str, KeyedState]:
        # checkpoints name it so
        return {"given": self._emitted}

    def poll(self, out: Output) -> SourceStatus:
        # subtask 0 alone follows the view
        if self._context.subtask:
            return SourceStatus(ended=True)
        standing = self._view.standing()
        if standing.error is not None:
            message = f"materialized view {self._name} has failed, so its readers cannot continue"
            raise PenstockError(
                "DAT-4113", message, detail=standing.error.message, kind=Kind.EXTERNAL
            ) from standing.error
        # a newer version of the view: emit the difference to what was emitted
        if standing.version > self._version:
            self._emit(out)
            return SourceStatus(more=True)
        if standing.finished:
            return SourceStatus(ended=True)
        return SourceStatus(wake_ms=int(self._context.clock.monotonic_ms()) + PAUSE_MS)

    def _emit(self, out: Output) -> None:
        # the changes since our version, or None when the view no longer stores them
        known = self._view.since(self._version)
        if known is None:
            # all rows of the view (+1) and all that were emitted (-1): what is in both cancels out
            self._version, state = self._view.state()
            changes = self._summed([*state, *map(negated, self._emitted.weighted())])
        else:
            self._version, pieces = known
            changes = self._summed(pieces)
        for batch in changes:
            # whole rows are stored, for a restore compares them; only the columns of the query are emitted
            self._emitted.add(batch)
            rows = batch.rows.select(self._columns) if self._columns else empty_columns(batch.num_rows)
            shown = Batch(rows, batch.weights)
            out.collect(shown if self._keep is None else shown.filter(self._keep(shown.rows)))

    def _summed(self, pieces: list[Batch]) -> list[Batch]:
        fold = Fold(self._schema)
        for piece in pieces:
            fold.add(piece)
        return fold.weighted()
