"""Count windows in FROM: ``TUMBLE(TABLE t PARTITION BY k ORDER BY ts, 100 ROWS)`` is rewritten to a query."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    FrameBound,
    FunctionCall,
    NamedArgument,
    OverClause,
    Reference,
    RowCount,
    TableArgument,
    WindowTableFunction,
    consume,
    set_span,
    span_of,
)

WINDOW_INDEX = "window_index"
"""The column that a count window adds: the index of the row's window in its partition, from 0."""

_USAGE = "TUMBLE(TABLE t PARTITION BY k ORDER BY ts, 100 ROWS)"


def is_count_window(tree: WindowTableFunction) -> bool:
    """Return whether an argument of a windowing function is a number of rows."""
    return any(isinstance(_value(argument), RowCount) for argument in tree.expressions)


def count_window_query(tree: WindowTableFunction) -> exp.Subquery:
    """Return the query that replaces a count window: ROW_NUMBER per partition, cut into windows of n rows.

    Without ORDER BY rows are numbered as they arrive. The last window of a partition may have fewer rows.
    Raises SQL-1601 for a function other than TUMBLE, SQL-1102 for unknown arguments, SQL-1705 for a count
    below 1.
    """
    if tree.this != "TUMBLE":
        raise PenstockError(
            "SQL-1601",
            f"{tree.this} over a number of rows is not supported",
            span=span_of(tree),
            hint=f"write {_USAGE}, or give {tree.this} a time column and intervals",
            sqlstate="0A000",
        )
    data, size = _arguments(tree)
    consume(data, "this", "partition", "order")
    span = span_of(size)
    # SELECT *, (COUNT(*) OVER (PARTITION BY k ORDER BY ts ROWS ..) - 1) DIV n AS window_index FROM t
    rows = _literal_rows(size)
    order = [_sort_key(name) for name in data.args.get("order") or []]
    number = FunctionCall(
        this="count",
        star=True,
        expressions=[],
        over=OverClause(
            partition=[_reference(name) for name in data.args.get("partition") or []],
            order=order
            # Arrival order is ORDER BY PROCTIME().
            or [exp.Ordered(this=_with_span(FunctionCall(this="proctime", expressions=[]), span))],
            unit="ROWS",
            first=FrameBound(following=False),
        ),
    )
    # (COUNT(*) OVER (..) - 1) DIV n: the count up to the row is its number.
    before = exp.Paren(this=exp.Sub(this=_with_span(number, span), expression=exp.Literal.number(1)))
    index = exp.IntDiv(this=before, expression=exp.Literal.number(rows))
    # made nodes have the span of the count, so that errors in them point there
    columns = [AllColumns(), exp.Alias(this=_with_span(index, span), alias=exp.to_identifier(WINDOW_INDEX))]
    return exp.Subquery(this=exp.Select(expressions=columns, from_=exp.From(this=data.this)))


def _value(argument: exp.Expr) -> exp.Expr:
    return argument.args["expression"] if isinstance(argument, NamedArgument) else argument


def _arguments(tree: WindowTableFunction) -> tuple[TableArgument, RowCount]:
    values = [_value(argument) for argument in tree.expressions]
    match values:
        # TUMBLE(TABLE t .., 100 ROWS)
        case [TableArgument() as data, RowCount() as size]:
            return data, size
    raise PenstockError(
        "SQL-1102",
        "a count window takes a table and a number of rows",
        span=span_of(tree),
        hint=f"write {_USAGE}",
        sqlstate="42883",
    )


def _literal_rows(size: RowCount) -> int:
    literal = size.this
    if isinstance(literal, exp.Literal) and not literal.is_string and literal.name.isdigit():
        rows = int(literal.name)
        # Rows are counted in a BIGINT.
        if 0 < rows < 1 << 63:
            return rows
    raise PenstockError(
        "SQL-1705",
        "the size of a count window is a whole number of rows, at least 1",
        span=span_of(size),
        hint=f"write {_USAGE}",
        sqlstate="22023",
    )


def _sort_key(name: exp.Identifier) -> exp.Ordered:
    # ORDER BY of a table argument has names only: ascending, NULLs first as by default
    return _with_span(exp.Ordered(this=_reference(name), desc=False, nulls_first=True), span_of(name))


def _reference(name: exp.Identifier) -> exp.Expr:
    return _with_span(Reference(expressions=[name.copy()]), span_of(name))


def _with_span(node: exp.Expr, span: Span | None) -> Any:
    return node if span is None else set_span(node, span.start, span.end)
