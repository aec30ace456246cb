"""Aggregate functions, declared. ``distinct`` says that DISTINCT is allowed."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.collecting_functions import COLLECTING
from penstock.catalog.function_rules import (
    Function,
    Mismatch,
    Operand,
    Typing,
    averaged,
    constant_result,
    logic,
    ordered,
    summed,
)
from penstock.catalog.statistics_functions import STATISTICS
from penstock.catalog.types import BIGINT, Null, is_integer, is_numeric


def logic_count(operands: Sequence[Operand]) -> Typing:
    """BOOLEAN in, a count out."""
    return logic(operands)[0], BIGINT


def counted_apart(operands: Sequence[Operand]) -> Typing:
    """Anything with an order, and a constant that says how exact; a count out."""
    kinds, _ = ordered(operands[:1])
    if len(operands) > 1 and not (operands[1].constant and is_numeric(operands[1].type)):
        raise Mismatch("the error allowed must be a constant number")
    return kinds + tuple(o.type for o in operands[1:]), BIGINT


def integral(operands: Sequence[Operand]) -> Typing:
    """An integer keeps its type."""
    kind = operands[0].type
    if isinstance(kind, Null):
        return (BIGINT,), BIGINT
    if not is_integer(kind):
        raise Mismatch(f"argument 1 is {kind}, wanted an integer")
    return (kind,), kind


AGGREGATES: tuple[Function, ...] = (
    Function(
        "count",
        "count(*) or count(x)",
        "The number of rows, or of values that are not NULL.",
        constant_result(BIGINT),
        (0, 1),
        nullable=False,
        distinct=True,
    ),
    Function(
        "sum", "sum(x)", "The sum; integers give BIGINT, DECIMAL gains ten digits.", summed, (1, 1), nullable=True, distinct=True, fallible=True
    ),
    Function("sum0", "sum0(x)", "The sum, 0 when there are no values (merges partial counts).", summed, (1, 1), nullable=False),
    Function("avg", "avg(x)", "The mean; DOUBLE, or DECIMAL of a DECIMAL.", averaged, (1, 1), ("mean",), nullable=True, distinct=True),
    Function("min", "min(x)", "The smallest value.", ordered, (1, 1), nullable=True, distinct=True),
    Function("max", "max(x)", "The largest value; NaN is the largest number.", ordered, (1, 1), nullable=True, distinct=True),
    Function("bool_and", "bool_and(x)", "Whether all values are TRUE.", logic, (1, 1), ("every",), nullable=True, distinct=True),
    Function("bool_or", "bool_or(x)", "Whether some value is TRUE.", logic, (1, 1), ("some", "any"), nullable=True, distinct=True),
    Function("any_value", "any_value(x)", "One of the values: the smallest.", ordered, (1, 1), nullable=True, distinct=True),
    Function("count_if", "count_if(x)", "The number of rows where x is TRUE.", logic_count, (1, 1), ("countif",), nullable=False),
    Function(
        "approx_count_distinct",
        "approx_count_distinct(x[, error])",
        "The number of different values, exactly: as COUNT(DISTINCT x).",
        counted_apart,
        (1, 2),
        nullable=False,
    ),
    Function("bit_and", "bit_and(x)", "The bits that all integers have.", integral, (1, 1), nullable=True, distinct=True),
    Function("bit_or", "bit_or(x)", "The bits that some integer has.", integral, (1, 1), nullable=True, distinct=True),
    Function("bit_xor", "bit_xor(x)", "The bits that an odd number of integers has.", integral, (1, 1), nullable=True, distinct=True),
    *STATISTICS,
    *COLLECTING,
)
