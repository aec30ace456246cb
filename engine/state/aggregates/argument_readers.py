"""How operators on state read their arguments from a batch: a bare column costs nothing and loads no
compiler.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from penstock.planner.expressions.nodes import Column, Expression

Reader = Callable[[pa.RecordBatch], pa.Array]


def reader(expression: Expression, zone: str) -> Reader:
    """Return a function from a batch to the expression's column; ``zone`` is the session's time zone.
    Raises as compiled expressions do.
    """
    if isinstance(expression, Column):
        index = expression.index
        return lambda batch: batch.column(index)
    from penstock.engine.expressions.call_site import EvaluationContext

    # only computed arguments need the compiler
    from penstock.engine.expressions.compiler import compile_expression

    return compile_expression(expression, EvaluationContext(zone))
