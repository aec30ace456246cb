"""Operator chains: operators of one task call each other directly; rows are counted as they pass.

Latency markers pass a chain behind the rows an operator buffers for a moment, but do not wait for rows it
keeps as state.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from penstock.catalog.errors import Kind, PenstockError, out_of_memory
from penstock.engine.api.clock import Clock
from penstock.engine.api.operator import (
    Context,
    HeadOperator,
    KeysKnown,
    Operator,
    Output,
    PendingOutput,
    SourceStatus,
    SplitEvent,
    start_output,
)
from penstock.engine.api.row_pieces import LIMITS, cut, is_capacity, row_sizes
from penstock.engine.api.stream_elements import MAX_WATERMARK_US, MIN_WATERMARK_US, Batch, LatencyMarker
from penstock.engine.exchange.record_writer import TaskOutput
from penstock.engine.metrics.operator_metrics import LatencyHistogram, OperatorMetrics
from penstock.engine.state.state_snapshot import Snapshot
from penstock.engine.task.incremental_snapshots import IncrementalSnapshots
from penstock.engine.task.memory_budget import MemoryBudget


class MarkerPath:
    """Passes latency markers down one chain. ``buffering`` are the positions of operators that may buffer
    rows; a chain without outputs ends in a sink.
    """

    def __init__(
        self, operators: Sequence[ChainedOperator], buffering: Sequence[int], output: TaskOutput, clock: Clock
    ) -> None:
        self._operators = operators
        self._buffering = tuple(buffering)
        self._output = output
        self._clock = clock
        self._waiting: dict[int, list[LatencyMarker]] = {}

    def enter(self, marker: LatencyMarker, first: int = 0) -> None:
        """Pass a marker down from operator ``first`` on, until an operator that buffers rows from before
        it.
        """
        for index in self._buffering:
            # behind waiting markers too: they would be overtaken
            if index >= first and (
                index in self._waiting or self._operators[index].operator.buffered_until_ms() is not None
            ):
                self._waiting.setdefault(index, []).append(marker)
                return
        if self._output.is_end:
            self._record(marker)
        else:
            self._output.marker(marker)

    def resume(self) -> None:
        """Release the markers whose operators no longer buffer anything; the last operator's first, so that
        none overtakes another.
        """
        for index in sorted(self._waiting, reverse=True) if self._waiting else ():
            if self._operators[index].operator.buffered_until_ms() is None:
                for marker in self._waiting.pop(index):
                    self.enter(marker, index + 1)

    def _record(self, marker: LatencyMarker) -> None:
        latency = self._operators[-1].metrics.latency
        if marker.source not in latency:
            latency[marker.source] = LatencyHistogram()
        latency[marker.source].record(round((self._clock.monotonic_ms() - marker.marked_ms) * 1000))


@dataclass(frozen=True)
class OperatorSnapshot:
    """The declared state of one operator of one subtask: keyed states and list items by state name."""

    operator_id: str
    keyed: dict[str, Snapshot] = field(default_factory=dict)
    items: dict[str, list[dict[str, Any]]] = field(default_factory=dict)


@dataclass
class ChainedOperator:
    """An operator at its position in a chain, with its context."""

    operator: Operator
    context: Context

    @property
    def metrics(self) -> OperatorMetrics:
        """The operator's counters."""
        return self.context.metrics


