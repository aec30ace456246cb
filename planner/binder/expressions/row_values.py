"""Rows of values in parentheses, ``(a, b)``, compared part by part."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.types import INT, DayTimeInterval, Row, YearMonthInterval
from penstock.planner.binder.expressions.conditionals import case_of
from penstock.planner.expressions.nodes import Call, Caller, Expression, Literal
from penstock.planner.parser.syntax_nodes import AllColumns, span_of

Binder = Callable[[exp.Expr], Expression]
"""Binds one part."""

ROW_COMPARISONS = ("equal", "not_equal", "null_safe_equal", "less", "less_equal", "greater", "greater_equal")
"""The comparisons that two rows allow."""


def compared_rows(function: str, left: exp.Expr, right: exp.Expr, bind: Binder, call: Caller) -> Expression:
    """Return ``(a, b) < (c, d)`` in lexicographic order. Raises SQL-1114 unless both are rows of equal
    length.
    """
    # parts are bound once, though a < b uses most of them twice
    pairs = _pairs(left, right, bind)
    span = span_of(left)
    # All parts are equal.
    if function in ("equal", "null_safe_equal"):
        return _joined("and", [call(function, pair, span) for pair in pairs], call, span)
    # Some part differs.
    if function == "not_equal":
        return _joined("or", [call(function, pair, span) for pair in pairs], call, span)
    # (a, b) <= (c, d) is a < c OR (a = c AND b <= d), built from the last part to the first.
    # only the last part may be equal: all earlier ones decide by < or >
    strict = function.removesuffix("_equal")
    result = call(function, pairs[-1], span)
    for pair in reversed(pairs[:-1]):
        tied = call("and", [call("equal", pair, span), result], span)
        result = call("or", [call(strict, pair, span), tied], span)
    return result


def row_among(value: exp.Tuple, rows: Sequence[exp.Expr], bind: Binder, call: Caller) -> Expression:
    """Return ``(a, b) IN ((1, 2), ..)``."""
    return _joined(
        "or", [compared_rows("equal", value, row, bind, call) for row in rows], call, span_of(value)
    )


def overlapping(left: exp.Expr, right: exp.Expr, bind: Binder, call: Caller, span: Span | None) -> Expression:
    """Return ``(a, b) OVERLAPS (c, d)``: whether the periods have a moment in common. A period is a start and
    an end in any order, or a start and an interval; both ends belong to it, as in Flink.
    """
    (begin, end), (other_begin, other_end) = (_period(side, bind, call, span) for side in (left, right))
    tests = [("greater_equal", end, other_begin), ("greater_equal", other_end, begin)]
    return _joined("and", [call(function, [a, b], span) for function, a, b in tests], call, span)


def _period(tree: exp.Expr, bind: Binder, call: Caller, span: Span | None) -> tuple[Expression, Expression]:
    if not isinstance(tree, exp.Tuple) or len(tree.expressions) != 2:
        raise PenstockError(
            "SQL-1114",
            "OVERLAPS compares two periods",
            span=span_of(tree),
            hint="write (start, end) OVERLAPS (start, end), or an interval in place of an end",
            sqlstate="42804",
        )
    first, second = (bind(part) for part in tree.expressions)
    if isinstance(second.type, DayTimeInterval | YearMonthInterval):
        second = call("add", [first, second], span)
    # a NULL bound makes the answer NULL, which LEAST and GREATEST alone would skip
    absent = call("or", [call("is_null", [part], span) for part in (first, second)], span)
    low, high = (call(function, [first, second], span) for function in ("least", "greatest"))
    nothing = Literal(low.type, True, value=None)
    return case_of([(absent, nothing)], low, span), case_of([(absent, nothing)], high, span)


def _pairs(left: exp.Expr, right: exp.Expr, bind: Binder) -> list[list[Expression]]:
    for side, other in ((left, right), (right, left)):
        if not isinstance(side, exp.Tuple | exp.Subquery):
            # (a, b) = 1
            raise PenstockError(
                "SQL-1114",
                "a row of values is compared with one value",
                span=span_of(side),
                hint=f"write {len(other.expressions)} values in parentheses",
                sqlstate="42804",
            )
    parts, others = (_values_of(side) for side in (left, right))
    if len(parts) != len(others):
        message = f"a row of {len(parts)} values is compared with one of {len(others)}"
        raise PenstockError("SQL-1114", message, span=span_of(right), sqlstate="42804")
    first, second = (_bound(side, bind) for side in (left, right))
    return [list(pair) for pair in zip(first, second, strict=True)]


def _bound(side: exp.Expr, bind: Binder) -> list[Expression]:
    if not isinstance(side, exp.Subquery):
        return [bind(part) for part in side.expressions]
    # (SELECT x, y ..) is bound as (SELECT ROW(x, y) ..), a scalar subquery
    packed = side.copy()
    row = exp.Tuple(expressions=_values_of(packed))
    row.meta.update(side.meta)
    packed.this.set("expressions", [row])
    return row_parts(bind(packed))


def _values_of(side: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a row, or what a subquery lists. Raises SQL-1114 where that is not known before it
    is bound, or its ORDER BY may name it.
    """
    if not isinstance(side, exp.Subquery):
        return list(side.expressions)
    query = side.this
    listed = query.expressions if isinstance(query, exp.Select) else []
    order = [item.this for item in query.args["order"].expressions] if query.args.get("order") else []
    has_names = any(isinstance(item, exp.Alias) for item in listed)
    # ORDER BY 1, and ORDER BY total for sum(x) AS total
    names_list = any(has_names or isinstance(key, exp.Literal) for key in order)
    if not listed or names_list or any(isinstance(item, AllColumns) for item in listed):
        raise PenstockError(
            "SQL-1114",
            "the list of this subquery cannot be compared as a row",
            span=span_of(side),
            hint="list its columns one by one without AS, and order by columns of its tables",
            sqlstate="42804",
        )
    return [item.this if isinstance(item, exp.Alias) else item for item in listed]


def row_parts(row: Expression) -> list[Expression]:
    """Return the fields of a row, as they were written where it is written out."""
    assert isinstance(row.type, Row)
    if isinstance(row, Call) and row.function in ("row", "struct"):
        return list(row.args)
    return [
        Call(kind, True, function="field", args=(row, Literal(INT, False, value=i)), span=row.span)
        for i, (_, kind) in enumerate(row.type.fields)
    ]


def _joined(connective: str, tests: list[Expression], call: Caller, span: Span | None) -> Expression:
    while len(tests) > 1:
        # A balanced tree: a long list must not make a deep expression.
        pairs = [call(connective, [a, b], span) for a, b in zip(tests[::2], tests[1::2], strict=False)]
        tests = pairs + ([tests[-1]] if len(tests) % 2 else [])
    return tests[0]
