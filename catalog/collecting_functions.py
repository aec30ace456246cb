"""Aggregates that keep values, declared: lists, the row that is first or greatest by another column, how often each value is there."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.coercion import is_orderable
from penstock.catalog.function_rules import Function, Mismatch, Operand, Typing, fixed
from penstock.catalog.types import BIGINT, STRING, Array, DataType, Map, Null


def _told_apart(operand: Operand, position: int) -> DataType:
    if not is_orderable(operand.type):
        raise Mismatch(f"argument {position} is {operand.type}, and a MAP has no order", "use map_entries(m), an array of rows, or one of its values")
    return operand.type


def collected(operands: Sequence[Operand]) -> Typing:
    """An array of the values."""
    kind = _told_apart(operands[0], 1)
    return (kind,), Array(kind)


def kept(operands: Sequence[Operand]) -> Typing:
    """One of the values, told by the others."""
    kinds = tuple(_told_apart(operand, i) for i, operand in enumerate(operands, 1))
    return kinds, kinds[0]


def positioned(operands: Sequence[Operand]) -> Typing:
    """One of the values, and a constant that says whether NULLs are passed over."""
    if len(operands) > 1 and not (operands[1].constant and isinstance(operands[1].value, bool)):
        raise Mismatch("the second argument must be TRUE or FALSE", "write IGNORE NULLS behind the call")
    return (_told_apart(operands[0], 1), *(operand.type for operand in operands[1:])), operands[0].type


def joined(operands: Sequence[Operand]) -> Typing:
    """Texts with a constant between."""
    if len(operands) > 1 and not (operands[1].constant and isinstance(operands[1].value, str)):
        raise Mismatch("the separator must be a constant text", "write listagg(x, ', ')")
    return fixed(STRING, result=STRING)(operands)


def counted(operands: Sequence[Operand]) -> Typing:
    """A map of the values to counts."""
    kind = _told_apart(operands[0], 1)
    if isinstance(kind, Null):
        raise Mismatch("argument 1 is NULL, and has no values to count")
    return (kind,), Map(kind, BIGINT)


COLLECTING: tuple[Function, ...] = (
    Function(
        "first_value",
        "first_value(x [ORDER BY k]) [IGNORE NULLS]",
        "The value of the first row: by event time where no order is given; of rows of one time the smallest.",
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
        "The value of the last row: by event time where no order is given; of rows of one time the greatest.",
        positioned,
        (1, 2),
        ("last",),
        nullable=True,
        ordered=True,
        distinct=True,
    ),
    Function("max_by", "max_by(x, y)", "x of the row with the largest y, among several the largest x.", kept, (2, 2), nullable=True, distinct=True),
    Function("min_by", "min_by(x, y)", "x of the row with the smallest y, among several the smallest x.", kept, (2, 2), nullable=True, distinct=True),
    Function(
        "collect_list",
        "collect_list(x [ORDER BY k])",
        "All values but NULLs as an array: by the order given, else sorted.",
        collected,
        (1, 1),
        ("array_agg",),
        nullable=False,
        ordered=True,
        distinct=True,
    ),
    Function("collect_set", "collect_set(x)", "The different values but NULL as an array, sorted.", collected, (1, 1), nullable=False, distinct=True),
    Function(
        "listagg",
        "listagg(x[, separator]) [WITHIN GROUP (ORDER BY k)]",
        "All values but NULLs as one text: by the order given, else sorted.",
        joined,
        (1, 2),
        ("string_agg",),
        nullable=True,
        ordered=True,
        distinct=True,
    ),
    Function("mode", "mode(x)", "The most frequent value, among several the smallest.", kept, (1, 1), nullable=True, distinct=True),
    Function(
        "histogram", "histogram(x)", "How often each value is there: a map sorted by value; NULL without values.", counted, (1, 1), nullable=True
    ),
)
