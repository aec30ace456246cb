"""Calls of Python functions, scalar and aggregate: the expression nodes, and arguments cast to what a
function declares.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from penstock.catalog.coercion import implicit_cast
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.python_functions import (
    PythonAggregate,
    PythonFunction,
    PythonScalar,
)
from penstock.planner.expressions.implicit_casts import coerced
from penstock.planner.expressions.nodes import AggregateCall, Call, Expression


@dataclass(frozen=True)
class PythonCall(Call):
    """A call of a Python scalar function; ``function`` is the name it has in SQL."""

    body: PythonScalar = field(default=None, kw_only=True)  # type: ignore[assignment]  # dataclass order: always set


def arguments(
    function: PythonFunction, args: Sequence[Expression], span: Span | None
) -> tuple[Expression, ...]:
    """Return the arguments cast to the declared types. Raise SQL-1102 for their number, SQL-1103 for their
    types.
    """
    # Python functions have no overloads: number and types are those of the declaration
    wanted = function.arg_types
    if len(args) != len(wanted):
        count = f"{len(wanted)} argument{'s' if len(wanted) != 1 else ''}"
        raise PenstockError(
            "SQL-1102",
            f"{function.name} takes {count}, not {len(args)}",
            span=span,
            hint=f"write {function.usage}",
        )
    for position, (arg, kind) in enumerate(zip(args, wanted, strict=True), 1):
        if not implicit_cast(arg.type, kind):
            hint = f"write CAST(.. AS {kind}) if that is meant"
            message = f"{function.name}: argument {position} is {arg.type}, wanted {kind}"
            raise PenstockError("SQL-1103", message, span=arg.span or span, hint=hint, sqlstate="42804")
    return tuple(coerced(arg, kind) for arg, kind in zip(args, wanted, strict=True))


def python_call(
    name: str, function: PythonScalar, args: Sequence[Expression], span: Span | None
) -> PythonCall:
    """Return the call of a scalar Python function on bound arguments; its value is always nullable."""
    return PythonCall(
        function.result,
        # a Python function may return None for any row
        True,
        function=name.lower(),
        args=arguments(function, args, span),
        body=function,
        span=span,
    )


def python_calls(expression: Expression) -> list[PythonCall]:
    """Return the calls of Python functions within an expression."""
    return [node for node in expression.walk() if isinstance(node, PythonCall)]


@dataclass(frozen=True)
class PythonAggregateCall(AggregateCall):
    """An aggregate that a Python function computes from the rows of a group; ``function`` is its SQL name."""

    body: PythonAggregate = field(default=None, kw_only=True)  # type: ignore[assignment]  # dataclass order: always set

    @property
    def keeps_values(self) -> bool:
        """Always: the function computes from all rows, so the state holds them."""
        return True

    @property
    def version(self) -> str:
        return self.body.version
