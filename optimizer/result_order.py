"""The columns that order a result and are not selected: the client sorts by them and shows the others."""

from __future__ import annotations

from dataclasses import replace

from penstock.planner.expressions.nodes import Column, SortKey
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Sort, TopN


def with_order_columns(plan: LogicalPlan) -> LogicalPlan:
    """Return a streaming plan whose client can sort its rows. ``SELECT a FROM t ORDER BY b`` is a projection
    above a Sort or a TopN, which drops b. Here b is sent behind a, and the Sink says how many such columns
    there are. Any other plan is returned as it is.
    """
    match plan:
        case Sink(table=None, input=Project(input=Sort() | TopN() as ordered) as shown):
            expressions, names = list(shown.expressions), list(shown.names)
            keys: list[SortKey] = []
            for key in ordered.keys:
                if key.expression not in expressions:
                    names.append(f"$order_{len(expressions) - len(shown.expressions)}")
                    expressions.append(key.expression)
                at = expressions.index(key.expression)
                kind, nullable = key.expression.type, key.expression.nullable
                keys.append(replace(key, expression=Column(kind, nullable, index=at, name=names[at])))
            # the client does what a Sort does; a TopN finds its rows as before
            below = ordered.input if isinstance(ordered, Sort) else ordered
            rows = Project(below, tuple(expressions), tuple(names))
            added = len(expressions) - len(shown.expressions)
            return replace(plan, input=Sort(rows, tuple(keys)), order_columns=added)
    return plan
