"""The registry of functions: names and aliases, and the resolution of a call to a signature."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.coercion import can_cast, common_type
from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.functions.aggregate import AGGREGATES
from penstock.catalog.functions.bitwise import BIT_FUNCTIONS
from penstock.catalog.functions.composed import COMPOSED
from penstock.catalog.functions.datetime import TIMES
from penstock.catalog.functions.json import JSON
from penstock.catalog.functions.nested import LAMBDAS, NESTED
from penstock.catalog.functions.scalar import CONDITIONALS, MATHEMATICS, OPERATORS, TRIES
from penstock.catalog.functions.string import DAYS, NUMBERS, STRINGS, WORDS
from penstock.catalog.functions.table import table_function_names
from penstock.catalog.functions.type_rules import Function, Mismatch, Operand
from penstock.catalog.functions.variant import VARIANTS
from penstock.catalog.functions.window import WINDOW_FUNCTIONS
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.other_dialects import FUNCTION_HINTS
from penstock.catalog.types import DataType

__all__ = [
    "AGGREGATE_NAMES",
    "SCALAR_FAMILIES",
    "Signature",
    "can_cast",
    "common_type",
    "function_kinds",
    "function_names",
    "is_aggregate",
    "is_deterministic",
    "is_fallible",
    "resolve",
    "resolve_aggregate",
    "takes_order",
]

# Titles and order are those of docs/FUNCTIONS.md.
SCALAR_FAMILIES: dict[str, tuple[Function, ...]] = {
    "Operators": OPERATORS,
    "Conditions": CONDITIONALS,
    "Mathematics": MATHEMATICS + NUMBERS + TRIES,
    "Bits, hashes and encodings": BIT_FUNCTIONS,
    "Text": STRINGS + WORDS,
    "JSON": JSON,
    "VARIANT": VARIANTS,
    "Dates and times": TIMES + DAYS,
    "Arrays, maps and rows": NESTED,
    "Functions of elements": LAMBDAS,
}

# Functions that users look for; each call of them returns another value.
_OF_CHANCE = frozenset(
    ("rand", "random", "randn", "uuid", "shuffle", "rand_integer", "monotonically_increasing_id")
)

# Functions that operators of the grammar and rules of the optimizer call; users cannot write their names.
INTERNAL_NAMES = frozenset(
    {
        "sum0",
        "concat_op",
        "null_safe_equal",
        "is_true",
        "is_false",
        "field",
        "element",
        "at_time_zone",
        "exact_second",
        "bitwise_and",
        "bitwise_or",
        "bitwise_xor",
        "bitwise_not",
        "variant_at",
    }
)

# single_value(x, rows) is x, the value of a scalar subquery; it raises where rows, their number, is over 1
# unique_row(x, rows) is the same for the rows of one primary key, of ON CONFLICT DO ERROR
_FALLIBLE_INTERNALS = frozenset({"single_value", "unique_row"})


@dataclass(frozen=True)
class Signature:
    """A resolved call: its canonical name, the types its arguments must be cast to, its type; ``nullable``
    None: NULL when an argument is.
    """

    canonical: str
    arg_types: tuple[DataType, ...]
    result: DataType
    nullable: bool | None


def _by_name(functions: tuple[Function, ...]) -> dict[str, Function]:
    return {name: function for function in functions for name in (function.name, *function.aliases)}


# Aliases are keys beside the names: a plan has the canonical name only.
_SCALARS: dict[str, Function] = _by_name(tuple(f for family in SCALAR_FAMILIES.values() for f in family))
_AGGREGATES: dict[str, Function] = _by_name(AGGREGATES)
AGGREGATE_NAMES = frozenset(_AGGREGATES)


def function_names() -> list[str]:
    """Return every name a user may call, aliases included, sorted."""
    return sorted((set(_SCALARS) | set(_AGGREGATES) | set(COMPOSED)) - INTERNAL_NAMES)


def function_kinds() -> list[tuple[str, str]]:
    """Return every name of the language with what it is: scalar, aggregate, window (with OVER alone) or
    table (in FROM).
    """
    # Later entries replace earlier ones: first_value, a window function too, is listed as an aggregate.
    kinds = dict.fromkeys(table_function_names(), "table") | {
        function.name: "window" for function in WINDOW_FUNCTIONS
    }
    kinds |= {name: "aggregate" if is_aggregate(name) else "scalar" for name in function_names()}
    return sorted(kinds.items())


def is_aggregate(name: str) -> bool:
    """Return whether a name (any alias, any case) is an aggregate function."""
    return name.lower() in _AGGREGATES


def is_deterministic(canonical: str) -> bool:
    """Return whether a function has equal results for equal arguments."""
    function = _SCALARS.get(canonical.lower()) or _AGGREGATES.get(canonical.lower())
    # An unknown name is an internal one: it computes from its arguments alone.
    return function is None or function.deterministic


def is_fallible(canonical: str) -> bool:
    """Return whether a function can raise on some values (overflow, division by zero, unreadable text)."""
    function = _SCALARS.get(canonical.lower()) or _AGGREGATES.get(canonical.lower())
    return canonical in _FALLIBLE_INTERNALS if function is None else function.fallible


def resolve(
    name: str, args: Sequence[object], span: Span | None = None, others: Sequence[str] = ()
) -> Signature:
    """Return the signature of a scalar call; ``args`` are DataTypes, or typed expressions (a constant's value
    may decide a type).

    ``others`` are names besides the registry's that a user may have meant.

    Raises SQL-1101 unknown function, SQL-1102 wrong number of arguments, SQL-1103 wrong types, SQL-1104 an
    aggregate where none is allowed.
    """
    # SELECT sum(x) + 1 binds sum elsewhere: an aggregate that arrives here is where none is allowed.
    function = _SCALARS.get(name.lower())
    # WHERE sum(x) > 1, or an aggregate inside another.
    if function is None and is_aggregate(name):
        raise PenstockError(
            "SQL-1104",
            f"{name.lower()} is an aggregate function and cannot be used here",
            span=span,
            hint="aggregate first, in a subquery",
        )
    if function is None:
        raise _unknown(name, span, others)
    return _sign(function, args, span)


def resolve_aggregate(
    name: str, args: Sequence[object], distinct: bool = False, span: Span | None = None
) -> Signature:
    """Return the signature of an aggregate call; raises as ``resolve``, and SQL-1105 where DISTINCT is not
    offered.
    """
    function = _AGGREGATES.get(name.lower())
    if function is None:
        raise _unknown(name, span)
    # COUNT(DISTINCT) without an argument has nothing to compare.
    # The flag is of the declaration: sum0 and histogram have no DISTINCT form.
    if distinct and (not function.distinct or not args):
        raise PenstockError(
            "SQL-1105", f"{function.name} has no DISTINCT form", span=span, hint=f"write {function.usage}"
        )
    return _sign(function, args, span)


def takes_order(name: str) -> bool:
    """Return whether an aggregate (any alias, any case) may have an ORDER BY inside."""
    return _AGGREGATES[name.lower()].ordered


def _unknown(name: str, span: Span | None, others: Sequence[str] = ()) -> PenstockError:
    # SELECT rand(): refused with a reason, instead of "there is no function".
    if name.lower() in _OF_CHANCE:
        message = (
            f"{name.lower()} is not supported: each call returns another value, so a retraction "
            "would not equal its row"
        )
        hint = "let the source add such a value to each row; pmod(xxhash64(key), 100) < 5 keeps 5 of 100"
        raise PenstockError("SQL-1601", message, span=span, hint=hint, sqlstate="0A000")
    hint = (
        FUNCTION_HINTS.get(name.lower())
        or did_you_mean(name, [*others, *function_names()])
        or "SHOW FUNCTIONS lists every function"
    )
    return PenstockError(
        "SQL-1101", f"there is no function {name.lower()}", span=span, hint=hint, sqlstate="42883"
    )


def _sign(function: Function, args: Sequence[object], span: Span | None) -> Signature:
    # The number of arguments first: rules rely on it.
    least, most = function.arity
    if len(args) < least or (most is not None and len(args) > most):
        raise PenstockError(
            "SQL-1102",
            f"{function.name} takes {_count(least, most)}, not {len(args)}",
            span=span,
            hint=f"write {function.usage}",
        )
    try:
        kinds, result = function.rule([_operand(arg) for arg in args])
    # Rules know types only; the position of the call is added here.
    except Mismatch as refusal:
        hint = refusal.hint or f"usage: {function.usage}"
        raise PenstockError(
            "SQL-1103", f"{function.name}: {refusal.message}", span=span, hint=hint, sqlstate="42804"
        ) from None
    return Signature(function.name, kinds, result, function.nullable)


def _operand(arg: object) -> Operand:
    """Read a DataType, or an expression by its ``type`` and (a constant) ``value``: the catalog does not
    import expressions.
    """
    if isinstance(arg, DataType):
        return Operand(arg)
    kind = getattr(arg, "type", None)
    assert isinstance(kind, DataType), arg
    # Only a literal has a value: that makes an operand a constant.
    return Operand(kind, hasattr(arg, "value"), getattr(arg, "value", None))


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"at least {least} argument{'s' if least != 1 else ''}"
    if least == most:
        return f"{least} argument{'s' if least != 1 else ''}"
    return f"{least} to {most} arguments"
