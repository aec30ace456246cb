"""FROM view AS OF CHECKPOINT n, AS OF TIMESTAMP '..', and the DIFF of two versions. Their rows are those that
a retained checkpoint has of a materialized view.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.schema import Field, Schema
from penstock.catalog.tables import CatalogTable, MaterializedView
from penstock.catalog.types import BIGINT, BOOLEAN
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.scope import Relation
from penstock.planner.expressions.nodes import AggregateCall, Call, Case, Cast, Column, Expression, Literal
from penstock.planner.logical.aggregate import Aggregate
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Filter, Project, column_of
from penstock.planner.logical.scan import Scan, Values
from penstock.planner.logical.set_operations import Repeat, Union
from penstock.planner.parser.syntax_nodes import VersionDifference, ViewVersion, consume, span_of

_WEIGHT = "weight"
_ZERO = Literal(BIGINT, False, value=0)


def view_version(tree: ViewVersion, context: BindContext) -> Relation:
    """Return the rows of a view at a checkpoint. Raises SQL-1303 for a table that is no materialized view,
    STA-3062 for a checkpoint that is not retained.
    """
    plan = _weighted(tree, context)
    counted = _consolidated(plan, 1)
    rows = Repeat(counted)
    return Relation(rows, rows.schema.fields)


def version_difference(tree: VersionDifference, context: BindContext) -> Relation:
    """Return the rows that differ between two versions of a view, with how many more the second has of each
    as their last column, ``weight``.
    """
    consume(tree, "this", "before", "after", "alias")
    before, after = (_weighted(side, context) for side in (tree.args["before"], tree.args["after"]))
    if [field.type for field in before.schema] != [field.type for field in after.schema]:
        raise PenstockError(
            "SQL-1303",
            "DIFF takes two versions of one view",
            span=span_of(tree),
            hint="write DIFF(v AS OF CHECKPOINT 3, v AS OF CHECKPOINT 7)",
            sqlstate="42804",
        )
    *columns, weight = (column_of(before, i) for i in range(len(before.schema)))
    negative = Call(BIGINT, False, function="negate", args=(weight,))
    taken_away = Project(before, (*columns, negative), tuple(before.schema.names))
    plan = _consolidated(Union((taken_away, after)), None)
    return Relation(plan, plan.schema.fields)


def _weighted(tree: ViewVersion, context: BindContext) -> LogicalPlan:
    """Return the rows of a version as their subtasks have stored them, with their weights as last column."""
    consume(tree, "this", "checkpoint", "moment", "alias")
    span, moment = span_of(tree), tree.args["moment"]
    view = context.catalog.resolve(tree.this.name, span)
    if not isinstance(view, MaterializedView):
        raise PenstockError(
            "SQL-1303",
            f'"{tree.this.name}" is no materialized view, so it has no checkpoints',
            span=span,
            hint="FOR SYSTEM_TIME AS OF after JOIN reads the versions of a table",
            sqlstate="42809",
        )
    number = int(moment) if tree.args["checkpoint"] else None
    until = None if number is not None else _epoch_us(moment, context.zone, span)
    try:
        reference = context.catalog.states.view_rows(view.name, number, until)
        # a view without rows has no state
        found = None if reference is None else context.catalog.states.state_columns(reference)
    except PenstockError as error:
        raise error.with_span(span) from None
    fields = (*view.schema.without_roles(), Field(_WEIGHT, BIGINT, False))
    if found is None:
        return Values((), Schema(fields))
    schema = Schema(found.fields)
    stored = CatalogTable(view.name, schema, schema, found.reference.options(), temporary=True)
    # key_group and weight, then the columns of the view
    scan = Scan(stored, (*range(2, len(schema)), 1))
    expressions = tuple(_typed(column_of(scan, i), field) for i, field in enumerate(fields))
    return Project(scan, expressions, tuple(field.name for field in fields))


def _typed(column: Column, field: Field) -> Expression:
    # Arrow has fewer types than SQL: a state knows no TIMESTAMP(3)
    if column.type == field.type:
        return column
    return Cast(field.type, column.nullable, arg=column)


def _consolidated(plan: LogicalPlan, least: int | None) -> LogicalPlan:
    """Return equal rows as one, with the sum of their weights: at least ``least``, or any but 0."""
    last = len(plan.schema) - 1
    total = AggregateCall("sum", (column_of(plan, last),), BIGINT)
    grouped = Aggregate(plan, tuple(range(last)), (total,), (_WEIGHT,))
    columns = tuple(column_of(grouped, i) for i in range(last))
    # never NULL: each group has a row with a weight
    total_weight = column_of(grouped, last)
    is_null = Call(BOOLEAN, False, function="is_null", args=(total_weight,))
    weight = Case(BIGINT, False, whens=((is_null, _ZERO),), default=total_weight)
    summed = Project(grouped, (*columns, weight), tuple(plan.schema.names))
    compared = Literal(BIGINT, False, value=0 if least is None else least)
    function = "not_equal" if least is None else "greater_equal"
    return Filter(summed, Call(BOOLEAN, False, function=function, args=(column_of(summed, last), compared)))


def _epoch_us(text: str, zone: ZoneInfo, span: Span | None) -> int:
    """Return a time in the session's zone as microseconds since 1970."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise PenstockError(
            "STA-3063",
            f"'{text}' is no timestamp",
            span=span,
            hint="write AS OF TIMESTAMP '2024-01-31 12:00:00'",
            sqlstate="22007",
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    return (moment - datetime(1970, 1, 1, tzinfo=ZoneInfo("UTC"))) // timedelta(microseconds=1)
