"""A correlated subquery: its own rows, the conditions it shares with the outer query, and its select list."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field, replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.functions.table import is_table_function
from penstock.catalog.types import Row
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.row_values import row_parts
from penstock.planner.binder.group_by import has_aggregate
from penstock.planner.binder.relations.join_conditions import Roles, key_pair, time_roles
from penstock.planner.binder.relations.joins import bind_from, push_time_conditions
from penstock.planner.binder.relations.tables import one_row
from penstock.planner.binder.scope import FromClause, Relation, Scope
from penstock.planner.binder.select_hints import BlockHints
from penstock.planner.binder.select_list import star_columns
from penstock.planner.binder.subqueries.decorrelation import outer_columns
from penstock.planner.expressions.nodes import Column, Direction, Expression, conjunction, conjuncts
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter
from penstock.planner.parser.syntax_nodes import AllColumns, FunctionCall, Reference, span_of

Filtering = Callable[[FromClause, Sequence[exp.Expr], BindContext], FromClause]
"""Filters a FROM clause by conditions that may contain subqueries."""


@dataclass(frozen=True)
class InnerRows:
    """The rows of a subquery, filtered by its own conditions. ``shared`` conditions, ``items`` and ``scope``
    are over the outer rows' ``width`` columns ++ the own ones.

    ``times``: the time roles of the own columns. ``level``: that of the outer query, whose columns the plan
    may read too.
    """

    plan: LogicalPlan
    width: int
    scope: Scope
    level: int
    shared: tuple[Expression, ...] = ()
    items: tuple[Expression, ...] = ()
    times: Roles = field(default_factory=dict)

    def needs_domain(self, reads: Collection[int] = ()) -> bool:
        """Return whether the rows must be joined to the distinct outer values: something besides equalities
        with own columns reads outer columns. ``reads`` are outer columns that other expressions read.
        """
        keyed = all(key_pair(part, self.width) is not None for part in self.shared)
        return bool(reads) or not keyed or bool(outer_columns(self.plan, self.level))

    def own(self, expression: Expression) -> Expression:
        """Return an expression that reads own columns only, shifted to the own plan."""
        return expression.remap({i: i - self.width for i in expression.columns()})

    def pairs(
        self, values: Sequence[Expression], tree: exp.Expr, binder: ExpressionBinder
    ) -> list[tuple[Expression, Expression]]:
        """Return each tested value with the listed one, both cast to one type. Raises SQL-1085 for lists of
        unequal length.
        """
        # ROW(a, b) IN (SELECT x, y ..)
        if len(values) == 1 < len(self.items) and isinstance(values[0].type, Row):
            values = row_parts(values[0])
        if len(values) != len(self.items):
            many = f"{len(values)} value{'s' if len(values) != 1 else ''}"
            message = f"IN compares {many} with {len(self.items)} column{'s' if len(self.items) != 1 else ''}"
            hint = f"list {many} in the subquery"
            raise PenstockError(
                "SQL-1085", message, span=span_of(tree.args["query"]), hint=hint, sqlstate="42601"
            )
        pairs = []
        for value, item in zip(values, self.items, strict=True):
            # = casts both sides to a common type; the pair takes over the casts
            first, second = binder.call("equal", [value, item], value.span).children
            pairs.append((first, second))
        return pairs


def tested_values(tree: exp.Expr) -> list[exp.Expr]:
    """Return the values left of IN, one tree each."""
    return list(tree.this.expressions) if isinstance(tree.this, exp.Tuple) else [tree.this]


def is_plain(tree: exp.Expr) -> bool:
    """Return whether a subquery is only SELECT, FROM and WHERE: no groups, order, limit or WITH, and no list
    that subqueries, OVER or table functions compute.
    """
    between = ("group", "group_window", "having", "qualify", "limit", "offset", "with_", "order")
    if not isinstance(tree, exp.Select) or any(tree.args.get(key) for key in between):
        return False
    return not any(_is_computed_above(node) for item in tree.expressions for node in item.walk())


def _is_computed_above(node: exp.Expr) -> bool:
    if isinstance(node, FunctionCall):
        return node.args.get("over") is not None or is_table_function(str(node.this))
    return isinstance(node, exp.Subquery)


ORDERED = ("order", "limit", "offset")


def unordered(query: exp.Expr) -> exp.Expr:
    """Return a query without ORDER BY, LIMIT and OFFSET, which may be bound for each outer row afterwards."""
    bare = query.copy()
    for key in ORDERED:
        bare.set(key, None)
    return bare


def with_order_listed(query: exp.Expr) -> tuple[exp.Expr, list[Direction]]:
    """Return a query with its sort keys behind its list, and their directions. Without LIMIT its ORDER BY is
    left out.
    """
    order = query.args.get("order")
    if order is None or not isinstance(query, exp.Select):
        return query, []
    query = query.copy()
    keys, listed = [], list(query.expressions)
    for node in query.args["order"].expressions:
        key = node.this
        # ORDER BY 1, and ORDER BY a name of the list
        named = [item for item in listed if item.alias and item.alias.lower() == key.name.lower()]
        if isinstance(key, exp.Literal) and not key.is_string and key.name == "1":
            named = listed[:1]
        if isinstance(key, Reference) and len(key.expressions) > 1:
            named = []
        source = named[0] if named else key
        keys.append((source.this if isinstance(source, exp.Alias) else source).copy())
    query.set("expressions", [*listed, *keys])
    directions = [
        Direction(bool(node.args.get("desc")), bool(node.args.get("nulls_first")))
        for node in query.args["order"].expressions
    ]
    return (query if query.args.get("limit") or query.args.get("offset") else unordered(query)), directions


def aggregates(tree: exp.Expr, context: BindContext) -> bool:
    """Return whether the list of a SELECT aggregates."""
    return isinstance(tree, exp.Select) and any(
        has_aggregate(item, context.is_aggregate) for item in tree.expressions
    )


def inner_rows(
    subquery: exp.Expr,
    outer: Scope,
    width: int,
    context: BindContext,
    filtering: Filtering,
    *,
    list_matters: bool = True,
) -> InnerRows:
    """Bind a subquery of an outer query with ``width`` columns. Without ``list_matters`` the caller only asks
    whether it has rows.
    """
    tree = subquery.this
    # GROUP BY, UNION and so on: the query is bound whole; its plan may read outer columns anywhere.
    if not is_plain(tree) or aggregates(tree, context):
        return whole_rows(context.inside(outer).query(tree), outer, width, context)
    rows = bound_rows(tree, outer, width, context, filtering)
    # EXISTS (SELECT * ..): the list is not read; EXISTS (SELECT nonsense ..) still has its error
    if list_matters or not all(isinstance(item, AllColumns) for item in tree.expressions):
        return replace(rows, items=tuple(bound_list(rows.scope, tree, context)))
    return rows


def whole_rows(relation: Relation, outer: Scope, width: int, context: BindContext) -> InnerRows:
    """Return the rows of a subquery that was bound whole, inside of the outer query."""
    columns = tuple(
        Column(f.type, f.nullable, index=width + i, name=f.name) for i, f in enumerate(relation.fields)
    )
    times = time_roles(Scope.of(relation, None))
    return InnerRows(relation.plan, width, Scope((), outer), context.level, (), columns, times)


def bound_rows(
    tree: exp.Expr, outer: Scope, width: int, context: BindContext, filtering: Filtering
) -> InnerRows:
    """Bind FROM and WHERE of a plain subquery. Conditions on its own columns filter its rows, the others are
    shared.
    """
    level, context = context.level, context.inside(outer)
    from_ = tree.args.get("from_")
    hints = BlockHints.of(tree)
    source = (
        FromClause(one_row(), Scope())
        if from_ is None
        else bind_from(from_.this, tree.args.get("joins") or [], context, hints)
    )
    # own names first, then those of the outer query; own columns are behind the outer ones by position
    seen = Scope(Scope().beside(source.scope, width).columns, outer)
    binder = ExpressionBinder(seen, context, "WHERE")
    where = tree.args.get("where")
    own, shared, nested = [], [], []
    # Each AND-ed part is an own filter, a correlating condition, or has a subquery of its own.
    for part in conjunct_trees(where) if where is not None else ():
        if has_subquery(part):
            nested.append(part)
            continue
        # a BETWEEN is two conditions: one may correlate and the other filter
        for condition in conjuncts(binder.condition(part)):
            # It reads an outer column.
            if any(i < width for i in condition.columns()):
                shared.append(condition)
            else:
                own.append(condition.remap({i: i - width for i in condition.columns()}))
    # The subquery's own joins may become interval joins by its WHERE.
    source, remaining = push_time_conditions(source, tuple(own))
    rows = FromClause(Filter(source.plan, conjunction(remaining)) if remaining else source.plan, source.scope)
    if nested:
        rows = filtering(rows, nested, context)
    plan = hints.subtasks.on_select(rows.plan)
    hints.check_used()
    for note in hints.notes:
        context.note(note)
    return InnerRows(plan, width, seen, level, tuple(shared), times=time_roles(rows.scope))


def bound_list(scope: Scope, tree: exp.Expr, context: BindContext) -> list[Expression]:
    """Return the bound select list of a plain subquery, stars expanded."""
    binder = ExpressionBinder(scope, context, "SELECT")
    values: list[Expression] = []
    for item in tree.expressions:
        if isinstance(item, AllColumns):
            values += [value for _, value in star_columns(item, binder)]
        else:
            values.append(binder.bind(item.this if isinstance(item, exp.Alias) else item))
    return values


def conjunct_trees(tree: exp.Expr) -> list[exp.Expr]:
    """Return the AND-ed parts of a condition as trees, left to right."""
    # WHERE (a AND b)
    inside = tree
    while isinstance(inside, exp.Paren):
        inside = inside.this
    if isinstance(inside, exp.And):
        return conjunct_trees(inside.this) + conjunct_trees(inside.args["expression"])
    return [tree]


def has_subquery(tree: exp.Expr) -> bool:
    """Return whether an expression's tree has a subquery."""
    return any(isinstance(node, exp.Subquery) for node in tree.walk())
