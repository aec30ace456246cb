"""Typed expressions: frozen nodes over column positions. The binder makes them, rules rewrite them, the
engine compiles them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace
from datetime import date, datetime, time, timedelta
from decimal import Decimal as PyDecimal

from penstock.catalog.errors import Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Role
from penstock.catalog.tables import BoundExpression
from penstock.catalog.types import BOOLEAN, DataType, Row

LiteralValue = None | bool | int | float | str | bytes | PyDecimal | date | datetime | time | timedelta


@dataclass(frozen=True)
class Expression:
    """Base of typed expressions. ``span`` is the position in the statement; it never takes part
    in equality.
    """

    type: DataType
    nullable: bool
    span: Span | None = field(default=None, compare=False, kw_only=True)

    @property
    def children(self) -> tuple[Expression, ...]:
        """The direct operands, in order."""
        return ()

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the same node over other operands."""
        return self

    def transform(self, rewrite: Callable[[Expression], Expression]) -> Expression:
        """Return the tree rebuilt bottom-up through ``rewrite``; the one recursion over expressions."""
        children = self.children
        changed = tuple(child.transform(rewrite) for child in children)
        # nothing below changed: the node itself, not a copy
        same = all(new is old for new, old in zip(changed, children, strict=True))
        return rewrite(self if same else self.with_children(changed))

    def walk(self) -> Iterator[Expression]:
        """Yield this node and all nodes below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def columns(self) -> frozenset[int]:
        """Return the input positions the expression reads."""
        return frozenset(node.index for node in self.walk() if isinstance(node, Column))

    def unplaced(self) -> Expression:
        """Return the expression without spans, for use in statements with another text."""
        return self.transform(lambda node: replace(node, span=None))

    def remap(self, positions: dict[int, int]) -> Expression:
        """Return the expression that reads column ``positions[i]`` instead of column ``i``."""
        return self.transform(
            lambda node: replace(node, index=positions[node.index]) if isinstance(node, Column) else node
        )


def expression_of(bound: BoundExpression) -> Expression:
    """Return the bound expression of a catalog table as the ``Expression`` it is."""
    assert isinstance(bound, Expression)
    return bound


Caller = Callable[[str, Sequence[Expression], Span | None], Expression]
"""Makes the call of a scalar function."""


@dataclass(frozen=True)
class Column(Expression):
    """An input column by position; ``name`` is for display only."""

    index: int = 0
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.name or f"${self.index}"


@dataclass(frozen=True)
class OuterColumn(Expression):
    """A column of a query around the subquery that is being bound, constant over the subquery's rows.
    ``level`` counts the enclosing queries from the outermost, 0.

    Decorrelation replaces it; it never leaves the binder.
    """

    level: int = 0
    index: int = 0
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.name or f"outer{self.level}${self.index}"


@dataclass(frozen=True)
class Literal(Expression):
    """A constant. TIMESTAMP and DATE values are ``datetime``/``date``, day-time intervals ``timedelta``,
    year-month intervals months (int).
    """

    value: LiteralValue = None

    def __str__(self) -> str:
        if self.value is None:
            return "NULL"
        # before numbers: a bool is an int to Python
        if isinstance(self.value, bool):
            return "TRUE" if self.value else "FALSE"
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        if isinstance(self.value, int | float | PyDecimal):
            return str(self.value)
        if isinstance(self.value, bytes):
            return f"X'{self.value.hex().upper()}'"
        if isinstance(self.value, timedelta):
            return f"INTERVAL '{_day_to_second(self.value)}' DAY TO SECOND"
        # DATE '2024-01-01', TIMESTAMP(3) '2024-01-01 00:00:00'
        return f"{self.type} '{self.value}'"


def _day_to_second(value: timedelta) -> str:
    """Return an interval as SQL writes it: days, then hours:minutes:seconds, with one sign for all."""
    sign, value = ("-", -value) if value < timedelta() else ("", value)
    # a timedelta of -1 second is -1 day and 86,399 seconds: the magnitude is written, the sign before it
    minutes, seconds = divmod(value.seconds, 60)
    fraction = f".{value.microseconds:06d}".rstrip("0") if value.microseconds else ""
    return f"{sign}{value.days} {minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}{fraction}"


@dataclass(frozen=True)
class Call(Expression):
    """A call of a scalar function or operator by its canonical name (``catalog.functions``). Arguments
    already have the required types.
    """

    function: str = ""
    args: tuple[Expression, ...] = ()

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.args

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, args=children)

    def __str__(self) -> str:
        # row.field and array[i] print as written
        if self.function in ("field", "element"):
            return self._part()
        symbol = INFIX.get(self.function)
        if symbol and len(self.args) == 2:
            return f"({self.args[0]} {symbol} {self.args[1]})"
        return f"{self.function}({', '.join(map(str, self.args))})"

    def _part(self) -> str:
        # the field's position is a literal; its name is in the type of the row
        base, key = self.args
        if (
            self.function == "field"
            and isinstance(base.type, Row)
            and isinstance(key, Literal)
            and isinstance(key.value, int)
        ):
            return f"{base}.{base.type.fields[key.value][0]}"
        return f"{base}[{key}]"


@dataclass(frozen=True)
class Cast(Expression):
    """CAST, or TRY_CAST when ``safe`` (a value that does not fit becomes NULL)."""

    arg: Expression = None  # type: ignore[assignment]  # dataclass order: every node is built with it
    safe: bool = False

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.arg,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, arg=children[0])

    def __str__(self) -> str:
        return f"{'TRY_CAST' if self.safe else 'CAST'}({self.arg} AS {self.type})"


@dataclass(frozen=True)
class Case(Expression):
    """CASE WHEN condition THEN value .. ELSE default END; IF, COALESCE and NULLIF are bound to it too."""

    whens: tuple[tuple[Expression, Expression], ...] = ()
    default: Expression = None  # type: ignore[assignment]  # dataclass order: every node is built with it

    @property
    def children(self) -> tuple[Expression, ...]:
        # condition, value, condition, value, .., default: with_children pairs them again
        return (*(part for when in self.whens for part in when), self.default)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        pairs = tuple(zip(children[0:-1:2], children[1:-1:2], strict=True))
        return replace(self, whens=pairs, default=children[-1])

    def __str__(self) -> str:
        whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in self.whens)
        return f"CASE {whens} ELSE {self.default} END"


@dataclass(frozen=True)
class LambdaVariable(Expression):
    """A parameter of the enclosing lambda function. ``number`` counts the parameters of outer functions;
    ``name`` is for display only.
    """

    # equality is by number: x -> x + 1 equals y -> y + 1
    number: int = 0
    name: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Parameter(Expression):
    """A parameter of a prepared statement, whose value is not known yet. ``name`` is its name, or the number
    of its ``?`` as text. It is replaced by a literal before the optimizer sees the plan.
    """

    name: str = ""

    def __str__(self) -> str:
        return f":{self.name}"


@dataclass(frozen=True)
class Lambda(Expression):
    """A lambda function as an argument. Its type is the type of its body; the body may read columns of the
    rows too.
    """

    parameters: tuple[LambdaVariable, ...] = ()
    body: Expression = None  # type: ignore[assignment]  # dataclass order: every node is built with it

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.body,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        return replace(self, body=children[0])

    def __str__(self) -> str:
        names = ", ".join(map(str, self.parameters))
        return f"{names if len(self.parameters) == 1 else f'({names})'} -> {self.body}"


@dataclass(frozen=True)
class Direction:
    """The direction of an ORDER BY item. Spark's default: NULLs first ascending, last descending; NaN is the
    largest.
    """

    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        return f"{' DESC' if self.descending else ''}{' NULLS FIRST' if self.nulls_first else ' NULLS LAST'}"


KEEPS_VALUES = frozenset({"collect_list", "listagg", "percentile", "percentile_approx", "mode", "histogram"})
"""Aggregates whose state holds each different value."""


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of an Aggregate node: canonical name, arguments and FILTER over the node's input,
    DISTINCT, result type.

    ``order`` are the directions of an ORDER BY inside the call. Its keys are the last arguments, as many as
    ``order`` has.
    """

    function: str
    args: tuple[Expression, ...]
    type: DataType
    nullable: bool = True
    distinct: bool = False
    filter: Expression | None = None
    order: tuple[Direction, ...] = ()
    span: Span | None = field(default=None, compare=False, kw_only=True)

    @property
    def values(self) -> tuple[Expression, ...]:
        """The arguments without the keys of the inner ORDER BY."""
        return self.args[: len(self.args) - len(self.order)]

    @property
    def keeps_values(self) -> bool:
        """Whether its state grows with each different value."""
        # DISTINCT changes nothing for MIN, MAX and ANY_VALUE
        return self.function in KEEPS_VALUES or (
            self.distinct and self.function not in ("min", "max", "any_value")
        )

    @property
    def version(self) -> str | None:
        """The version of a Python function; None for a SQL function."""
        return None

    @property
    def sort_keys(self) -> tuple[SortKey, ...]:
        """The ORDER BY inside the call."""
        # the last arguments are the keys of the inner ORDER BY
        keys = self.args[len(self.args) - len(self.order) :]
        return tuple(
            SortKey(key, direction.descending, direction.nulls_first)
            for key, direction in zip(keys, self.order, strict=True)
        )

    def __str__(self) -> str:
        # COUNT(*) is the call without arguments
        args = ", ".join(map(str, self.values)) or ("*" if self.function == "count" else "")
        order = f" ORDER BY {', '.join(map(str, self.sort_keys))}" if self.order else ""
        text = f"{self.function}({'DISTINCT ' if self.distinct else ''}{args}{order})"
        return f"{text} FILTER (WHERE {self.filter})" if self.filter is not None else text

    def map(self, rewrite: Callable[[Expression], Expression]) -> AggregateCall:
        """Return the call with ``rewrite`` applied to each argument and to the filter as whole
        expressions.
        """
        keep = None if self.filter is None else rewrite(self.filter)
        return replace(self, args=tuple(rewrite(arg) for arg in self.args), filter=keep)


