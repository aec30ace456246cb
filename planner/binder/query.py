"""Queries: WITH, ORDER BY and LIMIT, and each kind of query as a relation.

It also refuses orders that a stream cannot have, while names and spans are still known.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import without_event_time
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.emit_clause import emitted
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.nested_access import orderable
from penstock.planner.binder.history_clause import refuse_history
from penstock.planner.binder.late_rows_clause import refuse_late_rows
from penstock.planner.binder.relations.recursive_tables import bind_recursive_table, reads_itself
from penstock.planner.binder.relations.tables import bind_values, renamed
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.binder.select import bind_select, position_of, sort_keys
from penstock.planner.binder.set_operations import bind_set_operation
from penstock.planner.binder.size_limits import check_size
from penstock.planner.binder.windows.group_windows import with_group_window
from penstock.planner.expressions.nodes import Column, Expression, Literal, Parameter, SortKey
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.scan import bounded, endless
from penstock.planner.logical.sort import Limit, Sort, TemporalSort, TopN, is_time_order
from penstock.planner.parser.syntax_nodes import AllColumns, consume, moved, span_of


def refuse_endless_order(plan: LogicalPlan, tree: exp.Expr) -> None:
    """Refuse an ORDER BY over an endless stream whose rows do not go to a client as they are: SQL-1703."""
    if endless(plan):
        hint = (
            "order by a time attribute first, ascending, or add LIMIT n to keep the first n rows up to date"
        )
        raise PenstockError(
            "SQL-1703",
            "an endless stream has no last row, so it cannot be ordered",
            span=span_of(tree.args.get("order")),
            hint=hint,
            sqlstate="0A000",
        )


def bind_query(tree: exp.Expr, context: BindContext, *, nested: bool = True) -> Relation:
    """Return a query as a relation. ``nested``: it is not the statement's own query, so its ORDER BY needs a
    LIMIT.
    """
    # Whoever binds the statement's own query checks these clauses itself.
    if nested:
        refuse_late_rows(tree)
        refuse_history(tree)
    # WITH, then the rows with ORDER BY and LIMIT, then EMIT on top
    context = _with_tables(tree.args.get("with_"), context)
    relation = emitted(_rows_of(tree, context, nested), tree.args.get("emit"), context)
    # checked for each nested query: the outer ones would only grow it further
    check_size(relation, context.settings, span_of(tree))
    return relation


def _rows_of(tree: exp.Expr, context: BindContext, nested: bool) -> Relation:
    if isinstance(tree, exp.Select):
        return _select(tree, context, nested)
    consume(
        tree,
        "this",
        "expression",
        "expressions",
        "distinct",
        "order",
        "limit",
        "offset",
        "with_",
        "emit",
        "late_rows",
        "history",
    )
    if isinstance(tree, exp.SetOperation):
        # UNION, INTERSECT, EXCEPT
        relation = bind_set_operation(tree, context)
    elif isinstance(tree, exp.Values):
        # VALUES (..), (..)
        relation = bind_values(tree, context)
    else:
        # A query in parentheses
        relation = bind_query(tree.this, context, nested=nested and not tree.args.get("order"))
    order = tree.args.get("order")
    if order is not None and _orders_all(order):
        order = _positions(order, len(relation.fields))
    keys = _output_keys(order, relation, context) if order is not None else []
    return _ordered(relation, keys, tree, context, nested)


def _with_tables(tree: exp.Expr | None, context: BindContext) -> BindContext:
    if tree is None:
        return context
    seen: set[str] = set()
    for table in tree.expressions:
        alias = table.args["alias"]
        name = alias.this.name
        # WITH a AS (..), a AS (..)
        if name.lower() in seen:
            raise PenstockError(
                "SQL-1045",
                f'the name "{name}" occurs twice in WITH',
                span=span_of(alias.this),
                sqlstate="42712",
            )
        seen.add(name.lower())
        # WITH a AS (..), b AS (.. FROM a): each name sees the ones before it.
        # bound once; each reference shares the plan
        columns = alias.args.get("columns")
        if tree.args.get("recursive") and reads_itself(table):
            relation = bind_recursive_table(table, context)
        else:
            relation = context.query(table.this)
            relation = renamed(relation, columns, span_of(alias.this)) if columns else relation
        context = context.with_table(name, relation)
    return context


def _select(tree: exp.Select, context: BindContext, nested: bool) -> Relation:
    tree = with_group_window(tree)
    for note in tree.meta.get("notes", ()):
        context.note(note)
    order = tree.args.get("order")
    # ORDER BY is bound with the SELECT, because it may read columns that the list does not have
    by = [] if order is None or _orders_all(order) else [node.this for node in order.expressions]
    bound = bind_select(tree, context, by)
    if order is None:
        return _ordered(bound.relation(), [], tree, context, nested)
    if _orders_all(order):
        order = _positions(order, len(bound.items))
    keys, extra = sort_keys(order, bound)
    relation = _ordered(bound.relation(extra), keys, tree, context, nested)
    if not extra:
        return relation
    # ORDER BY read columns outside the list: a projection above the sort drops them.
    fields = relation.fields[: len(bound.items)]
    columns = tuple(Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields))
    return Relation(Project(relation.plan, columns, bound.names), fields)


# ORDER BY and LIMIT


def _orders_all(order: exp.Expr) -> bool:
    """Return whether it is ORDER BY ALL."""
    return isinstance(order.expressions[0].this, AllColumns)


def _positions(order: exp.Expr, count: int) -> exp.Expr:
    """Return ORDER BY ALL as ORDER BY 1, 2, .., with its direction."""
    every, keys = order.expressions[0], []
    for position in range(1, count + 1):
        key = every.copy()
        key.set("this", moved(exp.Literal.number(position), span_of(every.this)))
        keys.append(key)
    return moved(exp.Order(expressions=keys), span_of(order))


def _output_keys(order: exp.Expr, relation: Relation, context: BindContext) -> list[SortKey]:
    """Return the sort keys over the output of UNION or VALUES: names, positions or expressions of its
    columns.
    """
    # SELECT .. UNION SELECT .. ORDER BY x: x is a column of the result
    binder = ExpressionBinder(Scope.of(relation, None), context, "ORDER BY")
    keys = []
    for node in order.expressions:
        target = node.this
        if isinstance(target, exp.Literal) and not target.is_string and target.name.isdigit():
            # ORDER BY 2 is the second output column.
            index = position_of(target, len(relation.fields), "ORDER BY")
            field = relation.fields[index]
            expression: Expression = Column(
                field.type, field.nullable, index=index, name=field.name, span=span_of(target)
            )
        else:
            expression = binder.bind(target)
        keys.append(
            SortKey(
                orderable(expression, target), bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
            )
        )
    return keys


def _ordered(
    relation: Relation, keys: Sequence[SortKey], tree: exp.Expr, context: BindContext, nested: bool
) -> Relation:
    """Return a relation under its ORDER BY, LIMIT and OFFSET. Top-N over a stream loses its time attributes,
    because it updates old rows late.
    """
    plan = relation.plan
    # constants: LIMIT 10 OFFSET 5
    limit = _rows(tree.args.get("limit"), context, "LIMIT")
    offset = _rows(tree.args.get("offset"), context, "OFFSET") or 0
    # rows of a subquery have no order; with OFFSET the order says which rows they are
    if keys and nested and limit is None and not offset:
        context.note("ORDER BY in a subquery or view orders nothing without LIMIT; order the outer query")
        return relation
    if keys:
        timely = is_time_order(keys, relation.fields)
        # the client of a statement's own query sorts the rows so far; what skips some needs the last one
        if limit is None and not timely and (nested or offset):
            refuse_endless_order(plan, tree)
        # ORDER BY a time attribute over a stream: each row is emitted once the watermark has passed it.
        if timely and limit is None and endless(plan):
            return Relation(_cut(TemporalSort(plan, tuple(keys)), limit, offset), relation.fields)
    # ORDER BY .. LIMIT n is one Top-N node.
    if keys and limit is not None:
        # a row leaves the Top-N when a better one comes, which may be long after its own time
        fields = relation.fields if bounded(plan) else without_event_time(relation.fields)
        return Relation(TopN(plan, tuple(keys), limit, offset), fields)
    if keys:
        plan = Sort(plan, tuple(keys))
    return Relation(_cut(plan, limit, offset), relation.fields)


def _cut(plan: LogicalPlan, limit: int | None, offset: int) -> LogicalPlan:
    return plan if limit is None and not offset else Limit(plan, limit, offset)


def _rows(tree: exp.Expr | None, context: BindContext, word: str) -> int | None:
    if tree is None:
        return None
    bound = ExpressionBinder(Scope(), context, word).bind(tree)
    # prepared: such a plan has a schema and is bound again with the value
    if isinstance(bound, Parameter):
        return 0
    value = bound.value if isinstance(bound, Literal) else None
    # bool is an int in Python; the engine counts rows in 64 bits.
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
        raise PenstockError(
            "SQL-1012",
            f"{word} takes a whole number that is not below zero",
            span=span_of(tree),
            sqlstate="2201W",
        )
    return value
