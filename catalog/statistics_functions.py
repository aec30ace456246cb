"""Aggregates of statistics, declared: spreads, what two columns have in common, percentiles."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.coercion import is_interval
from penstock.catalog.function_rules import Function, Mismatch, Operand, Typing, fixed, wanted
from penstock.catalog.types import (
    BIGINT,
    DOUBLE,
    INT,
    DataType,
    Date,
    Null,
    String,
    Time,
    is_integer,
    is_numeric,
    is_timestamp,
)

_NUMBER = fixed(DOUBLE, result=DOUBLE)


def _share(operand: Operand, position: int) -> DataType:
    """The type of a constant between 0 and 1."""
    kind = wanted(operand, DOUBLE, position)
    value = operand.value
    if not operand.constant or isinstance(value, str) or value is None or not 0 <= float(value) <= 1:  # type: ignore[arg-type]  # a number
        raise Mismatch("the percentage must be a constant between 0 and 1", "write 0.5 for the median")
    return kind


def percentile(operands: Sequence[Operand]) -> Typing:
    """A number and a constant share; DOUBLE out."""
    return (wanted(operands[0], DOUBLE, 1), _share(operands[1], 2)), DOUBLE


def middle(operands: Sequence[Operand]) -> Typing:
    """A number; DOUBLE out."""
    return (wanted(operands[0], DOUBLE, 1),), DOUBLE


def ranked_percentile(operands: Sequence[Operand]) -> Typing:
    """A number or a time, a constant share and perhaps a constant accuracy; the value's own type out."""
    kind = operands[0].type
    if isinstance(kind, Null | String):
        kind = wanted(operands[0], DOUBLE, 1)
    if not (is_numeric(kind) or isinstance(kind, Date | Time) or is_timestamp(kind) or is_interval(kind)):
        raise Mismatch(f"argument 1 is {kind}, wanted a number or a time")
    share = _share(operands[1], 2)
    if len(operands) > 2 and not (operands[2].constant and is_integer(operands[2].type)):
        raise Mismatch("the accuracy must be a constant integer")
    return (kind, share, *(INT for _ in operands[2:])), kind


def _pair(name: str, meaning: str) -> Function:
    return Function(name, f"{name}(y, x)", meaning, _NUMBER, (2, 2), nullable=True, distinct=True)


def _spread(name: str, meaning: str, *aliases: str) -> Function:
    return Function(name, f"{name}(x)", meaning, _NUMBER, (1, 1), aliases, nullable=True, distinct=True)


STATISTICS: tuple[Function, ...] = (
    _spread("stddev_samp", "Standard deviation of a sample; NULL for one value.", "stddev", "std"),
    _spread("stddev_pop", "Standard deviation of a population."),
    _spread("var_samp", "Variance of a sample; NULL for one value.", "variance"),
    _spread("var_pop", "Variance of a population."),
    _spread("skewness", "Skewness: how far values lean to one side; NULL where all are equal."),
    _spread("kurtosis", "Kurtosis less 3: how heavy the tails are; NULL where all are equal."),
    _pair("corr", "Correlation of pairs without NULL; NULL where a side does not vary."),
    _pair("covar_pop", "Covariance of a population of pairs without NULL."),
    _pair("covar_samp", "Covariance of a sample of pairs without NULL; NULL for one pair."),
    Function("regr_count", "regr_count(y, x)", "The number of pairs without NULL.", fixed(DOUBLE, result=BIGINT), (2, 2), nullable=False),
    _pair("regr_avgx", "Mean of x over pairs without NULL."),
    _pair("regr_avgy", "Mean of y over pairs without NULL."),
    _pair("regr_sxx", "Sum of squared distances of x from its mean."),
    _pair("regr_syy", "Sum of squared distances of y from its mean."),
    _pair("regr_sxy", "Sum of products of the distances of x and y from their means."),
    _pair("regr_slope", "Slope of the line through the pairs; NULL where x does not vary."),
    _pair("regr_intercept", "Where that line meets x = 0."),
    _pair("regr_r2", "Square of the correlation; 1 where only y does not vary."),
    Function(
        "percentile",
        "percentile(x, p) or percentile_cont(p) WITHIN GROUP (ORDER BY x)",
        "The value below which the share p lies, between two neighbours where it falls between.",
        percentile,
        (2, 2),
        ("percentile_cont",),
        nullable=True,
        distinct=True,
    ),
    Function("median", "median(x)", "percentile(x, 0.5).", middle, (1, 1), nullable=True, distinct=True),
    Function(
        "percentile_approx",
        "percentile_approx(x, p[, accuracy]) or percentile_disc(p) WITHIN GROUP (ORDER BY x)",
        "The smallest value that at least the share p does not exceed; exact.",
        ranked_percentile,
        (2, 3),
        ("approx_percentile", "percentile_disc"),
        nullable=True,
        distinct=True,
    ),
)
