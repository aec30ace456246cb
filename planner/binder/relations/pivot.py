"""PIVOT as a GROUP BY with an aggregate for each value, and UNPIVOT as a UNION ALL with a branch for each
column, behind a table and as DuckDB's statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.types import NULL, String
from penstock.planner.binder.column_sets import with_column_sets
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.binder.select_list import call_text
from penstock.planner.parser.syntax_nodes import (
    ColumnAt,
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
    consume(tree, "this", "expressions", "columns", "values", "keys", "titled", "alias")
    columns, keys = tree.args["columns"], tree.args.get("keys") or []
    _check_columns([*columns, *keys], table)
    # the columns of GROUP BY, or all that PIVOT does not read
    read = _columns_read([*columns, *(_unaliased(node)[0] for node in tree.expressions)], name)
    kept = [_column(key.name, key) for key in keys] or [
        _column(field.name, tree) for field in table.fields if field.name.lower() not in read
    ]
    items: list[exp.Expr] = list(kept)
    for group in tree.args["values"]:
        values, label = _named_group(group, context)
        condition = _all_equal(tree, values)
        for aggregate in tree.expressions:
            call, title = _unaliased(aggregate)
            # a single aggregate without an alias has the value's name alone
            alone = len(tree.expressions) == 1 and not (title and tree.args.get("titled"))
            title = title or call_text(call) or context.written(span_of(call))
            shown = label if alone else f"{label}_{title}"
            items.append(_aliased(_filtered(call, condition, context), shown, tree))
    select = _select(items, name, tree)
    if kept:
        select.set("group", _at(exp.Group(all=True), tree))
    return context.with_table(_TABLE, table).query(select)


def bind_unpivot(tree: UnpivotedTable, table: Relation, name: str | None, context: BindContext) -> Relation:
    """Return a row for each row of a table and each group of columns in IN. Without INCLUDE NULLS a row whose
    values are all NULL is left out.
    """
    consume(tree, "this", "values", "name", "columns", "nulls", "complete", "alias")
    groups = [
        _named_group(group, context)
        for item in tree.args["columns"]
        for group in _repeated(item, table, name, context)
    ]
    for columns, _ in groups:
        _check_columns(columns, table)
        if len(columns) != len(tree.args["values"]):
            raise PenstockError(
                "SQL-1046",
                f"UNPIVOT has {len(tree.args['values'])} value columns, and a group of {len(columns)}",
                span=span_of(columns[0]),
                hint="name one for each: INTO NAME n VALUE a, b of (c, d), or (a, b) FOR n IN ((c, d))",
                sqlstate="42P10",
            )
    _check_types([columns for columns, _ in groups], tree, table, name, context)
    read = _columns_read([column for columns, _ in groups for column in columns], name)
    kept = [field.name for field in table.fields if field.name.lower() not in read]
    branches: list[exp.Expr] = []
    for columns, label in groups:
        items = [_column(column, tree) for column in kept]
        items.append(_aliased(_at(exp.Literal.string(label), tree), tree.args["name"].name, tree))
        sources = [_value(column) for column in columns]
        items += [
            _aliased(source, value.name, tree)
            for source, value in zip(sources, tree.args["values"], strict=True)
        ]
        branch = _select(items, name, tree)
        if not tree.args.get("nulls"):
            tests = [_not_null(source) for source in sources]
            both = exp.And if tree.args.get("complete") else exp.Or
            branch.set("where", reduce(lambda a, b: _at(both(this=a, expression=b), tree), tests))
        branches.append(branch)
    union = reduce(lambda a, b: _at(exp.Union(this=a, expression=b, distinct=False), tree), branches)
    return context.with_table(_TABLE, table).query(union)


def _repeated(item: exp.Expr, table: Relation, name: str | None, context: BindContext) -> Sequence[exp.Expr]:
    """Return the groups of an item of UNPIVOT: COLUMNS(..) is one for each column that is meant."""
    group, _ = _unaliased(item)
    if len(group.expressions) != 1:
        return [item]
    found = with_column_sets(group.expressions, Scope.of(table, name), context)
    if found[0] is group.expressions[0]:
        return [item]
    return [_at(exp.Tuple(expressions=[one]), item) for one in found]


def _check_types(
    groups: Sequence[Sequence[exp.Expr]],
    tree: UnpivotedTable,
    table: Relation,
    name: str | None,
    context: BindContext,
) -> None:
    """Refuse texts and other values in one column: UNION ALL would read each text as such a value."""
    for values in zip(*groups, strict=True):
        items = [_aliased(_value(column), "x", tree) for column in values]
        fields = context.with_table(_TABLE, table).query(_select(items, name, tree)).fields
        types = dict.fromkeys(field.type for field in fields if field.type != NULL)
        if len({isinstance(kind, String) for kind in types}) == 2:
            listed = ", ".join(map(str, types))
            raise PenstockError(
                "SQL-1084",
                f"the columns of UNPIVOT have no common type: {listed}",
                span=span_of(tree),
                hint="CAST them below: UNPIVOT (SELECT CAST(a AS STRING) AS a, b FROM t) ON a, b",
                sqlstate="42804",
            )


def _columns_read(nodes: Iterable[exp.Expr], table: str | None) -> set[str]:
    """Return the names of columns that expressions read, in lower case."""
    read = set()
    for node in nodes:
        for part in node.find_all(exp.Identifier, Reference, ColumnAt):
            if isinstance(part, Reference):
                # t.a reads a, r.a reads the row r
                path = [name.name.lower() for name in part.expressions]
                read.add(path[1] if path[0] == (table or "").lower() and len(path) > 1 else path[0])
            # the other names of an expression are no columns
            elif part is node or isinstance(part, ColumnAt):
                read.add(str(part.this).lower())
    return read


def _check_columns(columns: list[exp.Expr], table: Relation) -> None:
    names = [field.name for field in table.fields]
    for column in columns:
        # what an expression of ON reads is resolved where it is bound
        if isinstance(column, exp.Identifier) and column.name.lower() not in {name.lower() for name in names}:
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
    """Return the parts of one item of IN, and its name: the alias, or those of the parts joined by ``_``."""
    listed, label = _unaliased(group)
    parts = [_unaliased(part) for part in listed.expressions]
    return [part for part, _ in parts], label or "_".join(own or _text(part, context) for part, own in parts)


def _text(part: exp.Expr, context: BindContext) -> str:
    if isinstance(part, exp.Literal | exp.Identifier):
        return part.name
    # UNPIVOT .. ON CAST(a AS STRING): the name of its column
    references = list(part.find_all(Reference))
    if len(references) == 1:
        return str(references[0].expressions[-1].name)
    return context.written(span_of(part))


def _all_equal(tree: PivotedTable, values: list[exp.Expr]) -> exp.Expr:
    columns = tree.args["columns"]
    if len(values) != len(columns):
        raise PenstockError(
            "SQL-1046",
            f"PIVOT goes by {len(columns)} columns, and here are {len(values)} values",
            span=span_of(values[0]),
            sqlstate="42P10",
        )
    tests = [_equal(_value(column), value) for column, value in zip(columns, values, strict=True)]
    return reduce(lambda a, b: _at(exp.And(this=a, expression=b), tree), tests)


def _equal(column: exp.Expr, value: exp.Expr) -> exp.Expr:
    # IN (NULL): the rows without a value
    if isinstance(value, exp.Null):
        return _at(exp.Is(this=column, expression=value.copy()), value)
    return _at(exp.EQ(this=column, expression=value.copy()), value)


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


def _value(column: exp.Expr) -> exp.Expr:
    return _column(column.name, column) if isinstance(column, exp.Identifier) else column.copy()


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
