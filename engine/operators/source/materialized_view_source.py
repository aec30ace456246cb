"""The source that follows a materialized view: its state, then its changes, a whole state's worth at a
time.
"""

from __future__ import annotations

from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, HeadOperator, KeyedState, Output, SourceStatus
from penstock.engine.api.stream_elements import Batch
from penstock.engine.changelog.fold import Fold, negated
from penstock.engine.connectors.in_process.materialized_views import MaterializedTables
from penstock.engine.expressions.call_site import EvaluationContext
from penstock.engine.expressions.compiler import compile_predicate
from penstock.engine.formats.decoded_batch import empty_columns
from penstock.engine.state.rows.table_contents import Contents
from penstock.planner.physical.operator_specs import SourceSpec

PAUSE_MS = 10


class FollowOperator(HeadOperator):
    """One subtask follows, so that no barrier falls between two parts of one state.

    What was given is kept as state: after a restart, whatever has become of the view meanwhile, the
    difference is given.
    """

    def __init__(self, spec: SourceSpec, options: JobOptions) -> None:
        self._name = spec.table.options["name"]
        self._schema = spec.table.source_schema.to_arrow()
        self._columns = list(spec.columns)
        self._keep = (
            None
            if spec.predicate is None
            else compile_predicate(spec.predicate, EvaluationContext(options.time_zone))
        )
        self._version = 0

    def open(self, context: Context) -> None:
        self._context = context
        self._given = Contents(self._schema, context.key_groups.start)
        self._view = context.services.get(MaterializedTables).contents(self._name)

    def keyed_states(self) -> dict[str, KeyedState]:
        return {"given": self._given}

    def poll(self, out: Output) -> SourceStatus:
        if self._context.subtask:
            return SourceStatus(ended=True)
        standing = self._view.standing()
        if standing.error is not None:
            message = f"materialized view {self._name} has failed, so what follows it cannot go on"
            raise PenstockError(
                "DAT-4113", message, detail=standing.error.message, kind=Kind.EXTERNAL
            ) from standing.error
        if standing.version > self._version:
            self._give(out)
            return SourceStatus(more=True)
        if standing.finished:
            return SourceStatus(ended=True)
        return SourceStatus(wake_ms=int(self._context.clock.monotonic_ms()) + PAUSE_MS)

    def _give(self, out: Output) -> None:
        known = self._view.since(self._version)
        if known is None:
            self._version, state = self._view.state()
            changes = self._summed([*state, *map(negated, self._given.weighted())])
        else:
            self._version, pieces = known
            changes = self._summed(pieces)
        for batch in changes:
            self._given.add(batch)
            rows = batch.rows.select(self._columns) if self._columns else empty_columns(batch.num_rows)
            shown = Batch(rows, batch.weights)
            out.collect(shown if self._keep is None else shown.filter(self._keep(shown.rows)))

    def _summed(self, pieces: list[Batch]) -> list[Batch]:
        fold = Fold(self._schema)
        for piece in pieces:
            fold.add(piece)
        return fold.weighted()
