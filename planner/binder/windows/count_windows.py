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

_NUMBER = "$row"
"""The column of a row's number in its partition, below the windows of HOP and CUMULATE."""
_USAGE = {
    "TUMBLE": "TUMBLE(TABLE t PARTITION BY k ORDER BY ts, 100 ROWS)",
    "HOP": "HOP(TABLE t PARTITION BY k ORDER BY ts, 10 ROWS, 100 ROWS)",
    "CUMULATE": "CUMULATE(TABLE t PARTITION BY k ORDER BY ts, 10 ROWS, 100 ROWS)",
}


def is_count_window(tree: WindowTableFunction) -> bool:
    """Return whether an argument of a windowing function is a number of rows."""
    return any(isinstance(_value(argument), RowCount) for argument in tree.expressions)


def count_window_query(tree: WindowTableFunction) -> exp.Subquery:
    """Return the query that replaces a count window: ROW_NUMBER per partition, cut into windows of n rows.

    Without ORDER BY rows are numbered as they arrive. The last window of a partition may have fewer rows. A
    window of HOP has the last ``size`` rows up to each ``slide``-th row, so the first ones have fewer. A
    window of CUMULATE has the first one, two, .. steps of each ``size`` rows.
    Raises SQL-1601 for SESSION, SQL-1102 for unknown arguments, SQL-1705 for a count below 1 or a slide above
    the size, SQL-1704 for a size that is no multiple of the step.
    """
    if tree.this not in _USAGE:
        raise PenstockError(
            "SQL-1601",
            f"{tree.this} over a number of rows is not supported: rows follow one another without a gap",
            span=span_of(tree),
            hint=f"write {_USAGE['TUMBLE']}, or give {tree.this} a time column and intervals",
            sqlstate="0A000",
        )
    data, sizes = _arguments(tree)
    consume(data, "this", "partition", "order")
    span, usage = span_of(sizes[-1]), _USAGE[tree.this]
    rows = [_literal_rows(size, usage) for size in sizes]
    if rows[0] > rows[-1]:
        word = "step" if tree.this == "CUMULATE" else "slide"
        message = f"the {word} of a count window is at most its size"
        raise PenstockError(
            "SQL-1705", message, span=span_of(sizes[0]), hint=f"write {usage}", sqlstate="22023"
        )
    number = _numbered(data, span)
    if tree.this == "TUMBLE":
        # SELECT *, (COUNT(*) OVER (..) - 1) DIV n AS window_index FROM t
        index = exp.IntDiv(this=exp.Paren(this=number), expression=exp.Literal.number(rows[0]))
        return _selected(AllColumns(), index, WINDOW_INDEX, data.this, span)
    if tree.this == "CUMULATE" and rows[1] % rows[0]:
        message = f"the size of CUMULATE, {rows[1]} rows, is no multiple of its step, {rows[0]} rows"
        raise PenstockError("SQL-1704", message, span=span_of(sizes[0]), sqlstate="22023")
    # SELECT * EXCEPT (row), explode(sequence(first, last)) AS window_index
    numbered = _selected(AllColumns(), number, _NUMBER, data.this, span)
    row = _reference(_with_span(exp.to_identifier(_NUMBER, quoted=True), span))
    bounds = [_with_span(bound, span) for bound in _windows_of(tree.this, row, *rows)]
    every = FunctionCall(this="sequence", expressions=bounds)
    windows = FunctionCall(this="explode", expressions=[_with_span(every, span)])
    others = AllColumns(except_=[row.expressions[0].copy()])
    return _selected(others, windows, WINDOW_INDEX, numbered, span)