@dataclass(frozen=True)
class SortKey:
    """One ORDER BY item; see ``Direction``."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = True

    def map(self, rewrite: Callable[[Expression], Expression]) -> SortKey:
        """Return the key with ``rewrite`` applied to its expression as a whole."""
        return replace(self, expression=rewrite(self.expression))

    def __str__(self) -> str:
        return f"{self.expression}{Direction(self.descending, self.nulls_first)}"


# operators by the canonical names of their functions
INFIX = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "div": "DIV",
    "mod": "%",
    "equal": "=",
    "not_equal": "<>",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "null_safe_equal": "<=>",
    "and": "AND",
    "or": "OR",
    "concat_op": "||",
    "like": "LIKE",
    "bitwise_and": "&",
    "bitwise_or": "|",
    "bitwise_xor": "^",
}

# neither is nullable
TRUE = Literal(BOOLEAN, False, value=True)
FALSE = Literal(BOOLEAN, False, value=False)


def conjuncts(predicate: Expression) -> tuple[Expression, ...]:
    """Return the AND-ed parts of a predicate, left to right."""
    if isinstance(predicate, Call) and predicate.function == "and":
        return tuple(part for arg in predicate.args for part in conjuncts(arg))
    return (predicate,)


def conjunction(parts: tuple[Expression, ...]) -> Expression:
    """Return one predicate that ANDs the parts (TRUE when there are none)."""
    if not parts:
        return TRUE
    # left-deep: (a AND b) AND c, as conjuncts takes it apart
    result = parts[0]
    for part in parts[1:]:
        result = Call(BOOLEAN, result.nullable or part.nullable, function="and", args=(result, part))
    return result


def expression_role(expression: Expression, fields: Sequence[Field] = ()) -> Role | None:
    """Return the time role of a computed column: that of a bare column among ``fields``, or processing time
    for a bare PROCTIME().
    """
    if isinstance(expression, Column):
        return fields[expression.index].role if expression.index < len(fields) else None
    return Role.PROCESSING_TIME if is_processing_time(expression) else None


def is_processing_time(expression: Expression) -> bool:
    """Return whether an expression is a bare PROCTIME()."""
    return isinstance(expression, Call) and expression.function == "proctime"


def inline(expression: Expression, definitions: Sequence[Expression]) -> Expression:
    """Return an expression over a projection's output as one over its input; ``definitions`` are the
    projection's expressions.
    """
    return expression.transform(lambda node: definitions[node.index] if isinstance(node, Column) else node)


def columns_read(expressions: Iterable[Expression | None]) -> frozenset[int]:
    """Return the columns that the expressions read; None reads nothing."""
    return frozenset[int]().union(*(one.columns() for one in expressions if one is not None))
