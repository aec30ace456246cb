"""What ``*``, ``t.*`` and ``r.*`` stand for in a list: columns in reach, of a table, fields of a row; in a
subquery of the rows around it too.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.nested_access import row_fields
from penstock.planner.binder.scope import Scope, check_readable
from penstock.planner.expressions.nodes import Column, Expression
from penstock.planner.parser.syntax_nodes import AllColumns, Reference, place, span_of


def star_columns(node: AllColumns, binder: ExpressionBinder) -> list[tuple[str, Expression]]:
    """Return the columns of a star by name; raise SQL-1044 for what is neither a table nor a row, and
    SQL-1042 where no column is left.
    """
    scope = binder.scope
    if scope.outer is not None and not _is_known(node, scope) and _is_known(node, scope.outer):
        scope = scope.outer
    return _fields_of(node, binder) if _names_row(node, scope) else _of_tables(node, scope)


def _is_known(node: AllColumns, scope: Scope) -> bool:
    return node.this is None or scope.has_table(node.this.name) or _names_row(node, scope)


def _names_row(node: AllColumns, scope: Scope) -> bool:
    """Whether ``r.*`` stands for the fields of a row: r is no table but one column."""
    return (
        node.this is not None and not scope.has_table(node.this.name) and len(scope.find(node.this.name)) == 1
    )


def _fields_of(node: AllColumns, binder: ExpressionBinder) -> list[tuple[str, Expression]]:
    row = binder.bind(place(Reference(expressions=[node.this]), node.meta["start"], node.meta["end"] + 1))
    hidden = {name.name.lower() for name in _hidden(node)}
    return [
        (name, value)
        for name, value in row_fields(row, node.this, _hidden(node))
        if name.lower() not in hidden
    ]


def _hidden(node: AllColumns) -> Sequence[exp.Expr]:
    return node.args.get("except_") or []


def _of_tables(node: AllColumns, scope: Scope) -> list[tuple[str, Expression]]:
    qualifier, span = node.this, span_of(node)
    if qualifier is not None and not scope.has_table(qualifier.name):
        hint = did_you_mean(qualifier.name, scope.tables, others=True)
        raise PenstockError(
            "SQL-1044",
            f'table "{qualifier.name}" is not in FROM',
            span=span_of(qualifier),
            hint=hint,
            sqlstate="42P01",
        )
    table = None if qualifier is None else qualifier.name.lower()
    seen = [
        c
        for c in scope.columns
        if c.field.name
        and (not c.merged if table is None else c.table is not None and c.table.lower() == table)
    ]
    if not seen:
        raise PenstockError(
            "SQL-1042", "* has no columns here", span=span, hint="write FROM and a table", sqlstate="42703"
        )
    names = [c.field.name for c in seen]
    for name in _hidden(node):
        if not any(known.lower() == name.name.lower() for known in names):
            hint = did_you_mean(name.name, names, others=True)
            raise PenstockError(
                "SQL-1042",
                f'column "{name.name}" is not among those of *',
                span=span_of(name),
                hint=hint,
                sqlstate="42703",
            )
    hidden = {name.name.lower() for name in _hidden(node)}
    kept = [c for c in seen if c.field.name.lower() not in hidden]
    if not kept:
        raise PenstockError("SQL-1042", "* EXCEPT leaves no column", span=span, sqlstate="42703")
    for column in kept:
        check_readable(column, span)
    return [
        (c.field.name, Column(c.field.type, c.field.nullable, index=c.index, name=c.field.name, span=span))
        for c in kept
    ]
