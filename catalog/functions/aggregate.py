"""Declarations of the aggregate functions: counts and sums, collected values, statistics.

``distinct`` allows DISTINCT inside a call, ``ordered`` allows ORDER BY. Lists and
texts are sorted by value where a call has no ORDER BY.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.coercion import is_interval, is_orderable
from penstock.catalog.functions.type_rules import (
    Function,
    Mismatch,
    Operand,
    Typing,
    averaged,
    constant_result,
    fixed,
    logic,
    ordered,
    summed,
    wanted,
)
from penstock.catalog.types import (
    BIGINT,
    DOUBLE,
    INT,
    STRING,
    Array,
    DataType,
    Date,
    Map,
    Null,
    Row,
    String,
    Time,
    Variant,
    holds,
    is_integer,
    is_numeric,
    is_timestamp,
)


# Lists are sorted and ties are broken by value: no result depends on the order in which rows arrive.
def _ordered(operand: Operand, position: int) -> DataType:
    if not is_orderable(operand.type):
        if holds(operand.type, Variant):
            raise Mismatch(
                f"argument {position} is {operand.type}, and a VARIANT has no order",
                "use to_json(v), or a value in it: v:name::STRING",
            )
        raise Mismatch(
            f"argument {position} is {operand.type}, and a MAP has no order",
            "use map_entries(m), an array of rows, or one of its values",
        )
    return operand.type


def collected(operands: Sequence[Operand]) -> Typing:
    """An array of the values."""
    kind = _ordered(operands[0], 1)
    return (kind,), Array(kind)


def first_operand(operands: Sequence[Operand]) -> Typing:
    """``min_by(x, y)`` and the like: one of the values ``x``, chosen by the other arguments."""
    kinds = tuple(_ordered(operand, i) for i, operand in enumerate(operands, 1))
    return kinds, kinds[0]


def positioned(operands: Sequence[Operand]) -> Typing:
    """One of the values, and a constant: whether NULLs are skipped."""
    # first_value(x, TRUE) is Spark's form of IGNORE NULLS.
    if len(operands) > 1 and not (operands[1].constant and isinstance(operands[1].value, bool)):
        raise Mismatch("the second argument must be TRUE or FALSE", "write IGNORE NULLS behind the call")
    return (_ordered(operands[0], 1), *(operand.type for operand in operands[1:])), operands[0].type


def joined(operands: Sequence[Operand]) -> Typing:
    """Texts with a constant between."""
    # A separator that changes from row to row has no defined result.
    if len(operands) > 1 and not (operands[1].constant and isinstance(operands[1].value, str)):
        raise Mismatch("the separator must be a constant text", "write listagg(x, ', ')")
    return fixed(STRING, result=STRING)(operands)


def counted(operands: Sequence[Operand]) -> Typing:
    """A map of the values to counts."""
    kind = _ordered(operands[0], 1)
    if isinstance(kind, Null):
        raise Mismatch("argument 1 is NULL, and has no values to count")
    return (kind,), Map(kind, BIGINT)


# Spark leaves the order of these open; here ties are broken by value, so that a rerun emits the same.
COLLECTING: tuple[Function, ...] = (
    Function(
        "first_value",
        "first_value(x [ORDER BY k]) [IGNORE NULLS]",
        "The value of the first row: by event time without ORDER BY; of rows of one time the smallest.",
        positioned,
        (1, 2),
        ("first",),
        nullable=True,
        ordered=True,
        distinct=True,
    ),
    Function(
        "last_value",
        "last_value(x [ORDER BY k]) [IGNORE NULLS]",
        "The value of the last row: by event time without ORDER BY; of rows of one time the greatest.",
        positioned,
        (1, 2),
        ("last",),
        nullable=True,
        ordered=True,
        distinct=True,
    ),
    Function(
        "max_by",
        "max_by(x, y)",
        "x of the row with the largest y, among several the largest x.",
        first_operand,
        (2, 2),
        ("arg_max", "argmax"),
        nullable=True,
        distinct=True,
    ),
    Function(
        "min_by",
        "min_by(x, y)",
        "x of the row with the smallest y, among several the smallest x.",
        first_operand,
        (2, 2),
        ("arg_min", "argmin"),
        nullable=True,
        distinct=True,
    ),
    # NOT NULL: an empty group has an empty array.
    Function(
        "collect_list",
        "collect_list(x [ORDER BY k])",
        "All values but NULLs as an array: by ORDER BY, else sorted.",
        collected,
        (1, 1),
        ("array_agg",),
        nullable=False,
        ordered=True,
        distinct=True,
    ),
    Function(
        "collect_set",
        "collect_set(x)",
        "The different values but NULL as an array, sorted.",
        collected,
        (1, 1),
        nullable=False,
        distinct=True,
    ),
    # NULL without values.
    Function(
        "listagg",
        "listagg(x[, separator]) [WITHIN GROUP (ORDER BY k)]",
        "All values but NULLs as one text: by ORDER BY, else sorted.",
        joined,
        (1, 2),
        ("string_agg",),
        nullable=True,
        ordered=True,
        distinct=True,
    ),
    # Spark's mode is any of the most frequent values.
    Function(
        "mode",
        "mode(x)",
        "The most frequent value, among several the smallest.",
        first_operand,
        (1, 1),
        nullable=True,
        distinct=True,
    ),
    Function(
        "histogram",
        "histogram(x)",
        "How often each value is there: a map sorted by value; NULL without values.",
        counted,
        (1, 1),
        # Flink's multiset is such a map
        ("collect",),
        nullable=True,
    ),
)


# For one argument or two: the last type repeats.
_NUMBER = fixed(DOUBLE, result=DOUBLE)


def _share(operand: Operand, position: int) -> DataType:
    """The type of a constant between 0 and 1."""
    kind = wanted(operand, DOUBLE, position)
    value = operand.value
    # A constant, as in Spark: the same share for all rows of a group.
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
    # A text is read as a number.
    if isinstance(kind, Null | String):
        kind = wanted(operands[0], DOUBLE, 1)
    if not (is_numeric(kind) or isinstance(kind, Date | Time) or is_timestamp(kind) or is_interval(kind)):
        raise Mismatch(f"argument 1 is {kind}, wanted a number or a time")
    share = _share(operands[1], 2)
    # The accuracy is accepted and not used: the result is exact.
    if len(operands) > 2 and not (operands[2].constant and is_integer(operands[2].type)):
        raise Mismatch("the accuracy must be a constant integer")
    return (kind, share, *(INT for _ in operands[2:])), kind


def _pair(name: str, meaning: str) -> Function:
    return Function(name, f"{name}(y, x)", meaning, _NUMBER, (2, 2), nullable=True, distinct=True)


def _spread(name: str, meaning: str, *aliases: str) -> Function:
    return Function(name, f"{name}(x)", meaning, _NUMBER, (1, 1), aliases, nullable=True, distinct=True)


# Functions of pairs skip a pair with a NULL on either side.
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
    # NOT NULL: 0 without pairs.
    Function(
        "regr_count",
        "regr_count(y, x)",
        "The number of pairs without NULL.",
        fixed(DOUBLE, result=BIGINT),
        (2, 2),
        nullable=False,
    ),
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
        ("percentile_cont", "quantile_cont"),
        nullable=True,
        distinct=True,
    ),
    Function("median", "median(x)", "percentile(x, 0.5).", middle, (1, 1), nullable=True, distinct=True),
    # Exact here; Spark approximates above a number of values that the accuracy sets.
    Function(
        "percentile_approx",
        "percentile_approx(x, p[, accuracy]) or percentile_disc(p) WITHIN GROUP (ORDER BY x)",
        "The smallest value that at least the share p does not exceed; exact.",
        ranked_percentile,
        (2, 3),
        ("approx_percentile", "percentile_disc", "quantile_disc", "quantile"),
        nullable=True,
        distinct=True,
    ),
)


def logic_count(operands: Sequence[Operand]) -> Typing:
    """BOOLEAN in, a count out."""
    return logic(operands)[0], BIGINT


def counted_apart(operands: Sequence[Operand]) -> Typing:
    """A value with an order and a constant error bound; the result is a count."""
    # Only the first argument is counted; the error allowed is accepted and not used.
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
    # NOT NULL: 0 without rows. count(*) has no argument.
    Function(
        "count",
        "count(*) or count([DISTINCT] x, ..)",
        "The number of rows, or of those in which no value is NULL.",
        constant_result(BIGINT),
        (0, 1),
        nullable=False,
        distinct=True,
    ),
    # Fallible: the sum of BIGINTs may overflow, which raises.
    Function(
        "sum",
        "sum(x)",
        "The sum; integers give BIGINT, DECIMAL gains ten digits.",
        summed,
        (1, 1),
        nullable=True,
        distinct=True,
        fallible=True,
    ),
    Function(
        "histogram_numeric",
        "histogram_numeric(x, n)",
        "`histogram_bins(histogram(x), n)`: n rows (x, y) of a mean and a count; NULL without values.",
        constant_result(Array(Row((("x", DOUBLE), ("y", DOUBLE))))),
        (2, 2),
        nullable=True,
    ),
    Function(
        "try_sum",
        "try_sum(x)",
        "sum(x); NULL where the integers are too large for BIGINT.",
        summed,
        (1, 1),
        nullable=True,
        distinct=True,
    ),
    Function(
        "json_arrayagg",
        "json_arrayagg(x [ORDER BY k] [NULL | ABSENT ON NULL])",
        "The values as a JSON array, NULLs only with NULL ON NULL: by ORDER BY, else sorted.",
        constant_result(STRING),
        (1, 1),
        nullable=False,
        ordered=True,
        distinct=True,
    ),
    Function(
        "json_objectagg",
        "json_objectagg([KEY] k VALUE v [NULL | ABSENT ON NULL])",
        "Keys and values as a JSON object, sorted by key; a key that is there twice raises.",
        constant_result(STRING),
        (2, 2),
        nullable=False,
        fallible=True,
    ),
    # Of the optimizer: merges partial counts, where NULL would be wrong.
    Function(
        "sum0",
        "sum0(x)",
        "The sum, 0 when there are no values (merges partial counts).",
        summed,
        (1, 1),
        nullable=False,
    ),
    Function(
        "avg",
        "avg(x)",
        "The mean; DOUBLE, or DECIMAL of a DECIMAL.",
        averaged,
        (1, 1),
        ("mean", "try_avg"),
        nullable=True,
        distinct=True,
    ),
    Function("min", "min(x)", "The smallest value.", ordered, (1, 1), nullable=True, distinct=True),
    Function(
        "max",
        "max(x)",
        "The largest value; NaN is the largest number.",
        ordered,
        (1, 1),
        nullable=True,
        distinct=True,
    ),
    Function(
        "bool_and",
        "bool_and(x)",
        "Whether all values are TRUE.",
        logic,
        (1, 1),
        ("every",),
        nullable=True,
        distinct=True,
    ),
    Function(
        "bool_or",
        "bool_or(x)",
        "Whether some value is TRUE.",
        logic,
        (1, 1),
        ("some", "any"),
        nullable=True,
        distinct=True,
    ),
    # Spark may return any; the smallest is the same in each run.
    Function(
        "any_value",
        "any_value(x)",
        "One of the values: the smallest.",
        ordered,
        (1, 1),
        ("arbitrary",),
        nullable=True,
        distinct=True,
    ),
    Function(
        "count_if",
        "count_if(x)",
        "The number of rows where x is TRUE.",
        logic_count,
        (1, 1),
        ("countif",),
        nullable=False,
    ),
    # NOT NULL: 0 without values.
    Function(
        "approx_count_distinct",
        "approx_count_distinct(x[, error])",
        "The number of different values, exactly: as COUNT(DISTINCT x).",
        counted_apart,
        (1, 2),
        ("approx_distinct",),
        nullable=False,
    ),
    Function(
        "bit_and",
        "bit_and(x)",
        "The bits that all integers have.",
        integral,
        (1, 1),
        nullable=True,
        distinct=True,
    ),
    Function(
        "bit_or",
        "bit_or(x)",
        "The bits that some integer has.",
        integral,
        (1, 1),
        nullable=True,
        distinct=True,
    ),
    Function(
        "bit_xor",
        "bit_xor(x)",
        "The bits that an odd number of integers has.",
        integral,
        (1, 1),
        nullable=True,
        distinct=True,
    ),
    *STATISTICS,
    *COLLECTING,
)
