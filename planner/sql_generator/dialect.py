"""The base of SQL dialects of bounded backends: types, literals, casts, function spellings, and times as
integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.python_functions import PythonAggregate, PythonScalar
from penstock.catalog.types import DataType, to_spark
from penstock.planner.expressions.nodes import AggregateCall, Call, Literal
from penstock.planner.expressions.python_calls import PythonCall
from penstock.planner.logical.joins.join import JoinKind

TOO_MANY_ITERATIONS = "RECURSION_HAS_NO_END"
"""What a backend's error begins with when WITH RECURSIVE has passed its most iterations; their number
follows.
"""
SEVERAL_ROWS = "SCALAR_SUBQUERY_HAS_SEVERAL_ROWS"
CONFLICTING_ROWS = "SEVERAL_ROWS_HAVE_ONE_PRIMARY_KEY"
"""A backend's error about a scalar subquery with more than one row."""
Spelling = Callable[[Call, list[exp.Expr]], exp.Expr]
Filtered = Callable[[exp.Expr], exp.Expr]
AggregateSpelling = Callable[[AggregateCall, list[exp.Expr], Filtered], exp.Expr]


class Flavour:
    """A SQL dialect with penstock's semantics: every expression it writes has the value of the engine's
    expression.
    """

    name = ""
    dialect = ""
    join_words: Mapping[JoinKind, tuple[str, str]] = {
        JoinKind.INNER: ("", "INNER"),
        JoinKind.LEFT: ("LEFT", "OUTER"),
        JoinKind.RIGHT: ("RIGHT", "OUTER"),
        JoinKind.FULL: ("FULL", "OUTER"),
        JoinKind.SEMI: ("LEFT", "SEMI"),
        JoinKind.ANTI: ("LEFT", "ANTI"),
    }
    narrows_windows = True
    """Whether OVER allows DISTINCT and FILTER."""
    full_frames = True
    """Whether OVER has GROUPS, EXCLUDE, and ORDER BY among the arguments of FIRST_VALUE."""
    recursive_union = True
    """Whether WITH RECURSIVE allows UNION without ALL."""
    nests_selects = False
    """Whether a CTE that is read once is written where it is read."""
    asof_join = False
    """Whether there is an ASOF JOIN."""
    raising = ""
    """The function that raises its argument as an error."""
    functions: Mapping[str, Spelling] = {}
    aggregates: Mapping[str, AggregateSpelling] = {}

    def __init__(self) -> None:
        self.python_functions: dict[str, PythonScalar | PythonAggregate] = {}

    def kind(self, kind: DataType) -> exp.DataType:
        """Return the dialect's type."""
        return exp.DataType.build(to_spark(kind), dialect="spark")

    def literal(self, literal: Literal) -> exp.Expr:
        """Return a constant of exactly the literal's type."""
        raise AssertionError(type(self))

    def cast(self, arg: exp.Expr, source: DataType, target: DataType, safe: bool) -> exp.Expr:
        """Return a cast with Spark's ANSI semantics; with ``safe``, a value that does not fit
        becomes NULL.
        """
        raise AssertionError(type(self))

    def epoch_us(self, time: exp.Expr, kind: DataType) -> exp.Expr:
        """Return a time as BIGINT microseconds since 1970, whatever the session's time zone."""
        raise AssertionError(type(self))

    def from_epoch_us(self, micros: exp.Expr, kind: DataType) -> exp.Expr:
        """Return the time that is that many microseconds after 1970."""
        raise AssertionError(type(self))

    def explode_series(self, first: exp.Expr, last: exp.Expr, step: int) -> exp.Expr:
        """Return a select item that yields one row per integer from ``first`` to ``last`` inclusive."""
        raise AssertionError(type(self))

    def explode_array(self, array: exp.Expr, outer: bool) -> list[exp.Expr]:
        """Return select items that yield one row per element: its index from 0 as ``p``, its value as ``v``.
        With ``outer``, an empty array yields one row of NULLs.
        """
        raise AssertionError(type(self))

    def wire(self, column: exp.Expr, kind: DataType) -> exp.Expr:
        """Return a result column in a type that the backend can return as Arrow; the reader casts it to the
        exact type.
        """
        raise AssertionError(type(self))

    def from_wire(self, column: exp.Expr, kind: DataType) -> exp.Expr:
        """Return a relation's column in the backend's own type, where Arrow or the file cannot represent that
        type.
        """
        return column

    def next_iteration(self, iteration: exp.Expr, most: int) -> exp.Expr:
        """Return the number of the next iteration; it raises where there would be more than ``most``."""
        raised = function(self.raising, text(f"{TOO_MANY_ITERATIONS} {most}"))
        following = exp.Add(this=iteration, expression=integer(1))
        return (
            exp.Case()
            .when(exp.GTE(this=iteration.copy(), expression=integer(most)), exp.cast(raised, "BIGINT"))
            .else_(following)
        )

    def sort_value(self, arg: exp.Expr, kind: DataType) -> exp.Expr:
        """Return what ORDER BY compares of a value: NULL inside of arrays and rows comes first."""
        return arg

    def spell(self, call: Call, args: list[exp.Expr]) -> exp.Expr:
        """Return a scalar call in the dialect, and record Python functions. Raise BND-5101 for a function
        without a spelling.
        """
        if isinstance(call, PythonCall):
            # a function without arguments gets a constant, which tells it the number of rows
            name = python_name(call.body)
            self.python_functions[name] = call.body
            return function(name, *(args or [integer(0)]))
        spelling = self.functions.get(call.function)
        if spelling is None:
            raise self.refusal(f"function {call.function}", call.span)
        return spelling(call, args)

    def spell_aggregate(self, call: AggregateCall, args: list[exp.Expr], filtered: Filtered) -> exp.Expr:
        """Return an aggregate call in the dialect; ``filtered`` wraps each aggregate function in it. Raise
        BND-5101 for an aggregate without a spelling.
        """
        spelling = self.aggregates.get(call.function)
        if spelling is None:
            raise self.refusal(f"aggregate {call.function}", call.span)
        return spelling(call, args, filtered)

    def refusal(self, what: str, span: Span | None = None) -> PenstockError:
        """Return the error BND-5101: the dialect has no spelling for ``what``."""
        return PenstockError(
            "BND-5101",
            f"{what} has no spelling on the bounded backend {self.name}",
            hint="SET 'execution.runtime-mode' = 'streaming' computes it on penstock's own runtime",
            span=span,
            sqlstate="0A000",
        )


