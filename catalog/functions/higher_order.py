"""Functions that are given a function ``x -> ..`` of the elements, declared."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.catalog.functions.type_rules import Function, Mismatch, Operand, Typing


def with_function(operands: Sequence[Operand]) -> Typing:
    """Refuse a call without a function: the binder reads those that have one."""
    raise Mismatch("the last argument is a function of the elements", None)


LAMBDAS: tuple[Function, ...] = (
    Function(
        "transform",
        "transform(a, x -> ..)",
        "What the function gives for each element; (x, i) -> .. has its place from 0.",
        with_function,
        (2, 2),
    ),
    Function(
        "filter",
        "filter(a, x -> ..)",
        "The elements for which it is TRUE; (x, i) -> .. has the place from 0.",
        with_function,
        (2, 2),
    ),
    Function(
        "exists",
        "exists(a, x -> ..)",
        "Whether it is TRUE for an element; NULL where a NULL leaves it open.",
        with_function,
        (2, 2),
        nullable=True,
    ),
    Function(
        "forall",
        "forall(a, x -> ..)",
        "Whether it is TRUE for all; NULL where a NULL leaves it open.",
        with_function,
        (2, 2),
        nullable=True,
    ),
    Function(
        "aggregate",
        "aggregate(a, start, (s, x) -> ..[, s -> ..])",
        "The value that goes from element to element, beginning with start; at last through the "
        "second function.",
        with_function,
        (3, 4),
        ("reduce",),
        nullable=True,
    ),
    Function(
        "zip_with",
        "zip_with(a, b, (x, y) -> ..)",
        "What it gives for the elements side by side; the shorter one has NULLs.",
        with_function,
        (3, 3),
    ),
    Function(
        "map_filter",
        "map_filter(m, (k, v) -> ..)",
        "The entries for which it is TRUE.",
        with_function,
        (2, 2),
    ),
    Function(
        "transform_keys",
        "transform_keys(m, (k, v) -> ..)",
        "The values under other keys; one key twice raises.",
        with_function,
        (2, 2),
        fallible=True,
    ),
    Function(
        "transform_values",
        "transform_values(m, (k, v) -> ..)",
        "The keys with other values.",
        with_function,
        (2, 2),
    ),
)
LAMBDA_NAMES = {name: function for function in LAMBDAS for name in (function.name, *function.aliases)}
