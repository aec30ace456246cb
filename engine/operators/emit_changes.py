"""EMIT CHANGES EVERY: changes of a query without windows, put together."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.engine.api.clock import Clock
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Operator, Output, Rest, begun, emit_all
from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.rows.row_difference import difference
from penstock.planner.physical.operator_specs import ThinnedRowsSpec

_ROWS_MAX = 1 << 17


class ThinnedChanges:
    """Holds changes until ``every_us`` of the clock have gone since they were last given; 0 holds nothing.
    The owner gives all before a barrier.
    """

    def __init__(self, every_us: int, clock: Clock) -> None:
        self._every_ms = every_us / 1000
        self._clock = clock
        self._held: list[Batch] = []
        self._rows = 0
        self._given_ms: float | None = None

    def add(self, changes: Sequence[Batch], out: Output) -> Rest:
        """Take changes, each of rows."""
        if not changes:
            return
        if not self._every_ms:
            yield from emit_all(changes, out)
            return
        if self._given_ms is None:
            self._given_ms = self._clock.monotonic_ms()
        self._held += changes
        self._rows += sum(change.num_rows for change in changes)
        if self._rows >= _ROWS_MAX:
            self._held, self._rows = difference([], self._held), 0

    def give_due(self, out: Output) -> Rest:
        """Give what is held when its time has come."""
        if (
            self._held
            and self._given_ms is not None
            and self._clock.monotonic_ms() - self._given_ms >= self._every_ms
        ):
            yield from self.give(out)

    def give(self, out: Output) -> Rest:
        """Give what is held."""
        if not self._held:
            return
        net = difference([], self._held)
        self._held, self._rows, self._given_ms = [], 0, self._clock.monotonic_ms()
        yield from emit_all(net, out)


class GivesThinned(Operator):
    """Changes go out thinned, all of them before a barrier and at the end."""

    _changes: ThinnedChanges

    def on_processing_time(self, now_ms: int, out: Output) -> Rest | None:
        return begun(self._changes.give_due(out))

    def before_barrier(self, checkpoint_id: int, out: Output) -> None:
        for _ in self._changes.give(out):
            """Nothing may be held over a barrier, whether there is room or not."""

    def on_end(self, out: Output) -> Rest | None:
        return begun(self._changes.give(out))


class ThinnedRowsOperator(GivesThinned):
    """Nothing is held over a barrier, so there is no state."""

    def __init__(self, spec: ThinnedRowsSpec, options: JobOptions) -> None:
        self._every_us = spec.every_us

    def open(self, context: Context) -> None:
        self._changes = ThinnedChanges(self._every_us, context.clock)

    def on_batch(self, batch: Batch, port: int, out: Output) -> Rest | None:
        return begun(self._changes.add([batch] if batch.num_rows else [], out))
