"""Calls of Python aggregate functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.python_functions import PythonAggregate
from penstock.planner.expressions.nodes import AggregateCall, Expression
from penstock.planner.expressions.python_calls import arguments

if TYPE_CHECKING:
    from penstock.planner.parser.syntax_nodes import FunctionCall


@dataclass(frozen=True)
class PythonAggregateCall(AggregateCall):
    """An aggregate whose value the program computes from the rows of a group; ``function`` is the name it
    has in SQL.
    """

    body: PythonAggregate = field(default=None, kw_only=True)  # type: ignore[assignment]  # dataclass order: always given

    @property
    def keeps_values(self) -> bool:
        """Its rows are kept, as it is computed from all of them."""
        return True

    @property
    def version(self) -> str:
        return self.body.version


def python_aggregate_call(
    call: FunctionCall,
    function: PythonAggregate,
    args: Sequence[Expression],
    distinct: bool,
    keep: Expression | None,
) -> PythonAggregateCall:
    """Return the call on bound arguments; DISTINCT gives each row of values once. Raises as ``arguments``,
    and SQL-1105 for other words.
    """
    # the parser: workers have calls in their plans, and read no text
    from penstock.planner.parser.syntax_nodes import span_of

    span, name = span_of(call), str(call.this).lower()
    for key, word in (("star", "*"), ("nulls", "NULLS"), ("order", "ORDER BY"), ("within", "WITHIN GROUP")):
        if call.args.get(key):
            hint = "a Python aggregate gets its rows in ascending order of their values"
            raise PenstockError(
                "SQL-1105", f"{word} does not go with {name}", span=span, hint=hint, sqlstate="42809"
            )
    return PythonAggregateCall(
        name, arguments(function, args, span), function.result, True, distinct, keep, body=function, span=span
    )
