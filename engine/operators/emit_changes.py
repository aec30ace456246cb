"""EMIT CHANGES EVERY: the changes of a query without windows, buffered and consolidated."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine.api.clock import Clock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Operator, Output, PendingOutput, emit_all, start_output
from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.rows.row_difference import difference
from penstock.planner.logical.emit import Emit
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.logical.windows import Emission
from penstock.planner.physical.operator_specs import OperatorSpec

# buffered changes; at this number they are consolidated in place, so that a busy key needs little memory
_ROWS_MAX = 1 << 17


class ChangeBuffer:
    """Buffers changes until ``every_us`` of the clock have passed since the last flush, or until there are
    ``every_rows`` of them, whichever is first; without either it buffers nothing. The owner flushes before a
    barrier.
    """

    def __init__(self, emission: Emission, clock: Clock) -> None:
        self._waits = emission.waits
        self._every_ms = emission.every_us / 1000
        self._every_rows = emission.every_rows
        # changes since the last flush, those that cancelled out among them
        self._since = 0
        self._clock = clock
        self._buffered: list[Batch] = []
        self._rows = 0
        self._flushed_ms: float | None = None

    def add(self, changes: Sequence[Batch], out: Output) -> PendingOutput:
        """Add changes, or emit them at once when nothing is to be buffered."""
        if not changes:
            return
        if not self._waits:
            yield from emit_all(changes, out)
            return
        # the interval begins with the first change
        if self._flushed_ms is None:
            self._flushed_ms = self._clock.monotonic_ms()
        self._buffered += changes
        fresh = sum(change.num_rows for change in changes)
        self._rows, self._since = self._rows + fresh, self._since + fresh
        if self._every_rows and self._since >= self._every_rows:
            yield from self.flush(out)
            return
        if self._rows >= _ROWS_MAX:
            # 0: counts anew, or every later batch would consolidate again
            self._buffered, self._rows = difference([], self._buffered), 0

    def flush_due(self, out: Output) -> PendingOutput:
        """Emit what is buffered when it is due."""
        if (
            self._buffered
            and self._every_ms
            and self._flushed_ms is not None
            and self._clock.monotonic_ms() - self._flushed_ms >= self._every_ms
        ):
            yield from self.flush(out)

    def flush(self, out: Output) -> PendingOutput:
        """Emit what is buffered, consolidated: changes that cancel out are not emitted."""
        if not self._buffered:
            return
        # (+1 a), (-1 a), (+1 b) is (+1 b)
        net = difference([], self._buffered)
        self._buffered, self._rows, self._since = [], 0, 0
        self._flushed_ms = self._clock.monotonic_ms()
        yield from emit_all(net, out)


class BufferedEmission(Operator):
    """Base of operators that emit changes through a buffer. It is flushed before a barrier and at the end."""

    _changes: ChangeBuffer

    def on_processing_time(self, now_ms: int, out: Output) -> PendingOutput | None:
        return start_output(self._changes.flush_due(out))

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        for _ in self._changes.flush(out):
            """No change may be buffered over a barrier, whether there is credit or not."""

    def on_end(self, out: Output) -> PendingOutput | None:
        return start_output(self._changes.flush(out))


class EmitChangesOperator(BufferedEmission):
    """The buffer is empty at a barrier, so there is no state."""

    def __init__(self, spec: OperatorSpec[Emit, OperatorFacts], options: JobOptions) -> None:
        self._emission = spec.node.emission

    def open(self, context: Context) -> None:
        self._changes = ChangeBuffer(self._emission, context.clock)

    def on_batch(self, batch: Batch, port: int, out: Output) -> PendingOutput | None:
        return start_output(self._changes.add([batch] if batch.num_rows else [], out))
