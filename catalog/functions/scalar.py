"""Operators, arithmetic and conditional functions, declared."""

from __future__ import annotations

from penstock.catalog.functions.nested_type_rules import concatenated_values
from penstock.catalog.functions.type_rules import (
    Function,
    add,
    arithmetic,
    comparison,
    conditional,
    constant_result,
    divide,
    fixed,
    integral_divide,
    logic,
    membership,
    multiply,
    nullif,
    ordered,
    rounded,
    rounded_up_or_down,
    same,
    signed,
    subtract,
    zero_if_null,
)
from penstock.catalog.types import BOOLEAN, DOUBLE, STRING

# Fallible ones raise on overflow, division by zero or an unreadable value: the optimizer does not move them.
OPERATORS: tuple[Function, ...] = (
    Function(
        "add",
        "a + b",
        "Sum of numbers; a date or timestamp moved by an interval; two intervals added.",
        add,
        (2, 2),
        fallible=True,
    ),
    Function(
        "subtract",
        "a - b",
        "Difference of numbers, of points in time (an interval), or of intervals.",
        subtract,
        (2, 2),
        fallible=True,
    ),
    Function(
        "multiply",
        "a * b",
        "Product of numbers, or of an interval and a number.",
        multiply,
        (2, 2),
        fallible=True,
    ),
    # Two integers give a DOUBLE, as in Spark; in Flink 7 / 2 is 3.
    Function(
        "divide",
        "a / b",
        "Quotient as DOUBLE, or DECIMAL when a side is; division by zero raises.",
        divide,
        (2, 2),
        fallible=True,
    ),
    Function("div", "a DIV b", "Quotient cut towards zero, BIGINT.", integral_divide, (2, 2), fallible=True),
    # pmod has a remainder that is never negative for a positive b.
    Function("mod", "a % b", "Remainder with the sign of a.", arithmetic("mod", "%"), (2, 2), fallible=True),
    # Fallible: -(-128) of a TINYINT overflows.
    Function(
        "negate",
        "-a",
        "The number or interval with the other sign.",
        signed,
        (1, 1),
        ("negative",),
        fallible=True,
    ),
    # Floats are ordered as in Spark: NaN equals itself and is above all numbers, unlike IEEE 754.
    Function("equal", "a = b", "Equal; NaN equals NaN, -0.0 equals 0.0.", comparison, (2, 2)),
    Function("not_equal", "a <> b", "Not equal.", comparison, (2, 2)),
    Function("less", "a < b", "Less; NaN is the largest number.", comparison, (2, 2)),
    Function("less_equal", "a <= b", "Less or equal.", comparison, (2, 2)),
    Function("greater", "a > b", "Greater.", comparison, (2, 2)),
    Function("greater_equal", "a >= b", "Greater or equal.", comparison, (2, 2)),
    # Also IS NOT DISTINCT FROM.
    Function(
        "null_safe_equal",
        "a <=> b",
        "Equal, and NULL equals NULL; never NULL.",
        comparison,
        (2, 2),
        nullable=False,
    ),
    # x <> 0 AND 1 / x > 2 does not raise.
    Function(
        "and", "a AND b", "Both; the right side is not computed where the left is FALSE.", logic, (2, 2)
    ),
    Function("or", "a OR b", "Either; the right side is not computed where the left is TRUE.", logic, (2, 2)),
    Function("not", "NOT a", "The opposite truth.", logic, (1, 1)),
    # Any type: constant_result casts nothing.
    Function(
        "is_null",
        "a IS NULL",
        "Whether the value is NULL.",
        constant_result(BOOLEAN),
        (1, 1),
        ("isnull",),
        nullable=False,
    ),
    Function(
        "is_not_null",
        "a IS NOT NULL",
        "Whether there is a value.",
        constant_result(BOOLEAN),
        (1, 1),
        ("isnotnull",),
        nullable=False,
    ),
    Function("is_true", "a IS TRUE", "TRUE, and neither FALSE nor NULL.", logic, (1, 1), nullable=False),
    Function("is_false", "a IS FALSE", "FALSE, and neither TRUE nor NULL.", logic, (1, 1), nullable=False),
    Function("in", "a IN (b, ..)", "Whether the value equals one of the others.", membership, (2, None)),
    Function(
        "like",
        "a LIKE pattern [ESCAPE c]",
        "Whether the text matches; % any characters, _ one; the escape character is a backslash by default.",
        fixed(STRING, STRING, STRING, result=BOOLEAN),
        (2, 3),
    ),
    Function(
        "ilike",
        "a ILIKE pattern [ESCAPE c]",
        "LIKE without case.",
        fixed(STRING, STRING, STRING, result=BOOLEAN),
        (2, 3),
    ),
    Function(
        "rlike",
        "a RLIKE pattern",
        "Whether a regular expression matches somewhere in the text.",
        fixed(STRING, STRING, result=BOOLEAN),
        (2, 2),
        ("regexp", "regexp_like"),
        fallible=True,
    ),
    Function(
        "concat_op", "a || b", "Texts, or arrays, joined; NULL when one is NULL.", concatenated_values, (2, 2)
    ),
)

