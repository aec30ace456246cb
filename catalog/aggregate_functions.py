"""Aggregate functions, declared. ``distinct`` says that DISTINCT is allowed."""

from __future__ import annotations

from catalog.function_rules import Function, averaged, constant_result, fixed, logic, ordered, same, summed
from catalog.types import BIGINT, DOUBLE

_SPREAD = fixed(DOUBLE, result=DOUBLE)

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
    Function(
        "stddev_samp", "stddev_samp(x)", "Standard deviation of a sample; NULL for one value.", _SPREAD, (1, 1), ("stddev", "std"), nullable=True
    ),
    Function("stddev_pop", "stddev_pop(x)", "Standard deviation of a population.", _SPREAD, (1, 1), nullable=True),
    Function("var_samp", "var_samp(x)", "Variance of a sample; NULL for one value.", _SPREAD, (1, 1), ("variance",), nullable=True),
    Function("var_pop", "var_pop(x)", "Variance of a population.", _SPREAD, (1, 1), nullable=True),
    Function("bool_and", "bool_and(x)", "Whether all values are TRUE.", logic, (1, 1), ("every",), nullable=True),
    Function("bool_or", "bool_or(x)", "Whether some value is TRUE.", logic, (1, 1), ("some", "any"), nullable=True),
    Function("any_value", "any_value(x)", "One of the values.", same, (1, 1), nullable=True),
)
