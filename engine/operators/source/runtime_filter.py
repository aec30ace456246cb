"""The runtime filter: drops rows whose keys the loaded side of a join ahead does not have, as soon as
these are known.
"""

from __future__ import annotations

from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, Operator, Output
from penstock.engine.api.operator_events import KeysKnown
from penstock.engine.api.stream_elements import Batch
from penstock.engine.operators.join.runtime_filter_keys import Mask, mask_of
from penstock.planner.physical.runtime_filter import RuntimeFilterSpec

PRUNED = "rows_pruned"
GIVEN_UP = "runtime_filter_given_up"
_TRIED_ROWS = 100_000
_LEAST_SHARE = 0.2


class RuntimeFilterOperator(Operator):
    """Stands above what makes time, so rows it drops have moved time. It keeps nothing: what it drops would
    have come to nothing.

    Where it has dropped less than a fifth of the first hundred thousand rows, it gives up.
    """

    def __init__(self, spec: RuntimeFilterSpec, options: JobOptions) -> None:
        self._spec = spec
        self._mask: Mask | None = None
        self._tried = False
        self._tested = self._pruned = 0

    def open(self, context: Context) -> None:
        self._metrics = context.metrics

    def on_keys(self, known: KeysKnown) -> None:
        if known.join_id == self._spec.join_id:
            self._mask = mask_of(known.told)

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        if self._mask is None:
            out.collect(batch)
            return
        kept = self._mask([batch.rows.column(key) for key in self._spec.keys])
        count = int(kept.sum())
        self._count(batch.num_rows, batch.num_rows - count)
        if count == batch.num_rows:
            out.collect(batch)
        elif count:
            out.collect(batch.filter(array_of(kept)))

    def _count(self, tested: int, pruned: int) -> None:
        if pruned:
            self._metrics.count(PRUNED, pruned)
        if self._tried:
            return
        self._tested += tested
        self._pruned += pruned
        self._tried = self._tested >= _TRIED_ROWS
        if self._tried and self._pruned < _LEAST_SHARE * self._tested:
            self._mask = None
            self._metrics.count(GIVEN_UP)