def _windows_of(function: str, row: exp.Expr, step: int, size: int) -> tuple[exp.Expr, exp.Expr]:
    """Return the first and the last window of a row by its number: a window ends at every ``step``-th row."""
    step_, size_, one = map(exp.Literal.number, (step, size, 1))
    first = exp.IntDiv(this=row, expression=step_)
    if function == "HOP":
        # (row + size) DIV slide - 1
        behind = exp.Paren(this=exp.Add(this=row.copy(), expression=size_))
        return first, exp.Sub(this=exp.IntDiv(this=behind, expression=step_.copy()), expression=one)
    # (row DIV size + 1) * (size DIV step) - 1: the last step of its ``size`` rows
    begun = exp.Add(this=exp.IntDiv(this=row.copy(), expression=size_), expression=one)
    steps = exp.Mul(this=exp.Paren(this=begun), expression=exp.Literal.number(size // step))
    return first, exp.Sub(this=steps, expression=one.copy())


def _numbered(data: TableArgument, span: Span | None) -> exp.Expr:
    """Return the number of a row in its partition, from 0: the count up to it, less one."""
    order = [_sort_key(column) for column in data.args.get("order") or []]
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
    return exp.Sub(this=_with_span(number, span), expression=exp.Literal.number(1))


def _selected(
    others: AllColumns, value: exp.Expr, name: str, table: exp.Expr, span: Span | None
) -> exp.Subquery:
    # made nodes have the span of the count, so that errors in them point there
    alias = _with_span(exp.to_identifier(name), span)
    column = _with_span(exp.Alias(this=_with_span(value, span), alias=alias), span)
    return exp.Subquery(
        this=exp.Select(expressions=[_with_span(others, span), column], from_=exp.From(this=table))
    )


def _value(argument: exp.Expr) -> exp.Expr:
    return argument.args["expression"] if isinstance(argument, NamedArgument) else argument


def _arguments(tree: WindowTableFunction) -> tuple[TableArgument, list[RowCount]]:
    """Return the table and the counts, SLIDE or STEP before SIZE."""
    named = [a for a in tree.expressions if isinstance(a, NamedArgument) and isinstance(_value(a), RowCount)]
    values = [_value(argument) for argument in tree.expressions]
    # SIZE => 100 ROWS, SLIDE => 10 ROWS
    if len(named) == 2 and named[0].name.upper() == "SIZE":
        values = [values[0], values[2], values[1]]
    match tree.this, values:
        # TUMBLE(TABLE t .., 100 ROWS)
        case "TUMBLE", [TableArgument() as data, RowCount() as size]:
            return data, [size]
        # HOP(TABLE t .., 10 ROWS, 100 ROWS), and CUMULATE
        case "HOP" | "CUMULATE", [TableArgument() as data, RowCount() as step, RowCount() as size]:
            return data, [step, size]
    many = "a number of rows" if tree.this == "TUMBLE" else "two numbers of rows"
    raise PenstockError(
        "SQL-1102",
        f"a count window takes a table and {many}",
        span=span_of(tree),
        hint=f"write {_USAGE[tree.this]}",
        sqlstate="42883",
    )


def _literal_rows(size: RowCount, usage: str) -> int:
    literal = size.this
    if isinstance(literal, exp.Literal) and not literal.is_string and literal.name.isdigit():
        rows = int(literal.name)
        # Rows are counted in a BIGINT.
        if 0 < rows < 1 << 62:
            return rows
    raise PenstockError(
        "SQL-1705",
        "the size of a count window is a whole number of rows, at least 1",
        span=span_of(size),
        hint=f"write {usage}",
        sqlstate="22023",
    )


def _sort_key(column: exp.Ordered) -> exp.Ordered:
    # ORDER BY of a table argument has names, which OVER reads as columns
    key = column.copy()
    key.set("this", _reference(column.this))
    return _with_span(key, span_of(column))


def _reference(name: exp.Identifier) -> exp.Expr:
    return _with_span(Reference(expressions=[name.copy()]), span_of(name))


def _with_span(node: exp.Expr, span: Span | None) -> Any:
    return node if span is None else set_span(node, span.start, span.end)
