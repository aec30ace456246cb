"""The EMIT clause: its kind, its intervals and the windows it applies to."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.schema import Field, without_event_time
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.expressions.nodes import Literal
from penstock.planner.logical.emit import Emit, EmitKind, has_windows, with_emission
from penstock.planner.logical.sort import Sort
from penstock.planner.logical.windows import Emission
from penstock.planner.parser.syntax_nodes import EmitClause, span_of

_MICROSECOND = timedelta(microseconds=1)


def emitted(relation: Relation, clause: EmitClause | None, context: BindContext) -> Relation:
    """Return a query under its EMIT clause. Raises SQL-1710 for WITH LATENESS without windows."""
    if clause is None:
        return relation
    kind = EmitKind(str(clause.this))
    emission = Emission(
        # EMIT CHANGES AFTER 100 ROWS OR INTERVAL '1' SECOND, EMIT .. WITH LATENESS INTERVAL '1' HOUR
        kind is EmitKind.CHANGES,
        _length(clause, "every", context),
        _length(clause, "lateness", context),
        0 if clause.args.get("rows") is None else int(clause.args["rows"].name),
    )
    plan = relation.plan
    # Lateness extends the life of window state, and there is none.
    if emission.lateness_us and not has_windows(plan):
        hint = "aggregate within windows, or leave WITH LATENESS out"
        message = "WITH LATENESS keeps windows open for late rows, and this query aggregates in none"
        raise PenstockError(
            "SQL-1710", message, span=span_of(clause.args["lateness"]), hint=hint, sqlstate="42601"
        )
    if isinstance(plan, Sort):  # the order is the client's, and stays the last word
        inner = Emit(with_emission(plan.input, emission), kind, emission)
        return Relation(replace(plan, input=inner), _shown(relation, inner))
    node = Emit(with_emission(plan, emission), kind, emission)
    return Relation(node, _shown(relation, node))


def _shown(relation: Relation, node: Emit) -> tuple[Field, ...]:
    """Return the fields after EMIT: only ON WINDOW CLOSE preserves event times."""
    return relation.fields if node.kind is EmitKind.CLOSE else without_event_time(relation.fields)


def _length(clause: EmitClause, name: str, context: BindContext) -> int:
    tree: exp.Expr | None = clause.args.get(name)
    if tree is None:
        return 0
    # an empty scope: a length is a constant
    bound = ExpressionBinder(Scope(), context, f"EMIT's {name.upper()}").bind(tree)
    value = bound.value if isinstance(bound, Literal) else None
    if not isinstance(value, timedelta) or value <= timedelta(0):
        hint = "write INTERVAL '10' SECONDS; months and years have no fixed length"
        raise PenstockError(
            "SQL-1705",
            f"{name.upper()} is an interval longer than nothing, of days or less",
            span=span_of(tree),
            hint=hint,
        )
    return value // _MICROSECOND
