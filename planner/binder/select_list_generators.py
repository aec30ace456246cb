"""Spark's ``SELECT k, explode(a) AS x``: the function goes to FROM, its columns take its place in the
list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.functions.table import is_table_function
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.relations.from_clause import FromClause
from penstock.planner.binder.relations.table_functions import bind_table_function
from penstock.planner.binder.scope import Scope
from penstock.planner.parser.syntax_nodes import ColumnAt, FunctionCall, TableFunctionCall, place, span_of


def with_generator(
    source: FromClause, tree: exp.Select, context: BindContext
) -> tuple[FromClause, Sequence[exp.Expr]]:
    """Return the rows with those of the list's table function for each, and the list with its columns;
    raise SQL-1111 for two, or beside groups.
    """
    found = [node for node in tree.expressions if _call(node, context) is not None]
    if not found:
        return source, tree.expressions
    if len(found) > 1 or tree.args.get("group") is not None or tree.args.get("group_window") is not None:
        why = (
            "a list has one function that gives rows"
            if len(found) > 1
            else "a function that gives rows does not stand beside GROUP BY"
        )
        hint = "write it in FROM: CROSS JOIN UNNEST(..) AS u(x), or LATERAL VIEW explode(..) u AS x"
        raise PenstockError("SQL-1111", why, span=span_of(found[-1]), hint=hint, sqlstate="42601")
    node = found[0]
    call = _call(node, context)
    assert call is not None
    function = place(
        TableFunctionCall(this=call.this, expressions=call.expressions),
        node.meta["start"],
        node.meta["end"] + 1,
    )
    plan, given = bind_table_function(source.plan, source.scope, function, context, False)
    if isinstance(node, exp.Alias) and len(given.columns) > 1:
        names = ", ".join(column.field.name for column in given.columns)
        hint = (
            f"leave the alias out, the columns are {names}; or name them with LATERAL VIEW "
            f"{str(call.this).lower()}(..) u AS {names}"
        )
        raise PenstockError(
            "SQL-1046",
            f"one name is given for {len(given.columns)} columns",
            span=span_of(node),
            hint=hint,
            sqlstate="42P10",
        )
    hidden = tuple(replace(column, merged=True) for column in given.columns)
    listed: list[exp.Expr] = []
    for item in tree.expressions:
        listed += (
            [_named(node, column.index, column.field.name) for column in hidden] if item is node else [item]
        )
    return FromClause(plan, Scope(source.scope.columns + hidden, source.scope.outer)), listed


def _call(node: exp.Expr, context: BindContext) -> FunctionCall | None:
    inner = node.this if isinstance(node, exp.Alias) else node
    if not isinstance(inner, FunctionCall) or str(inner.this).lower() in context.catalog.functions:
        return None
    return inner if is_table_function(str(inner.this)) else None


def _named(node: exp.Expr, index: int, name: str) -> exp.Expr:
    begin, end = node.meta["start"], node.meta["end"] + 1
    column = place(ColumnAt(this=name), begin, end)
    column.meta["index"] = index
    shown = (
        node.args["alias"]
        if isinstance(node, exp.Alias)
        else place(exp.Identifier(this=name, quoted=False), begin, end)
    )
    return place(exp.Alias(this=column, alias=shown), begin, end)
