"""Runtime filters: the keys of the loaded side of a join, as its subtasks report them, and the operator that
filters the other side's scan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.api.arrow_numpy import array_of, is_true
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Context, JoinKeys, KeysKnown, Operator, Output
from penstock.engine.api.row_pieces import LIMITS, TooLarge
from penstock.engine.api.scan_pruning import is_ranged
from penstock.engine.api.stream_elements import Batch
from penstock.engine.state.index.key_index import KeyIndex
from penstock.planner.logical.operator_facts import OperatorFacts
from penstock.planner.physical.operator_specs import OperatorSpec
from penstock.planner.physical.runtime_filter import RuntimeFilter

# more keys are reported as their range
KEYS_MOST = 10_000

# of more keys nothing is reported: reading them all for a range is not worth it
RANGE_KEYS_MOST = 1_000_000

# names of metrics: rows the filter has dropped, and filters that stopped
PRUNED = "rows_pruned"

GIVEN_UP = "runtime_filter_given_up"

# the filter is judged after so many rows, and must have dropped this share of them
_TRIED_ROWS = 100_000

_LEAST_SHARE = 0.2


Mask = Callable[[Sequence[pa.Array]], np.ndarray]
"""Maps the key columns of some rows to the mask of those that may have a match."""


def summarize_keys(index: KeyIndex) -> JoinKeys:
    """Return what a subtask reports of its keys: all while they are few, else their range; nothing when they
    are very many or very long.
    """
    if len(index) > RANGE_KEYS_MOST:
        return JoinKeys(None)
    try:
        # keys of a megabyte each may be too large for one array
        columns = index.keys(index.live_slots())
    except TooLarge:
        return JoinKeys(None)
    keys = pa.RecordBatch.from_arrays(columns, names=[str(i) for i in range(len(columns))])
    few = keys.num_rows <= KEYS_MOST and keys.nbytes <= LIMITS.batch_bytes
    return JoinKeys(keys) if few else ranged(keys)


def ranged(keys: pa.RecordBatch) -> JoinKeys:
    """Return the least and the greatest value of each column as two rows; NULLs where a filter cannot use the
    type's order.
    """
    columns = [_range_of(column) for column in keys.columns]
    # NULL: no column has an order that a range can use
    if all(column.null_count for column in columns):
        return JoinKeys(None)
    ends = pa.RecordBatch.from_arrays(columns, schema=keys.schema)
    return JoinKeys(ends if ends.nbytes <= LIMITS.batch_bytes else None, exact=False)


def _range_of(column: pa.Array) -> pa.Array:
    if not is_ranged(column.type):
        return pa.nulls(2, column.type)
    ends = pc.min_max(column)
    return pa.array([ends["min"].as_py(), ends["max"].as_py()], column.type)


def merge_keys(parts: Sequence[JoinKeys]) -> JoinKeys:
    """Return the union of what the subtasks of a join report."""
    known = [part.keys for part in parts if part.keys is not None]
    # one subtask with unknown keys may match any row: no filter
    if len(known) < len(parts) or sum(keys.nbytes for keys in known) > LIMITS.array_bytes:
        return JoinKeys(None)
    keys = pa.concat_batches(known)
    # Exact keys of some and ranges of others make a range of all: a range's two rows are keys as well.
    return summarize_keys(_index_of(keys)) if all(part.exact for part in parts) else ranged(keys)


def _index_of(keys: pa.RecordBatch) -> KeyIndex:
    index = KeyIndex([column.type for column in keys.columns])
    index.lookup_or_insert(keys.columns, keys.num_rows)
    return index


def mask_of(reported: JoinKeys) -> Mask | None:
    """Return the test of rows as the join would match them: NaN equals NaN, NULL matches nothing. ``None``
    where nothing is known.
    """
    if reported.keys is None:
        return None
    if not reported.exact:
        return _within(reported.keys)
    index = _index_of(reported.keys)
    return lambda columns: index.lookup(columns, len(columns[0])) >= 0


def _within(ends: pa.RecordBatch) -> Mask:
    bounds = [
        (position, column[0], column[1])
        for position, column in enumerate(ends.columns)
        # a column of unknown range filters nothing
        if not column.null_count
    ]

    def mask(columns: Sequence[pa.Array]) -> np.ndarray:
        passing = np.ones(len(columns[0]), np.bool_)
        for position, least, greatest in bounds:
            inside = pc.and_(
                pc.greater_equal(columns[position], least), pc.less_equal(columns[position], greatest)
            )
            # NULL keys are dropped: the join matches none of them
            passing &= is_true(inside)
        return passing

    return mask


class RuntimeFilterOperator(Operator):
    """Runs behind the watermark generator, so the rows it drops have advanced the watermark. It has no state:
    the rows it drops have no match.

    When it has dropped less than a fifth of the first hundred thousand rows, it stops filtering.
    """

    def __init__(self, spec: OperatorSpec[RuntimeFilter, OperatorFacts], options: JobOptions) -> None:
        self._node = spec.node
        self._mask: Mask | None = None
        self._tried = False
        self._tested = self._pruned = 0

    def open(self, context: Context) -> None:
        self._metrics = context.metrics

    def on_keys(self, known: KeysKnown) -> None:
        if known.join_id == self._node.join_id:
            self._mask = mask_of(known.keys)

    def on_batch(self, batch: Batch, port: int, out: Output) -> None:
        # before the keys are known every row passes: the join drops those without a match
        if self._mask is None:
            out.collect(batch)
            return
        passing = self._mask([batch.rows.column(key) for key in self._node.keys])
        count = int(passing.sum())
        self._count(batch.num_rows, batch.num_rows - count)
        if count == batch.num_rows:
            out.collect(batch)
        elif count:
            out.collect(batch.filter(array_of(passing)))

    def _count(self, tested: int, pruned: int) -> None:
        if pruned:
            self._metrics.count(PRUNED, pruned)
        if self._tried:
            return
        self._tested += tested
        self._pruned += pruned
        self._tried = self._tested >= _TRIED_ROWS
        # the look-up costs more than the rows it saves
        if self._tried and self._pruned < _LEAST_SHARE * self._tested:
            self._mask = None
            self._metrics.count(GIVEN_UP)
