"""Python aggregate functions: the rows of many groups, handed to the program in one call or one call a
group.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.catalog.errors import PenstockError
from penstock.catalog.python_functions import CallMode
from penstock.catalog.types import to_arrow
from penstock.engine.expressions.evaluation_errors import Fault
from penstock.engine.expressions.python_calls import as_column, called, values_as_column
from penstock.planner.binder.expressions.python_aggregate_calls import PythonAggregateCall


def aggregated(call: PythonAggregateCall, offsets: np.ndarray, columns: list[pa.Array]) -> pa.Array:
    """Return one value per group; group i has the rows ``offsets[i]`` up to ``offsets[i + 1]`` of the
    columns. Raises RUN-2010 and RUN-2011.
    """
    function, kind, groups = call.body, to_arrow(call.type), offsets.size - 1
    try:
        if function.mode is CallMode.ARROW:
            return as_column(function, called(function, offsets, *columns), kind, groups)
        bounds = zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
        return values_as_column(
            function,
            [called(function, *(c.slice(first, end - first) for c in columns)) for first, end in bounds],
            kind,
        )
    except Fault as fault:
        raise PenstockError(
            fault.code,
            fault.message,
            detail=f"in {call}",
            hint=fault.hint,
            span=call.span,
            sqlstate=fault.sqlstate,
        ) from None
