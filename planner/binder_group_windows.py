"""The window a GROUP BY names, put over the rows: each row once per window, the window's columns at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field
from penstock.planner.bind_context import BindContext
from penstock.planner.binder_expressions import ExpressionBinder
from penstock.planner.binder_windows import WindowArguments, in_its_time, no_time, windowing
from penstock.planner.expressions import Column
from penstock.planner.from_clause import FromClause
from penstock.planner.group_windows import TABLE, window_arguments
from penstock.planner.logical import WindowTable
from penstock.planner.scope import Relation, Scope, ScopeColumn
from penstock.planner.syntax import GroupingSets, Reference, span_of


def windowed(source: FromClause, tree: exp.Select, fields: Sequence[Field], context: BindContext) -> FromClause:
    """Return the rows of a SELECT in the windows its GROUP BY names."""
    call = tree.args["group_window"]
    kind, values = window_arguments(call)
    binder = ExpressionBinder(source.scope, context, kind)
    time = binder.bind(values["TIMECOL"])
    if not isinstance(time, Column):
        hint = f"add a computed column with a WATERMARK to the table, or write {kind}(ts, ..) with its time attribute"
        raise PenstockError("SQL-1701", f"{kind} takes a time attribute, not an expression", span=time.span, hint=hint, sqlstate="42804")
    rows = Relation(source.plan, tuple(fields))
    if not fields[time.index].is_time:
        raise no_time(fields[time.index], rows, time.span)
    keys = _partition(tree, binder) if kind == "SESSION" else ()
    window = windowing(WindowArguments(kind, values, span_of(call)), time.index, keys, context)
    timed = in_its_time(rows, time.index)
    plan = WindowTable(timed.plan, window)
    shown = source.scope if timed is rows and kind != "SESSION" else source.scope.without_roles()
    return FromClause(plan, Scope(shown.columns + _columns(plan)))


def _columns(plan: WindowTable) -> tuple[ScopeColumn, ...]:
    first = len(plan.input.schema)
    own = tuple(ScopeColumn(first + i, plan.schema[first + i], TABLE, merged=True) for i in range(3))
    spark = (replace(own[0], field=own[0].field.renamed("start")), replace(own[1], field=own[1].field.renamed("end")))
    return spark + own


def _partition(tree: exp.Select, binder: ExpressionBinder) -> tuple[int, ...]:
    """The other keys of GROUP BY have sessions of their own."""
    found = []
    for key in tree.args["group"].expressions:
        if isinstance(key, Reference) and key.expressions[0].name == TABLE:
            continue
        bound = None if isinstance(key, GroupingSets | exp.Literal) else binder.bind(key)
        if not isinstance(bound, Column):
            hint = "compute the key in a subquery in FROM and group by its column"
            raise PenstockError("SQL-1706", "sessions in GROUP BY go with keys that are columns", span=span_of(key), hint=hint, sqlstate="0A000")
        found.append(bound.index)
    return tuple(dict.fromkeys(found))
