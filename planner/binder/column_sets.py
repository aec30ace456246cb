"""COLUMNS(..) in a select list, as DuckDB has it: an item is repeated for each column that is meant."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.scope import Scope, ScopeColumn, check_readable
from penstock.planner.parser.syntax_nodes import AllColumns, ColumnAt, FunctionCall, set_span, span_of

_USAGE = "write COLUMNS(*), COLUMNS(* EXCLUDE (a)), COLUMNS('a regular expression') or COLUMNS(['a', 'b'])"


def with_column_sets(listed: Sequence[exp.Expr], scope: Scope, context: BindContext) -> list[exp.Expr]:
    """Return a select list without COLUMNS. Raises SQL-1042 where no column is meant, SQL-1103 for an
    argument that is none of the four forms.
    """
    return [item for node in listed for item in _repeated(node, scope, context)]


def _repeated(node: exp.Expr, scope: Scope, context: BindContext) -> list[exp.Expr]:
    if "columns" in context.catalog.functions:
        return [node]
    # COLUMNS of a subquery are its own
    sets = [call for call in node.walk(prune=lambda n: isinstance(n, exp.Query)) if _is_set(call)]
    if not sets:
        return [node]
    columns = _meant(sets[0], scope)
    for other in sets[1:]:
        if _meant(other, scope) != columns:
            raise PenstockError(
                "SQL-1601",
                "two different COLUMNS in one item are not supported",
                span=span_of(other),
                hint="write an item for each",
                sqlstate="0A000",
            )
    return [_with_column(node, column) for column in columns]


def _is_set(node: exp.Expr) -> bool:
    return isinstance(node, FunctionCall) and str(node.this).lower() == "columns"


def _meant(call: exp.Expr, scope: Scope) -> list[ScopeColumn]:
    seen = [column for column in scope.columns if column.field.name and not column.merged]
    names = [column.field.name for column in seen]
    argument = call.expressions[0] if len(call.expressions) == 1 else None
    if call.args.get("star"):
        found = seen
    elif isinstance(argument, AllColumns) and not (argument.args["replace"] or argument.args["rename"]):
        # * EXCLUDE (a, b), t.*
        hidden = [_named(name, seen, names) for name in argument.args["except_"]]
        found = [column for column in seen if column not in hidden and _of_table(column, argument)]
    elif isinstance(argument, exp.Literal) and argument.is_string:
        found = [column for column in seen if _pattern(argument).search(column.field.name)]
    elif isinstance(argument, FunctionCall) and all(_is_text(item) for item in argument.expressions):
        # ['a', 'b'], in the order of the table
        listed = [_named(item, seen, names) for item in argument.expressions]
        found = [column for column in seen if column in listed]
    else:
        raise PenstockError(
            "SQL-1103", "COLUMNS takes no such argument", span=span_of(call), hint=_USAGE, sqlstate="42804"
        )
    if not found:
        hint = f"the columns are {', '.join(names)}" if names else "write FROM and a table"
        raise PenstockError(
            "SQL-1042", "COLUMNS means no column here", span=span_of(call), hint=hint, sqlstate="42703"
        )
    for column in found:
        check_readable(column, span_of(call))
    return found


def _of_table(column: ScopeColumn, star: AllColumns) -> bool:
    table = star.this
    return table is None or (column.table is not None and column.table.lower() == table.name.lower())


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _pattern(node: exp.Expr) -> re.Pattern[str]:
    try:
        return re.compile(node.name, re.IGNORECASE)
    except re.error as error:
        raise PenstockError(
            "SQL-1103",
            f"'{node.name}' is no regular expression: {error}",
            span=span_of(node),
            hint=_USAGE,
            sqlstate="2201B",
        ) from None


def _named(node: exp.Expr, seen: Sequence[ScopeColumn], names: Sequence[str]) -> ScopeColumn:
    for column in seen:
        if column.field.name.lower() == node.name.lower():
            return column
    raise PenstockError(
        "SQL-1042",
        f'column "{node.name}" does not exist',
        span=span_of(node),
        hint=did_you_mean(node.name, names, others=True),
        sqlstate="42703",
    )


def _with_column(node: exp.Expr, column: ScopeColumn) -> exp.Expr:
    """Return an item with one column in place of COLUMNS, by position. Without an alias it has its name."""
    name = column.field.name
    inner, alias = (node.this, node.args["alias"]) if isinstance(node, exp.Alias) else (node, None)

    def by_position(call: exp.Expr) -> exp.Expr:
        at = _at(ColumnAt(this=name), call)
        at.meta["index"] = column.index
        return at

    value = inner.copy().transform(lambda n: by_position(n) if _is_set(n) else n)
    if alias is None:
        alias = _at(exp.Identifier(this=name, quoted=True), node)
    return _at(exp.Alias(this=value, alias=alias.copy()), node)


def _at(node: exp.Expr, place: exp.Expr) -> exp.Expr:
    span = span_of(place)
    return node if span is None else set_span(node, span.start, span.end)