def failure_in(operator: str, cause: BaseException, doing: str = "hold its rows") -> PenstockError:
    """Return any exception as an error that names the operator it came from; ``doing`` is what there was no
    memory for.

    Failures of the outside world are retriable: disks, connections, threads, all of them ``OSError``. A bare
    exception of another class is a function of the data or of our code, and would be raised again.
    """
    # it has a code and a sentence: only the operator's name is added
    if isinstance(cause, PenstockError):
        return cause.with_operator(operator)
    if isinstance(cause, MemoryError):
        return out_of_memory(cause, doing, operator)
    # Arrow's own sentence names offsets and arrays, nothing a user can change
    if is_capacity(cause):
        error = PenstockError(
            "RUN-2023",
            f"{operator}: more than 2 GiB are wanted as one batch",
            hint="let fewer, or shorter, values be together: of one key, one window or one group",
            sqlstate="54000",
            operator=operator,
        )
        error.__cause__ = cause
        return error
    message = f"{operator} failed: {type(cause).__name__}: {cause}"
    kind = Kind.EXTERNAL if isinstance(cause, OSError) else Kind.INTERNAL
    error = PenstockError(
        "RUN-2900",
        message[:300],
        kind=kind,
        retriable=kind is Kind.EXTERNAL,
        sqlstate="58000",
        operator=operator,
    )
    error.__cause__ = cause
    return error


class _Link:
    """The input of one operator: of the chain for the first, of the previous operator's output for the
    others.

    An operator's pending output advances when all operators behind it have processed the last piece. Until it
    is done, further input of the operator is queued here in order. ``busy`` lists the links of the chain with
    pending output.
    """

    __slots__ = (
        "_busy",
        "_metrics",
        "_name",
        "_on_batch",
        "_operator",
        "_out",
        "_pending_output",
        "_upstream",
        "_waiting",
        "index",
    )

    def __init__(
        self, index: int, upstream: OperatorMetrics, target: ChainedOperator, out: Output, busy: list[_Link]
    ) -> None:
        self.index = index
        self._upstream = upstream
        self._operator = target.operator
        self._on_batch = target.operator.on_batch
        self._metrics = target.metrics
        self._name = target.context.name
        self._out = out
        self._busy = busy
        self._pending_output: PendingOutput | None = None
        self._waiting: deque[Callable[[], PendingOutput | None]] = deque()

    def collect(self, batch: Batch) -> None:
        rows = batch.rows.num_rows
        if rows == 0:
            return
        self._upstream.rows_out += rows
        self.push(batch, 0)

    @property
    def busy(self) -> bool:
        """Whether there is pending output or queued input."""
        return self._pending_output is not None or bool(self._waiting)

    @property
    def rests(self) -> bool:
        """Whether the operator itself has pending output."""
        return self._pending_output is not None

    def push(self, batch: Batch, port: int) -> None:
        """Process rows of a port, a very large batch in pieces."""
        self._metrics.rows_in += batch.rows.num_rows
        # an operator never sees more than this at once, however large the batch of a source or an exchange is
        if batch.rows.num_rows > 1 and batch.size_bytes > LIMITS.batch_bytes:
            self.call(lambda: start_output(self._in_pieces(batch, port)))
            return
        # inputs stay in order: rows, watermarks and ticks queue behind the pending output
        if self.busy:
            self._waiting.append(lambda: self._on_batch(batch, port, self._out))
            return
        # the path of every batch: call() would cost a closure
        try:
            pending = self._on_batch(batch, port, self._out)
        except Exception as cause:
            raise failure_in(self._name, cause) from cause
        if pending is not None:
            self._set_pending(pending)

    def watermark(self, time_us: int) -> None:
        self.call(lambda: self._watermark(time_us))

    def idle(self) -> None:
        self.call(self._idle)

    def split(self, event: SplitEvent) -> None:
        self.call(lambda: self._operator.on_split(event, self._out))

    def _in_pieces(self, batch: Batch, port: int) -> PendingOutput:
        for first, last in cut(row_sizes(batch.rows), batch.num_rows, LIMITS.batch_bytes):
            if first:
                yield
            yield from self._on_batch(batch.slice(first, last - first), port, self._out) or ()

    def call(self, call: Callable[[], PendingOutput | None]) -> None:
        """Call into the operator, behind what is pending; an exception is raised naming the operator."""
        if self.busy:
            self._waiting.append(call)
            return
        try:
            pending = call()
        except Exception as cause:
            raise failure_in(self._name, cause) from cause
        if pending is not None:
            self._set_pending(pending)

    def resume(self) -> None:
        """Emit the next piece of what is pending."""
        try:
            if self._pending_output is None:
                self._pending_output = self._waiting.popleft()()
            # `self` is the mark of the end: a piece is None
            elif next(self._pending_output, self) is self:
                self._pending_output = None
        except Exception as cause:
            raise failure_in(self._name, cause) from cause
        if not self.busy:
            self._busy.remove(self)

    def _set_pending(self, pending: PendingOutput) -> None:
        self._pending_output = pending
        self._busy.append(self)

    def _watermark(self, time_us: int) -> PendingOutput | None:
        self._metrics.watermark_us = time_us
        pending = self._operator.on_watermark(time_us, self._out)
        # rows first, then the watermark: a later piece would be late behind it
        if pending is not None:
            return _then(pending, lambda: self._pass(time_us))
        self._pass(time_us)
        return None

    def _pass(self, time_us: int) -> None:
        # operators that make their own watermarks forward only the end of time
        if self._operator.passes_time or time_us == MAX_WATERMARK_US:
            self._out.watermark(self._operator.passes_on(time_us))

    def _idle(self) -> None:
        self._operator.on_idle(self._out)
        if self._operator.passes_time:
            self._out.idle()


