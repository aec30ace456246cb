"""RowPartials: each row as a partial aggregate of its own, for where aggregating before an exchange would
not make rows fewer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.catalog.types import to_arrow
from penstock.engine.api.arrow_numpy import array_of
from penstock.engine.state.aggregates.argument_readers import reader
from penstock.planner.expressions.nodes import AggregateCall


class RowPartials:
    """The aggregates a split leaves to its LOCAL part, over single rows: COUNT, SUM, SUM0, MIN, MAX,
    BOOL_AND, BOOL_OR, BIT_AND, BIT_OR, BIT_XOR.

    None of them DISTINCT.
    """

    def __init__(self, calls: Sequence[AggregateCall], zone: str) -> None:
        self._calls = tuple(calls)
        self._arguments = [reader(call.args[0], zone) if call.args else None for call in calls]
        self._filters = [None if call.filter is None else reader(call.filter, zone) for call in calls]

    def columns(self, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return one column per aggregate, of exactly its Arrow type."""
        return [self._column(index, rows) for index in range(len(self._calls))]

    def _column(self, index: int, rows: pa.RecordBatch) -> pa.Array:
        call, argument, keep = self._calls[index], self._arguments[index], self._filters[index]
        values = array_of(np.ones(rows.num_rows, np.int64)) if argument is None else argument(rows)
        if keep is not None:
            values = pc.if_else(keep(rows).fill_null(False), values, pa.scalar(None, values.type))
        if call.function == "count":
            return values.is_valid().cast(pa.int64()) if values.null_count or argument is not None else values
        values = values.cast(to_arrow(call.type))
        return values.fill_null(0) if call.function == "sum0" else values
