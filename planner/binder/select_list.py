"""The select list: ``*`` with EXCEPT, names of columns without an alias, and table functions such as
``explode(..)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.functions.table import is_table_function
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.nested_access import row_fields
from penstock.planner.binder.relations.table_functions import bind_table_function
from penstock.planner.binder.scope import FromClause, Scope, check_readable
from penstock.planner.expressions.nodes import Column, Expression, OuterColumn
from penstock.planner.parser.syntax_nodes import (
    AllColumns,
    ColumnAt,
    FunctionCall,
    Reference,
    TableFunctionCall,
    set_span,
    span_of,
)


def item_name(node: exp.Expr, context: BindContext) -> str:
    """Return the name of a select item without an alias: the column's name, else the expression's text."""
    if isinstance(node, Reference):
        return node.expressions[-1].name
    if isinstance(node, exp.Paren):
        return item_name(node.this, context)
    # SELECT count(*): count(*); SELECT a + 1: the text "a + 1"
    return call_text(node) or context.written(span_of(node)) or "expression"


def call_text(node: exp.Expr) -> str:
    """Return a call as a column name, such as ``count(*)`` or ``sum(x)``. Return an empty string for other
    expressions.
    """
    if not isinstance(node, FunctionCall):
        return ""
    args = ["*"] if node.args.get("star") else [_argument_text(arg) for arg in node.expressions]
    # An argument that is no simple expression: the caller uses the text of the query.
    if not all(args) or node.args.get("filter") is not None:
        return ""
    return f"{str(node.this).lower()}({'DISTINCT ' if node.args.get('distinct') else ''}{', '.join(args)})"


def _argument_text(node: exp.Expr) -> str:
    if isinstance(node, Reference):
        return node.expressions[-1].name
    if isinstance(node, exp.Literal):
        return f"'{node.name}'" if node.is_string else node.name
    return call_text(node)


def star_columns(node: AllColumns, binder: ExpressionBinder) -> list[tuple[str, Expression]]:
    """Return the columns of a star by name. Raises SQL-1044 unless its prefix is a table or a row, SQL-1042
    where no column is left.
    """
    columns = _star_columns(node, binder)
    replaced = {item.args["alias"].name.lower(): item for item in node.args.get("replace") or []}
    for name, item in replaced.items():
        # * REPLACE (x AS b) of a b that * does not have
        if name not in {known.lower() for known, _ in columns}:
            raise _not_among(item.args["alias"], [known for known, _ in columns])
    names = {item.this.name.lower(): item for item in node.args.get("rename") or []}
    for name, item in names.items():
        # * RENAME (a AS b) of an a that * does not have
        if name not in {known.lower() for known, _ in columns}:
            raise _not_among(item.this, [known for known, _ in columns])
    return [
        (
            names[name.lower()].args["alias"].name if name.lower() in names else name,
            binder.bind(replaced[name.lower()].this) if name.lower() in replaced else value,
        )
        for name, value in columns
    ]


def _star_columns(node: AllColumns, binder: ExpressionBinder) -> list[tuple[str, Expression]]:
    # t.row.*
    if node.args.get("path") is not None:
        return _shown_fields(node, binder.bind(node.args["path"]))
    scope = binder.scope
    # t.* of a table that only the outer query has
    if scope.outer is not None and not _is_known(node, scope) and _is_known(node, scope.outer):
        scope = scope.outer
    # t.* of a table of a query around this one: its columns are constant here
    if not _is_known(node, scope):
        for level, outer in reversed(list(enumerate(binder.context.enclosing))):
            if _is_known(node, outer) and outer.has_table(node.this.name):
                return [(name, _outer(value, level)) for name, value in _of_tables(node, outer)]
    return _fields_of(node, binder) if _names_row(node, scope) else _of_tables(node, scope)


def _outer(value: Expression, level: int) -> Expression:
    assert isinstance(value, Column)
    return OuterColumn(
        value.type, value.nullable, span=value.span, level=level, index=value.index, name=value.name
    )


def _is_known(node: AllColumns, scope: Scope) -> bool:
    return node.this is None or scope.has_table(node.this.name) or _names_row(node, scope)


def _names_row(node: AllColumns, scope: Scope) -> bool:
    """Return whether ``r.*`` expands the fields of a row: r is one column and no table."""
    return (
        node.this is not None and not scope.has_table(node.this.name) and len(scope.find(node.this.name)) == 1
    )


def _fields_of(node: AllColumns, binder: ExpressionBinder) -> list[tuple[str, Expression]]:
    # r.* of a ROW column r
    row = binder.bind(set_span(Reference(expressions=[node.this]), node.meta["start"], node.meta["end"] + 1))
    return _shown_fields(node, row)


def _shown_fields(node: AllColumns, row: Expression) -> list[tuple[str, Expression]]:
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
    # x.* of an unknown x
    if qualifier is not None and not scope.has_table(qualifier.name):
        hint = did_you_mean(qualifier.name, scope.tables, others=True)
        raise PenstockError(
            "SQL-1044",
            f'table "{qualifier.name}" is not in FROM',
            span=span_of(qualifier),
            hint=hint,
            sqlstate="42P01",
        )
    # * shows each USING column once; t.* shows all columns of t.
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
        # * EXCEPT (x) of an x that * does not have
        if not any(known.lower() == name.name.lower() for known in names):
            raise _not_among(name, names)
    hidden = {name.name.lower() for name in _hidden(node)}
    shown = [c for c in seen if c.field.name.lower() not in hidden]
    if not shown:
        raise PenstockError("SQL-1042", "* EXCEPT leaves no column", span=span, sqlstate="42703")
    for column in shown:
        check_readable(column, span)
    return [
        (c.field.name, Column(c.field.type, c.field.nullable, index=c.index, name=c.field.name, span=span))
        for c in shown
    ]


def _not_among(name: exp.Expr, names: Sequence[str]) -> PenstockError:
    hint = did_you_mean(name.name, names, others=True)
    return PenstockError(
        "SQL-1042",
        f'column "{name.name}" is not among those of *',
        span=span_of(name),
        hint=hint,
        sqlstate="42703",
    )


def with_generator(
    source: FromClause, tree: exp.Select, context: BindContext
) -> tuple[FromClause, Sequence[exp.Expr]]:
    """Bind a table function in the select list. Return FROM joined to its rows, and the list with its
    columns. Raises SQL-1111 for two such functions, or with GROUP BY.
    """
    # SELECT id, explode(items) FROM t is SELECT id, col FROM t, LATERAL TABLE(explode(items))
    generators = [node for node in tree.expressions if _call(node, context) is not None]
    if not generators:
        return source, tree.expressions
    if len(generators) > 1 or tree.args.get("group") is not None or tree.args.get("group_window") is not None:
        why = (
            "a SELECT list has at most one table function"
            if len(generators) > 1
            else "a table function cannot be used beside GROUP BY"
        )
        hint = "write it in FROM: CROSS JOIN UNNEST(..) AS u(x), or LATERAL VIEW explode(..) u AS x"
        raise PenstockError("SQL-1111", why, span=span_of(generators[-1]), hint=hint, sqlstate="42601")
    node = generators[0]
    call = _call(node, context)
    assert call is not None
    function = set_span(
        TableFunctionCall(this=call.this, expressions=call.expressions),
        node.meta["start"],
        node.meta["end"] + 1,
    )
    plan, function_scope = bind_table_function(source.plan, source.scope, function, context, False)
    # explode(a) AS x, posexplode(a) AS (pos, x)
    given = node.expressions if isinstance(node, exp.Aliases) else []
    given = [node.args["alias"]] if isinstance(node, exp.Alias) else given
    if given and len(given) != len(function_scope.columns):
        names = ", ".join(column.field.name for column in function_scope.columns)
        hint = (
            f"leave the alias out, the columns are {names}; or name them all: "
            f"{str(call.this).lower()}(..) AS ({names})"
        )
        raise PenstockError(
            "SQL-1046",
            f"{_names(len(given))} given for {_columns(len(function_scope.columns))}",
            span=span_of(node),
            hint=hint,
            sqlstate="42P10",
        )
    # Merged columns do not show up in *, only in place of the call.
    hidden = tuple(replace(column, merged=True) for column in function_scope.columns)
    listed: list[exp.Expr] = []
    for item in tree.expressions:
        # posexplode(a) becomes two columns in its place
        shown = [
            _named(node, column.index, column.field.name, name)
            for column, name in zip(hidden, given or [None] * len(hidden), strict=True)
        ]
        listed += shown if item is node else [item]
    return FromClause(plan, Scope(source.scope.columns + hidden, source.scope.outer)), listed


def _call(node: exp.Expr, context: BindContext) -> FunctionCall | None:
    inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
    if not isinstance(inner, FunctionCall) or str(inner.this).lower() in context.catalog.functions:
        return None
    return inner if is_table_function(str(inner.this)) else None


def _named(node: exp.Expr, index: int, name: str, given: exp.Expr | None) -> exp.Expr:
    begin, end = node.meta["start"], node.meta["end"] + 1
    # by position, because a name might also be one of FROM
    column = set_span(ColumnAt(this=name), begin, end)
    column.meta["index"] = index
    shown = set_span(exp.Identifier(this=name, quoted=False), begin, end) if given is None else given
    return set_span(exp.Alias(this=column, alias=shown), begin, end)


def _names(count: int) -> str:
    return "one name is" if count == 1 else f"{count} names are"


def _columns(count: int) -> str:
    return "one column" if count == 1 else f"{count} columns"