def _then(pending: PendingOutput, call: Callable[[], None]) -> PendingOutput:
    """Emit what is left, then the output of one more call."""
    yield from pending
    call()


class _Tail:
    """The output of the last operator: the task's record writers. Events of splits end here."""

    __slots__ = ("_output", "_upstream")

    def __init__(self, upstream: OperatorMetrics, output: TaskOutput) -> None:
        self._upstream = upstream
        self._output = output

    def collect(self, batch: Batch) -> None:
        rows = batch.rows.num_rows
        if rows:
            self._upstream.rows_out += rows
            self._output.collect(batch)

    def watermark(self, time_us: int) -> None:
        self._output.watermark(time_us)

    def idle(self) -> None:
        self._output.idle()

    def split(self, event: SplitEvent) -> None:
        """No operator is left to process it."""


class OperatorChain:
    """The operators of one task, first to last, linked to one another and to the task's output.
    ``incremental``: snapshots may be incremental.
    """

    def __init__(
        self, operators: Sequence[ChainedOperator], output: TaskOutput, *, incremental: bool = True
    ) -> None:
        self.operators = tuple(operators)
        self._incremental = IncrementalSnapshots(incremental)
        self._output = output
        self._busy: list[_Link] = []
        self._outs: list[Output] = [_Tail(self.operators[-1].metrics, output)]
        self._links: list[_Link] = []
        # from the last to the first: each link's output is the link behind it
        for index in range(len(self.operators) - 1, -1, -1):
            upstream = self.operators[index - 1].metrics if index else OperatorMetrics()
            self._links.insert(0, _Link(index, upstream, self.operators[index], self._outs[0], self._busy))
            self._outs.insert(0, self._links[0])
        self._entry = self._links[0]
        del self._outs[0]
        self._head = self.operators[0]
        # asked before every batch: operators that never refuse are left out
        self._gates = tuple(
            (i, o.operator)
            for i, o in enumerate(self.operators)
            if type(o.operator).ready is not Operator.ready
        )
        self._ticking = tuple(i for i, o in enumerate(self.operators) if o.operator.wants_ticks)
        self._buffering = tuple(
            i
            for i, o in enumerate(self.operators)
            if type(o.operator).buffered_until_ms is not Operator.buffered_until_ms
        )
        self._markers = MarkerPath(self.operators, self._buffering, output, self._head.context.clock)
        self._time_us = MIN_WATERMARK_US
        self._opened = self._ended = 0
        self._stateful: tuple[int, ...] = ()

    @property
    def ready(self) -> bool:
        """Whether every operator can take rows now."""
        return all(operator.ready() for _, operator in self._gates)

    @property
    def has_pending(self) -> bool:
        """Whether some operator has pending output. Until it is emitted, the chain gets no other input."""
        return bool(self._busy)

    def resume(self) -> None:
        """Emit the next piece of the last operator with pending output."""
        self._last_busy().resume()

    @property
    def has_capacity(self) -> bool:
        """Whether the operators behind the pending output can take rows; also the operator itself if its
        input is queued.
        """
        link = self._last_busy()
        first = link.index + 1 if link.rests else link.index
        return all(operator.ready() for index, operator in self._gates if index >= first)

    def _last_busy(self) -> _Link:
        # the last one first: only then has it capacity for what the others still emit
        return max(self._busy, key=lambda link: link.index)

    def settle(self) -> None:
        """Emit all pending output, whether there is credit or not."""
        while self._busy:
            self.resume()

    @property
    def ticks(self) -> bool:
        """Whether some operator wants to know processing time."""
        return bool(self._ticking)

    @property
    def gathers(self) -> bool:
        """Whether the head wants to know if more rows are ready."""
        return self._head.operator.gathers

    def open(self) -> None:
        """Open the operators, first to last."""
        for index, chained in enumerate(self.operators):
            self._opened = index + 1
            self._guarded(index, lambda chained=chained: chained.operator.open(chained.context))
        self._stateful = tuple(i for i, o in enumerate(self.operators) if o.operator.keyed_states())

    def restored(self) -> None:
        """State is restored."""
        for index, chained in enumerate(self.operators):
            self._guarded(index, chained.operator.on_restored)

    def poll(self) -> SourceStatus:
        """Poll the source at the head."""
        source = self._head.operator
        if not isinstance(source, HeadOperator):
            raise PenstockError(
                "INT-9014",
                f"{self._head.context.name} has no input and is no source",
                kind=Kind.INTERNAL,
                sqlstate="XX000",
            )
        try:
            return source.poll(self._outs[0])
        except Exception as cause:
            raise failure_in(self._head.context.name, cause) from cause

    def push(self, batch: Batch, port: int, *, behind: bool = False) -> None:
        """Push rows of a port into the head; ``behind``: more are ready."""
        if batch.rows.num_rows:
            self._head.operator.rows_behind = behind
            self._entry.push(batch, port)

    def watermark(self, time_us: int) -> None:
        """Push the merged watermark into the head; links pass it down the chain and out."""
        # after the end of time no watermark counts
        if self._time_us == MAX_WATERMARK_US:
            return
        self._time_us = time_us
        self._entry.watermark(time_us)

    def port_time(self, port: int, time_us: int | None) -> None:
        """Push the watermark of one port into the head."""
        self._entry.call(lambda: self._head.operator.on_port_time(port, time_us, self._outs[0]))

    def idle(self) -> None:
        """Push Idle into the head."""
        self._entry.idle()

    def tick(self, now_ms: int) -> None:
        """Tick the operators that want processing time, in wall milliseconds."""
        for index in self._ticking:
            self._links[index].call(
                partial(self.operators[index].operator.on_processing_time, now_ms, self._outs[index])
            )
            self.settle()  # the next operator may have got input from the last

    def release_due(self, now_ms: float) -> float | None:
        """Release the rows that operators have buffered long enough; return when the next are due, or
        ``None``.

        An operator with pending output emits that first.
        """
        earliest = None
        for index in self._buffering:
            operator = self.operators[index].operator
            due_ms = operator.buffered_until_ms()
            if self._links[index].busy:
                continue
            if due_ms is not None and due_ms <= now_ms:
                self._links[index].call(partial(operator.release, self._outs[index]))
                self._output.flush()  # they are due
                due_ms = operator.buffered_until_ms()  # it may have released only a part
            if due_ms is not None and (earliest is None or due_ms < earliest):
                earliest = due_ms
        if not self._busy:
            self._markers.resume()
        return earliest

    def marker(self, marker: LatencyMarker) -> None:
        """Pass a latency marker behind the rows that came before it."""
        self._markers.enter(marker)

    def measure_state(self, budget: MemoryBudget | None) -> None:
        """Measure the state of each operator; with a budget, spill what is over it, STA-3050 when that
        fails.
        """
        for index in self._stateful:
            self._guarded(index, lambda index=index: self._measure(self.operators[index], budget))

    def _measure(self, chained: ChainedOperator, budget: MemoryBudget | None) -> None:
        from penstock.engine.task.memory_budget import (
            StateSize,
        )  # lazy: only jobs with state pay for this import

        # resident and spilled bytes; with a budget, what is over it is spilled
        states, metrics = chained.operator.keyed_states().values(), chained.metrics
        name = chained.context.name
        size = (
            StateSize.of(states)
            if budget is None
            else budget.settle(chained.context.operator_id, name, metrics.state_entries, states)
        )
        metrics.state_bytes, metrics.spilled_bytes = size.resident, size.spilled

    def put_back(self, index: int, batches: Sequence[Batch]) -> None:
        """Push restored rows into the operator at a position behind the head, before any other input."""
        for batch in batches:
            self._outs[index - 1].collect(batch)

    def port_end(self, port: int) -> None:
        """One port of the head has ended."""
        self._entry.call(lambda: self._head.operator.on_port_end(port, self._outs[0]))

    def end(self) -> bool:
        """End time, then let each operator emit what it has left. Return False when one has pending output:
        call again.
        """
        self.watermark(MAX_WATERMARK_US)
        while self._ended < len(self.operators):
            index, operator = self._ended, self.operators[self._ended].operator
            # its output, or answers it waits for, come before the next operator ends
            if self._busy or not operator.settled():
                return False
            self._ended += 1
            self._links[index].call(partial(operator.on_end, self._outs[index]))
        return not self._busy

    def before_barrier(self, checkpoint_id: int) -> None:
        """Let each operator flush what is not state, first to last."""
        for index, chained in enumerate(self.operators):
            self._guarded(
                index,
                lambda index=index, chained=chained: chained.operator.before_barrier(
                    checkpoint_id, self._outs[index]
                ),
            )
            self.settle()  # no output may be pending in a snapshot

    def snapshot(self, checkpoint_id: int) -> tuple[OperatorSnapshot, ...]:
        """Return the declared state of every operator as it is now, or its changes since the last completed
        checkpoint.
        """
        doing = "copy its state for a checkpoint"
        return tuple(
            self._guarded(i, lambda chained=chained: self._snapshot(chained, checkpoint_id), doing)
            for i, chained in enumerate(self.operators)
        )

    def _snapshot(self, chained: ChainedOperator, checkpoint_id: int) -> OperatorSnapshot:
        operator, operator_id = chained.operator, chained.context.operator_id
        keyed = {
            name: self._incremental.freeze(operator_id, name, state, checkpoint_id)
            for name, state in operator.keyed_states().items()
        }
        items = {name: state.snapshot_items() for name, state in operator.list_states().items()}
        return OperatorSnapshot(operator_id, keyed, items)

    def keys_known(self, known: KeysKnown) -> None:
        """Pass the keys of a join to every operator."""
        for index, chained in enumerate(self.operators):
            self._guarded(index, lambda chained=chained: chained.operator.on_keys(known))

    def checkpoint_complete(self, checkpoint_id: int) -> None:
        """A checkpoint is durable: every operator learns of it."""
        self._incremental.complete(checkpoint_id)
        for index, chained in enumerate(self.operators):
            self._guarded(
                index, lambda chained=chained: chained.operator.on_checkpoint_complete(checkpoint_id)
            )

    def close(self) -> None:
        """Close every operator that was opened, whatever happens to the others; raise the first failure at
        the end.
        """
        failures = []
        for chained in self.operators[: self._opened]:
            try:
                chained.operator.close()
            except BaseException as cause:  # noqa: BLE001 - one operator's failure must not keep the others open; it is raised below
                failures.append(failure_in(chained.context.name, cause))
        if failures:
            raise failures[0]

    def _guarded(self, index: int, call: Any, doing: str = "hold its rows") -> Any:
        """Call into one operator; an exception is raised naming the operator."""
        try:
            return call()
        except Exception as cause:
            raise failure_in(self.operators[index].context.name, cause, doing) from cause