CONDITIONALS: tuple[Function, ...] = (
    # The binder writes these as CASE, whose nullability follows from the arguments.
    Function(
        "coalesce",
        "coalesce(a, b, ..)",
        "The first value that is not NULL.",
        same,
        (1, None),
        ("nvl", "ifnull"),
        nullable=True,
    ),
    Function("nullif", "nullif(a, b)", "NULL when both are equal, else a.", nullif, (2, 2), nullable=True),
    Function(
        "if",
        "if(condition, a, b)",
        "a where the condition is TRUE, else b.",
        conditional,
        (3, 3),
        ("iff", "iif"),
        nullable=True,
    ),
    Function("nvl2", "nvl2(x, a, b)", "a where x is not NULL, else b.", conditional, (3, 3), nullable=True),
    Function(
        "zeroifnull", "zeroifnull(x)", "x, or 0 where it is NULL.", zero_if_null, (1, 1), nullable=False
    ),
    Function("nullifzero", "nullifzero(x)", "x, or NULL where it is 0.", signed, (1, 1), nullable=True),
    # As in Spark; in Flink one NULL makes the result NULL.
    Function(
        "greatest",
        "greatest(a, b, ..)",
        "The largest value; NULLs are skipped.",
        ordered,
        (2, None),
        nullable=True,
    ),
    Function(
        "least",
        "least(a, b, ..)",
        "The smallest value; NULLs are skipped.",
        ordered,
        (2, None),
        nullable=True,
    ),
)


def _double(name: str, usage: str, text: str, *aliases: str, nullable: bool | None = None) -> Function:
    """A function from DOUBLEs to DOUBLE."""
    # "atan2(y, x)" has two arguments.
    count = usage.count(",") + 1
    return Function(name, usage, text, fixed(DOUBLE, result=DOUBLE), (count, count), aliases, nullable)


MATHEMATICS: tuple[Function, ...] = (
    # Fallible: abs(-128) of a TINYINT overflows.
    Function("abs", "abs(x)", "The number without its sign.", signed, (1, 1), fallible=True),
    Function(
        "ceil",
        "ceil(x)",
        "The least integer not below x.",
        rounded_up_or_down,
        (1, 1),
        ("ceiling",),
        fallible=True,
    ),
    Function(
        "floor", "floor(x)", "The greatest integer not above x.", rounded_up_or_down, (1, 1), fallible=True
    ),
    Function(
        "round",
        "round(x[, d])",
        "x rounded to d digits (0), halves away from zero.",
        rounded,
        (1, 2),
        fallible=True,
    ),
    # Banker's rounding: bround(2.5) is 2, round(2.5) is 3.
    Function(
        "bround",
        "bround(x[, d])",
        "x rounded to d digits (0), halves to even.",
        rounded,
        (1, 2),
        fallible=True,
    ),
    Function(
        "pmod",
        "pmod(a, b)",
        "Remainder that is never negative for a positive b.",
        arithmetic("pmod", "pmod"),
        (2, 2),
        fallible=True,
    ),
    Function("sign", "sign(x)", "-1.0, 0.0 or 1.0.", fixed(DOUBLE, result=DOUBLE), (1, 1), ("signum",)),
    # Outside its domain a function returns NaN; the logarithms return NULL, both as in Spark.
    _double("sqrt", "sqrt(x)", "Square root; NaN below zero."),
    _double("cbrt", "cbrt(x)", "Cube root."),
    _double("pow", "pow(x, y)", "x to the power y.", "power"),
    _double("exp", "exp(x)", "e to the power x."),
    _double("ln", "ln(x)", "Natural logarithm; NULL at and below zero.", nullable=True),
    Function(
        "log",
        "log([base, ]x)",
        "Logarithm to a base (e); NULL at and below zero.",
        fixed(DOUBLE, result=DOUBLE),
        (1, 2),
        nullable=True,
    ),
    _double("log10", "log10(x)", "Logarithm to base 10; NULL at and below zero.", nullable=True),
    _double("log2", "log2(x)", "Logarithm to base 2; NULL at and below zero.", nullable=True),
    _double("sin", "sin(x)", "Sine of an angle in radians."),
    _double("cos", "cos(x)", "Cosine of an angle in radians."),
    _double("tan", "tan(x)", "Tangent of an angle in radians."),
    _double("asin", "asin(x)", "Arc sine; NaN outside [-1, 1]."),
    _double("acos", "acos(x)", "Arc cosine; NaN outside [-1, 1]."),
    _double("atan", "atan(x)", "Arc tangent."),
    _double("atan2", "atan2(y, x)", "Angle of the point (x, y)."),
    _double("degrees", "degrees(x)", "Radians as degrees."),
    _double("radians", "radians(x)", "Degrees as radians."),
    Function("pi", "pi()", "3.141592653589793.", fixed(DOUBLE, result=DOUBLE), (0, 0), nullable=False),
    Function(
        "is_nan",
        "is_nan(x)",
        "Whether x is NaN; FALSE for NULL.",
        fixed(DOUBLE, result=BOOLEAN),
        (1, 1),
        ("isnan",),
        nullable=False,
    ),
)

# Typed as their operators. Not fallible and always nullable: an error becomes NULL.
TRIES: tuple[Function, ...] = (
    Function("try_add", "try_add(a, b)", "a + b; NULL where that overflows.", add, (2, 2), nullable=True),
    Function(
        "try_subtract",
        "try_subtract(a, b)",
        "a - b; NULL where that overflows.",
        subtract,
        (2, 2),
        nullable=True,
    ),
    Function(
        "try_multiply",
        "try_multiply(a, b)",
        "a * b; NULL where that overflows.",
        multiply,
        (2, 2),
        nullable=True,
    ),
    Function(
        "try_divide",
        "try_divide(a, b)",
        "a / b; NULL where b is 0.",
        divide,
        (2, 2),
        ("safe_divide",),
        nullable=True,
    ),
    Function(
        "try_mod", "try_mod(a, b)", "a % b; NULL where b is 0.", arithmetic("mod", "%"), (2, 2), nullable=True
    ),
)
