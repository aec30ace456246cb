"""Sessions whose results are given before they end, or change after."""

from __future__ import annotations

from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Output, Rest, begun, given
from penstock.engine.api.stream_elements import MIN_WATERMARK_US, Batch
from penstock.engine.kernels import arrow_views as col
from penstock.engine.operators.change_buffer import ThinnedChanges
from penstock.engine.operators.window.early_fire import GivesChanges
from penstock.engine.operators.window.session_aggregate import SessionAggregateOperator
from penstock.engine.state.rows.row_difference import difference
from penstock.planner.physical.operator_specs import WindowAggregateSpec


class SessionChangesOperator(GivesChanges, SessionAggregateOperator):
    """What a batch changes is the difference of the sessions its keys show before it and after it, for a row
    may unite sessions.

    Shown are all sessions where they give early results, else those the watermark is past. A session is
    forgotten when the watermark is ``lateness_us`` past its end; no row that comes later can be part of it
    then.
    """

    def __init__(self, spec: WindowAggregateSpec, options: JobOptions) -> None:
        super().__init__(spec, options)
        self._emission = spec.emission

    def open(self, context: Context) -> None:
        super().open(context)
        self._changes = ThinnedChanges(self._emission.every_us, context.clock)

    def on_batch(self, batch: Batch, port: int, out: Output) -> Rest | None:
        return begun(self._change(batch, out))

    def _change(self, batch: Batch, out: Output) -> Rest:
        batch = self._behind.timely(batch, self._watermark_us, self._lateness_us, self._metrics)
        if batch.num_rows:
            before = self._shown(batch)
            times = col.words(batch.rows.column(self._time_column))
            sessions = self._state.open(
                [batch.rows.column(key) for key in self._keys], times, times + self._gap_us
            )
            self._accumulators.add(sessions, batch.rows, batch.weights)
            yield from self._changes.add(difference([before], [self._shown(batch)]), out)
        self._count_entries()

    def _shown(self, batch: Batch) -> Batch:
        """Return the results that are shown of the keys of some rows."""
        sessions = self._state.of_keys([batch.rows.column(key) for key in self._keys], batch.num_rows)
        return self._batch(
            sessions
            if self._emission.early
            else sessions[self._state.bounds(sessions)[1] < self._watermark_us]
        )

    def _pass_time(self, time_us: int, out: Output) -> Rest:
        turns = self._behind.turns(time_us)
        if turns is not None:
            before = self._shown(turns.batch)
            self._take_turns(turns)
            yield from self._changes.add(difference([before], [self._shown(turns.batch)]), out)
        state = self._state
        ended = state.ended(time_us)
        closing = ended[state.bounds(ended)[1] >= self._watermark_us]
        if closing.size:
            self._metrics.windows_closed += int(closing.size)
            if not self._emission.early:
                yield from given(self._batch(closing), out)
            yield from self._changes.give(out)
        else:
            yield from self._changes.give_due(out)
        over = ended[
            state.bounds(ended)[1] < max(time_us, MIN_WATERMARK_US + self._lateness_us) - self._lateness_us
        ]
        if over.size:
            state.remove(over)
        self._count_entries()
        self._watermark_us = time_us
