"""ORDER BY .. LIMIT n in a query that reads the rows around it: the first rows for each of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.expressions.nested_access import orderable
from penstock.planner.binder.relations.equi_keys import key_pair, with_keys
from penstock.planner.binder.scope import Scope
from penstock.planner.binder.subqueries.correlation import InnerRows
from penstock.planner.binder.subqueries.dependent_join import by_outer_values
from penstock.planner.expressions.nodes import Column, Expression, Literal, SortKey
from penstock.planner.logical.over import PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.sort import TopN
from penstock.planner.parser.syntax_nodes import span_of


def first_rows(
    rows: InnerRows, query: exp.Expr, context: BindContext, listed: Sequence[Expression] = ()
) -> InnerRows:
    """Return the first rows by the query's order for each value of what the rows share with those around
    them; ``listed`` is read of both.

    Raises SQL-1601 for ORDER BY or LIMIT alone, and for OFFSET.
    """
    span = span_of(query)
    limit = query.args.get("limit")
    if limit is None or query.args.get("offset") is not None or query.args.get("order") is None:
        message = "in a query that reads the rows around it ORDER BY and LIMIT stand together, without OFFSET"
        raise PenstockError(
            "SQL-1601", message, span=span, hint="write ORDER BY .. LIMIT n", sqlstate="0A000"
        )
    bound = ExpressionBinder(Scope(), context, "LIMIT").bind(limit)
    if not isinstance(bound, Literal) or not isinstance(bound.value, int) or bound.value < 1:
        raise PenstockError(
            "SQL-1012", "LIMIT takes a whole number above zero here", span=span_of(limit), sqlstate="2201W"
        )
    binder = ExpressionBinder(rows.scope, context, "ORDER BY")
    order = [(binder.bind(node.this), node) for node in query.args["order"].expressions]
    reads = {
        i
        for expression in (*(key for key, _ in order), *listed)
        for i in expression.columns()
        if i < rows.width
    }
    if reads or any(key_pair(part, rows.width) is None for part in rows.shared):
        rows = by_outer_values(rows, reads, span)
    keys = tuple(_sort_key(rows.own(expression), node) for expression, node in order)
    pairs = [key_pair(part, rows.width) for part in rows.shared]
    width = len(rows.plan.schema)
    wide, partition = with_keys(rows.plan, [pair[1] for pair in pairs if pair is not None])
    top: LogicalPlan = (
        PartitionTop(wide, partition, keys, "row_number", bound.value)
        if partition
        else TopN(wide, keys, bound.value)
    )
    if len(wide.schema) > width:
        fields = top.schema.fields[:width]
        top = Project(
            top,
            tuple(Column(f.type, f.nullable, index=i, name=f.name) for i, f in enumerate(fields)),
            tuple(f.name for f in fields),
        )
    return replace(rows, plan=top)


def _sort_key(expression: Expression, node: exp.Expr) -> SortKey:
    return SortKey(
        orderable(expression, node.this), bool(node.args.get("desc")), bool(node.args.get("nulls_first"))
    )
