"""PIVOT as a GROUP BY with an aggregate for each value, and UNPIVOT as a UNION ALL with a branch for each
column.
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.scope import Relation
from penstock.planner.binder.select_list import call_text
from penstock.planner.parser.syntax_nodes import (
    FunctionCall,
    PivotedTable,
    Reference,
    UnpivotedTable,
    consume,
    set_span,
    span_of,
)

_TABLE = "$pivoted"
"""What the query calls the table; no statement can write this name."""


def bind_pivot(tree: PivotedTable, table: Relation, name: str | None, context: BindContext) -> Relation:
    """Return a table grouped by the columns that PIVOT does not name, with one column per value and
    aggregate.
    """
    consume(tree, "this", "expressions", "columns", "values", "alias")
    _check_columns(tree.args["columns"], table)
    read = {part.name.lower() for node in tree.expressions for part in node.find_all(exp.Identifier)}
    read |= {column.name.lower() for column in tree.args["columns"]}
    kept = [_column(field.name, tree) for field in table.fields if field.name.lower() not in read]
    items: list[exp.Expr] = list(kept)
    for group in tree.args["values"]:
        values, label = _named_group(group, context)
        condition = _all_equal(tree, values)
        for aggregate in tree.expressions:
            call, title = _unaliased(aggregate)
            title = title or call_text(call) or context.written(span_of(call))
            shown = label if len(tree.expressions) == 1 else f"{label}_{title}"
            items.append(_aliased(_filtered(call, condition, context), shown, tree))
    select = _select(items, name, tree)
    if kept:
        select.set("group", _at(exp.Group(all=True), tree))
    return context.with_table(_TABLE, table).query(select)


def bind_unpivot(tree: UnpivotedTable, table: Relation, name: str | None, context: BindContext) -> Relation:
    """Return a row for each row of a table and each group of columns in IN. Without INCLUDE NULLS a row whose
    values are all NULL is left out.
    """
    consume(tree, "this", "values", "name", "columns", "nulls", "alias")
    groups = [_named_group(group, context) for group in tree.args["columns"]]
    read = {column.name.lower() for columns, _ in groups for column in columns}
    kept = [field.name for field in table.fields if field.name.lower() not in read]
    branches: list[exp.Expr] = []
    for columns, label in groups:
        _check_columns(columns, table)
        if len(columns) != len(tree.args["values"]):
            raise PenstockError(
                "SQL-1046",
                f"UNPIVOT has {len(tree.args['values'])} value columns, and a group of {len(columns)}",
                span=span_of(columns[0]),
                sqlstate="42P10",
            )
        items = [_column(column, tree) for column in kept]
        items.append(_aliased(_at(exp.Literal.string(label), tree), tree.args["name"].name, tree))
        sources = [_column(column.name, column) for column in columns]
        items += [
            _aliased(source, value.name, tree)
            for source, value in zip(sources, tree.args["values"], strict=True)
        ]
        branch = _select(items, name, tree)
        if not tree.args.get("nulls"):
            tests = [_not_null(source) for source in sources]
            branch.set("where", reduce(lambda a, b: _at(exp.Or(this=a, expression=b), tree), tests))
        branches.append(branch)
    union = reduce(lambda a, b: _at(exp.Union(this=a, expression=b, distinct=False), tree), branches)
    return context.with_table(_TABLE, table).query(union)


def _check_columns(columns: list[exp.Expr], table: Relation) -> None:
    names = [field.name for field in table.fields]
    for column in columns:
        if column.name.lower() not in {name.lower() for name in names}:
            raise PenstockError(
                "SQL-1042",
                f'column "{column.name}" does not exist in the table',
                span=span_of(column),
                hint=did_you_mean(column.name, names, others=True),
                sqlstate="42703",
            )


def _unaliased(node: exp.Expr) -> tuple[exp.Expr, str]:
    return (node.this, node.args["alias"].name) if isinstance(node, exp.Alias) else (node, "")


def _named_group(group: exp.Expr, context: BindContext) -> tuple[list[exp.Expr], str]:
    """Return the parts of one item of IN, and its name: the alias, or the parts with ``_`` between."""
    parts, label = _unaliased(group)
    texts = [
        part.name if isinstance(part, exp.Literal | exp.Identifier) else context.written(span_of(part))
        for part in parts.expressions
    ]
    return list(parts.expressions), label or "_".join(texts)


def _all_equal(tree: PivotedTable, values: list[exp.Expr]) -> exp.Expr:
    columns = tree.args["columns"]
    if len(values) != len(columns):
        raise PenstockError(
            "SQL-1046",
            f"PIVOT goes by {len(columns)} columns, and here are {len(values)} values",
            span=span_of(values[0]),
            sqlstate="42P10",
        )
    tests = [
        _at(exp.EQ(this=_column(column.name, column), expression=value.copy()), value)
        for column, value in zip(columns, values, strict=True)
    ]
    return reduce(lambda a, b: _at(exp.And(this=a, expression=b), tree), tests)


def _filtered(tree: exp.Expr, condition: exp.Expr, context: BindContext) -> exp.Expr:
    """Return an expression of aggregates with the condition in the FILTER of each. Raises SQL-1062 for an
    expression without one.
    """
    copied = tree.copy()
    calls = [node for node in copied.find_all(FunctionCall) if context.is_aggregate(str(node.this))]
    if not calls:
        raise PenstockError(
            "SQL-1062",
            "PIVOT takes aggregates",
            span=span_of(tree),
            hint="write any_value(..)",
            sqlstate="42803",
        )
    for call in calls:
        known = call.args.get("filter")
        both = condition.copy()
        call.set("filter", both if known is None else _at(exp.And(this=known, expression=both), tree))
    return copied


def _select(items: list[exp.Expr], name: str | None, tree: exp.Expr) -> exp.Select:
    table = _at(exp.Table(this=_at(exp.Identifier(this=_TABLE, quoted=True), tree)), tree)
    if name is not None:
        shown = _at(exp.Identifier(this=name, quoted=True), tree)
        table.set("alias", _at(exp.TableAlias(this=shown, columns=[]), tree))
    select: exp.Select = set_span(
        exp.Select(expressions=[item.copy() for item in items], from_=exp.From(this=table), joins=[]),
        tree.meta["start"],
        tree.meta["end"] + 1,
    )
    return select


def _column(name: str, tree: exp.Expr) -> exp.Expr:
    return _at(Reference(expressions=[_at(exp.Identifier(this=name, quoted=True), tree)]), tree)


def _aliased(value: exp.Expr, name: str, tree: exp.Expr) -> exp.Expr:
    return _at(exp.Alias(this=value, alias=_at(exp.Identifier(this=name, quoted=True), tree)), tree)


def _not_null(value: exp.Expr) -> exp.Expr:
    is_null = _at(exp.Is(this=value.copy(), expression=_at(exp.Null(), value)), value)
    return _at(exp.Not(this=is_null), value)


def _at(node: exp.Expr, place: exp.Expr) -> exp.Expr:
    span = span_of(place)
    return node if span is None else set_span(node, span.start, span.end)
