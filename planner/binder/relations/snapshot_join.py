"""LATERAL SNAPSHOT(..): a table that is loaded up to a point in its time, then joined as it is when a row
arrives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from sqlglot import exp

from penstock.catalog.errors import PenstockError
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.types import TimestampLtz
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.relations.tables import Source, bind_source
from penstock.planner.binder.scope import Scope
from penstock.planner.expressions.nodes import Cast, Expression, Literal
from penstock.planner.logical.joins.join import Join
from penstock.planner.logical.joins.snapshot_join import as_snapshot_join
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.projection import Project
from penstock.planner.logical.scan import bounded
from penstock.planner.parser.syntax_nodes import (
    Descriptor,
    NamedArgument,
    SnapshotTable,
    TableArgument,
    consume,
    span_of,
)

USAGE = (
    "SNAPSHOT(input => TABLE t, on_time => DESCRIPTOR(ts), load_completed_time => TIMESTAMP '2026-01-01 "
    "00:00:00')"
)
ARGUMENTS = ("INPUT", "ON_TIME", "LOAD_COMPLETED_TIME", "LOAD_COMPLETED_IDLE_TIMEOUT", "STATE_TTL")
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Snapshot:
    """The table of a snapshot join and when it counts as loaded. Without a time column it is a bounded table,
    loaded to its end.

    ``loaded_us``: microseconds of the table's time. ``idle_ms``, ``ttl_ms``: milliseconds.
    """

    source: Source
    time: int | None
    loaded_us: int | None
    idle_ms: int | None
    ttl_ms: int | None

    def joined(self, plan: LogicalPlan) -> LogicalPlan:
        """Return the snapshot join of a join, which a projection may cover. A bounded table leaves the join
        as it is.
        """
        if isinstance(plan, Project):
            return replace(plan, input=self.joined(plan.input))
        assert isinstance(plan, Join)
        # a bounded table: the regular join loads it first anyway
        if self.time is None:
            return plan
        return as_snapshot_join(
            replace(plan, ttl_ms=(0, self.ttl_ms)), self.time, self.loaded_us, self.idle_ms
        )


def bind_snapshot(tree: SnapshotTable, context: BindContext) -> Snapshot:
    """Return the bound arguments of SNAPSHOT.

    Raises SQL-1102 for unknown arguments. Raises SQL-1729 for an unbounded table without ``on_time``, and for
    invalid values.
    """
    consume(tree, "expressions", "alias", "lateral")
    # SNAPSHOT(input => TABLE t, on_time => DESCRIPTOR(ts), ..)
    arguments = _arguments(tree)
    data = arguments.get("INPUT")
    # SNAPSHOT(t), or SNAPSHOT without arguments
    if not isinstance(data, TableArgument):
        raise PenstockError(
            "SQL-1102",
            "SNAPSHOT takes a table: input => TABLE name",
            span=span_of(data or tree),
            hint=f"write {USAGE}",
        )
    consume(data, "this")
    # on_time is resolved in the table's own names, the join in those of the alias.
    plain = bind_source(data.this, context)
    table = data.this.copy()
    table.set("alias", tree.args.get("alias"))
    source = bind_source(table, context) if tree.args.get("alias") is not None else plain
    # A bounded table is loaded to its end, so the time arguments have no use.
    if bounded(plain.relation.plan):
        return Snapshot(source, None, None, None, None)
    time = _time(arguments.get("ON_TIME"), plain, tree)
    at, idle, ttl = (arguments.get(name) for name in ARGUMENTS[2:])
    loaded = (
        None
        if at is None
        else _moment(at, isinstance(plain.relation.fields[time].type, TimestampLtz), context)
    )
    return Snapshot(
        source, time, loaded, _interval(idle, ARGUMENTS[3], context), _interval(ttl, ARGUMENTS[4], context)
    )


def _arguments(tree: SnapshotTable) -> dict[str, exp.Expr]:
    values: dict[str, exp.Expr] = {}
    for position, argument in enumerate(tree.expressions):
        name, value = (
            (str(argument.this), argument.args["expression"])
            if isinstance(argument, NamedArgument)
            else ("INPUT", argument)
        )
        # only the first argument may be without a name
        if name not in ARGUMENTS or (position and not isinstance(argument, NamedArgument)):
            hint = (
                did_you_mean(name, ARGUMENTS, others=True)
                if isinstance(argument, NamedArgument)
                else f"write {USAGE}"
            )
            message = (
                f"SNAPSHOT has no argument {name.lower()}"
                if isinstance(argument, NamedArgument)
                else "the arguments of SNAPSHOT have names"
            )
            raise PenstockError("SQL-1102", message, span=span_of(argument), hint=hint, sqlstate="42883")
        # SNAPSHOT(input => TABLE t, input => TABLE u)
        if name in values:
            raise PenstockError(
                "SQL-1102",
                f"the argument {name.lower()} is given twice",
                span=span_of(argument),
                sqlstate="42883",
            )
        values[name] = value
    return values


def _time(descriptor: exp.Expr | None, source: Source, tree: SnapshotTable) -> int:
    times = [field.name for field in source.relation.fields if field.is_event_time]
    hint = (
        f"write on_time => DESCRIPTOR({times[0]})"
        if times
        else "give the table a WATERMARK, or read one that ends"
    )
    if not isinstance(descriptor, Descriptor) or len(descriptor.expressions) != 1:
        message = "SNAPSHOT of a table that does not end needs the column its time goes by"
        raise PenstockError(
            "SQL-1729", message, span=span_of(descriptor or tree), hint=hint, sqlstate="42883"
        )
    identifier = descriptor.expressions[0]
    column, _ = source.scope.resolve([identifier])
    if not column.field.is_event_time:
        message = f'"{identifier.name}" is no event-time column of the table'
        raise PenstockError("SQL-1729", message, span=span_of(identifier), hint=hint, sqlstate="42804")
    return column.index


def _moment(tree: exp.Expr, has_zone: bool, context: BindContext) -> int:
    """Return a constant time in microseconds of the table's time. A time of the other kind is converted by
    the session's zone.
    """
    bound = ExpressionBinder(Scope(), context, "SNAPSHOT").bind(tree)
    literal: Expression = bound
    # A cast between TIMESTAMP and TIMESTAMP_LTZ is undone: the literal itself has or lacks a zone.
    while isinstance(literal, Cast):
        literal = literal.arg
    value = literal.value if isinstance(literal, Literal) else None
    if not isinstance(value, datetime):
        hint = (
            "write load_completed_time => TIMESTAMP '2026-01-01 00:00:00', or leave it out: then it is "
            "the moment the job is first started"
        )
        message = "load_completed_time is a TIMESTAMP or TIMESTAMP_LTZ that is written down"
        raise PenstockError("SQL-1729", message, span=span_of(tree), hint=hint, sqlstate="22023")
    zone: tzinfo = ZoneInfo(str(context.settings.get("table.local-time-zone")))
    # TIMESTAMP is local time in the session's zone; TIMESTAMP_LTZ is an instant.
    instant = value if value.tzinfo is not None else value.replace(tzinfo=zone)
    # TIMESTAMP columns are stored as local time, as if it were UTC
    if not has_zone:
        instant = (value if value.tzinfo is None else instant.astimezone(zone)).replace(tzinfo=UTC)
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // _MICROSECOND


def _interval(tree: exp.Expr | None, name: str, context: BindContext) -> int | None:
    """Return an interval in milliseconds."""
    if tree is None:
        return None
    bound = ExpressionBinder(Scope(), context, "SNAPSHOT").bind(tree)
    value = bound.value if isinstance(bound, Literal) else None
    # stored in milliseconds, so shorter ones would be none
    if not isinstance(value, timedelta) or value < timedelta(milliseconds=1):
        message = f"{name.lower()} is an interval of days or less, longer than nothing"
        raise PenstockError(
            "SQL-1729",
            message,
            span=span_of(tree),
            hint=f"write {name.lower()} => INTERVAL '10' SECOND",
            sqlstate="22023",
        )
    return value // timedelta(milliseconds=1)