def python_name(python: PythonScalar | PythonAggregate) -> str:
    """Return the name of a Python function in a backend."""
    return f"penstock_python_{python.name.lower()}"


def function(name: str, *args: exp.Expr) -> exp.Expr:
    """Return a function call with exactly this name."""
    return exp.Anonymous(this=name, expressions=list(args))


def named(name: str) -> Spelling:
    """Return the spelling of a function that has this name in the dialect and takes the same arguments."""
    return lambda call, args: function(name, *args)


def same_names(names: str) -> dict[str, Spelling]:
    """Return the spellings of functions that have the same name in the dialect; ``names`` are separated by
    blanks.
    """
    return {name: named(name) for name in names.split()}


def infix(node: type[exp.Expr]) -> Spelling:
    """Return the spelling of a binary operator, in parentheses."""
    return lambda call, args: exp.Paren(this=node(this=args[0], expression=args[1]))


def logical(node: type[exp.Expr]) -> Spelling:
    """Return the spelling of AND or OR over any number of operands."""

    def spelling(call: Call, args: list[exp.Expr]) -> exp.Expr:
        result = args[0]
        # a AND b AND c, left to right.
        for arg in args[1:]:
            result = node(this=result, expression=arg)
        return exp.Paren(this=result)

    return spelling


def integer(value: int) -> exp.Expr:
    """Return an integer constant."""
    return (
        # In parentheses, as a minus in front would begin a comment: 1--2.
        exp.Paren(this=exp.Neg(this=exp.Literal.number(str(-value))))
        if value < 0
        else exp.Literal.number(str(value))
    )


def text(value: str) -> exp.Expr:
    """Return a string constant, escaped by the dialect when it is written."""
    return exp.Literal.string(value)


def cast(arg: exp.Expr, kind: exp.DataType, safe: bool = False) -> exp.Expr:
    """Return a plain CAST or TRY_CAST."""
    return exp.TryCast(this=arg, to=kind, safe=True) if safe else exp.Cast(this=arg, to=kind)


def binary(node: type[exp.Expr], left: exp.Expr, right: exp.Expr) -> exp.Expr:
    """Return a binary operation in parentheses."""
    return exp.Paren(this=node(this=left, expression=right))


def when(condition: exp.Expr, value: exp.Expr, otherwise: exp.Expr) -> exp.Expr:
    """Return CASE WHEN condition THEN value ELSE otherwise END."""
    return exp.Case(ifs=[exp.If(this=condition, true=value)], default=otherwise)


def single_value(raising: str, message: str) -> Spelling:
    """Return the spelling of the value of the only row, by the function that raises its argument where there
    are several.
    """

    def spelling(call: Call, args: list[exp.Expr]) -> exp.Expr:
        value, rows = args
        return when(
            exp.GT(this=rows, expression=integer(1)),
            function(raising, text(message)),
            value,
        )

    return spelling


def is_null(value: exp.Expr) -> exp.Expr:
    """Return ``value IS NULL``."""
    return exp.Is(this=value, expression=exp.null())


def not_null(value: exp.Expr) -> exp.Expr:
    """Return ``value IS NOT NULL``."""
    return exp.Not(this=is_null(value))


OPERATORS: dict[str, Spelling] = {
    "and": logical(exp.And),
    "or": logical(exp.Or),
    "not": lambda call, args: exp.Paren(this=exp.Not(this=args[0])),
    "equal": infix(exp.EQ),
    "not_equal": infix(exp.NEQ),
    "less": infix(exp.LT),
    "less_equal": infix(exp.LTE),
    "greater": infix(exp.GT),
    "greater_equal": infix(exp.GTE),
    "null_safe_equal": infix(exp.NullSafeEQ),
    "is_null": lambda call, args: exp.Paren(this=exp.Is(this=args[0], expression=exp.null())),
    "is_not_null": lambda call, args: exp.Paren(
        this=exp.Not(this=exp.Is(this=args[0], expression=exp.null()))
    ),
    "in": lambda call, args: exp.Paren(this=exp.In(this=args[0], expressions=args[1:])),
    "add": infix(exp.Add),
    "subtract": infix(exp.Sub),
    "multiply": infix(exp.Mul),
    "divide": infix(exp.Div),
    "mod": infix(exp.Mod),
    "negate": lambda call, args: exp.Paren(this=exp.Neg(this=args[0])),
    "concat_op": infix(exp.DPipe),
}
