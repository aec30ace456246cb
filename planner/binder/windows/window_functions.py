"""Windowing table functions in FROM: TUMBLE, HOP, CUMULATE and SESSION."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlglot import exp

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.name_suggestions import did_you_mean
from penstock.catalog.schema import Field, Role, without_event_time
from penstock.catalog.types import is_timestamp
from penstock.planner.binder.context import BindContext
from penstock.planner.binder.expressions.expression_binder import ExpressionBinder
from penstock.planner.binder.scope import Relation, Scope
from penstock.planner.expressions.nodes import Literal
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.scan import Scan, bounded
from penstock.planner.logical.time_attributes import ProcessingTime, WatermarkAssign
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import WINDOW_FUNCTIONS, Windowing, without_bound
from penstock.planner.parser.syntax_nodes import (
    Descriptor,
    NamedArgument,
    TableArgument,
    WindowTableFunction,
    consume,
    span_of,
)

_WINDOW_COLUMNS = ("window_start", "window_end", "window_time")
WINDOWS_PER_ROW = "table.exec.window.max-per-row"


@dataclass(frozen=True)
class WindowArguments:
    """The arguments of a windowing function by name, with their spans."""

    function: str
    values: dict[str, exp.Expr]
    span: Span | None

    @property
    def kind(self) -> type[Windowing]:
        """The windowing class of the function."""
        return WINDOW_FUNCTIONS[self.function]

    def need(self, name: str) -> exp.Expr:
        """Return an argument; raise SQL-1102 if it is missing."""
        if name not in self.values:
            hint = f"write {self.kind.usage}"
            raise PenstockError(
                "SQL-1102",
                f"{self.function} needs the argument {name}",
                span=self.span,
                hint=hint,
                sqlstate="42883",
            )
        return self.values[name]


def bind_window(
    tree: WindowTableFunction, context: BindContext, bind_source: Callable[[exp.Expr, BindContext], Any]
) -> Relation:
    """Return a windowing function's rows: each input row once per window, with window_start, window_end and
    window_time.
    """
    arguments = _arguments(tree)
    # TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' MINUTE))
    data = arguments.need("DATA")
    if not isinstance(data, TableArgument):
        hint = f"write {arguments.kind.usage}"
        raise PenstockError(
            "SQL-1102",
            f"the first argument of {arguments.function} is TABLE name",
            span=span_of(data),
            hint=hint,
        )
    consume(data, "this", "partition")
    source = bind_source(data.this, context)
    relation: Relation = source.relation
    time = _time_column(arguments, relation, context)
    keys = _partition(arguments.function, data, source.scope)
    relation = attach_time_attribute(relation, time)
    closes = relation.fields[time].is_time
    plan = WindowTable(relation.plan, windowing(arguments, time, keys, context), closes)
    # windows over windows: the new window_start hides the old one
    older = tuple(_hidden(field) for field in relation.fields)
    # A session window holds its rows back until the session ends, so their own time is over.
    older = without_event_time(older) if plan.window.merging else older
    return Relation(plan, older + plan.schema.fields[-3:])


def _hidden(field: Field) -> Field:
    """Return an input field beneath a new window. The columns of an earlier window lose their names, and its
    bounds lose their roles.
    """
    return (
        replace(field, name="", role=None) if field.name.lower() in _WINDOW_COLUMNS else without_bound(field)
    )


def _arguments(tree: WindowTableFunction) -> WindowArguments:
    function, kind = str(tree.this), WINDOW_FUNCTIONS[str(tree.this)]
    order = ("DATA", "TIMECOL", *kind.parameters)
    values: dict[str, exp.Expr] = {}
    for position, argument in enumerate(tree.expressions):
        # SIZE => INTERVAL '10' MINUTES, else by position
        if isinstance(argument, NamedArgument):
            name, value = str(argument.this), argument.args["expression"]
            if name not in order:
                hint = did_you_mean(name, order, others=True)
                raise PenstockError(
                    "SQL-1102",
                    f"{function} has no argument {name}",
                    span=span_of(argument),
                    hint=hint,
                    sqlstate="42883",
                )
        elif position >= len(order):
            hint = f"write {kind.usage}"
            raise PenstockError(
                "SQL-1102",
                f"{function} takes at most {len(order)} arguments",
                span=span_of(argument),
                hint=hint,
                sqlstate="42883",
            )
        else:
            name, value = order[position], argument
        # TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR, SIZE => ..)
        if name in values:
            raise PenstockError(
                "SQL-1102", f"the argument {name} is given twice", span=span_of(argument), sqlstate="42883"
            )
        values[name] = value
    return WindowArguments(function, values, span_of(tree))


def _time_column(arguments: WindowArguments, relation: Relation, context: BindContext) -> int:
    descriptor = arguments.need("TIMECOL")
    if not isinstance(descriptor, Descriptor) or len(descriptor.expressions) != 1:
        hint = f"write {arguments.kind.usage}"
        raise PenstockError(
            "SQL-1102",
            "the time column is written DESCRIPTOR(column)",
            span=span_of(descriptor),
            hint=hint,
            sqlstate="42883",
        )
    identifier = descriptor.expressions[0]
    column, _ = Scope.of(relation, None).resolve([identifier])
    check_window_time(column.field, relation, context, span_of(identifier))
    return column.index


def attach_time_attribute(relation: Relation, time: int) -> Relation:
    """Return a relation driven by one of its time attributes: by the watermark for event time, by the clock
    for processing time, by the end of the rows for a time of bounded tables without a watermark. Nothing
    drives the windows of another column.
    """
    field = relation.fields[time]
    if field.role is Role.PROCESSING_TIME:
        return Relation(ProcessingTime(relation.plan, time), without_event_time(relation.fields))
    if _passes_at_end(field, relation):
        # a watermark of NULL advances at the end of the rows only, and stops those of tables below it
        plan = WatermarkAssign(relation.plan, time, Literal(field.type, True, value=None))
        fields = list(without_event_time(relation.fields))
        fields[time] = replace(field, role=Role.EVENT_TIME)
        return Relation(plan, tuple(fields))
    # An event time already advances by its watermark.
    return relation


def is_time_attribute(field: Field, relation: Relation) -> bool:
    """Return whether ``attach_time_attribute`` finds a time that drives windows or patterns."""
    return field.is_time or _passes_at_end(field, relation)


def _passes_at_end(field: Field, relation: Relation) -> bool:
    """Return whether time passes all rows at once where they end: a TIMESTAMP without a watermark, of rows of
    bounded tables that are not updated.
    """
    return (
        is_timestamp(field.type)
        and not field.is_time
        and bounded(relation.plan)
        and _inserts_only(relation.plan)
    )


def check_window_time(field: Field, relation: Relation, context: BindContext, span: Span | None) -> None:
    """Raise SQL-1701 for a column that windows cannot be cut on. Beside time attributes they are cut on a
    TIMESTAMP of bounded tables without a watermark, whose windows close where the rows end, and on one of
    rows that are updated or deleted: such windows never close, and each change updates its own.
    """
    if is_time_attribute(field, relation):
        return
    if not is_timestamp(field.type) or _inserts_only(relation.plan):
        raise no_time(field, relation, span)
    context.note(
        f"the rows are updated, so windows on {field.name} never close: each change updates its window"
    )


def _inserts_only(plan: LogicalPlan) -> bool:
    return plan.insert_only(tuple(map(_inserts_only, plan.inputs)))


def no_time(field: Field, relation: Relation, span: Span | None) -> PenstockError:
    """Return SQL-1701 for a column that is no time attribute, with a hint that names one or declares it."""
    times = [f.name for f in relation.fields if f.is_time]
    message = f'"{field.name}" is no time attribute, so no window can be cut on it'
    # the relation has one, but another column was named
    if times:
        hint = f"the time attribute{'s are' if len(times) > 1 else ' is'} {', '.join(times)}"
    # a TIMESTAMP without a watermark, or one whose time ended on its way through the query
    elif is_timestamp(field.type):
        tables = [node.table for node in relation.plan.walk() if isinstance(node, Scan)]
        timed = [table for table in tables if table.watermark is not None]
        if timed:
            of = timed[0].name if len(tables) == 1 else "tables"
            hint = (
                f"the time of {of} ends where it is computed with, or rows are grouped or joined: "
                f"window them before that, or GROUP BY time_bucket(INTERVAL '1' MINUTE, {field.name})"
            )
        else:
            to = f" {tables[0].name}" if len(tables) == 1 else ""
            hint = f"add WATERMARK FOR {field.name} AS {field.name} - INTERVAL '5' SECOND to CREATE TABLE{to}"
    else:
        hint = (
            "a time attribute is a TIMESTAMP column with a WATERMARK, or a column AS PROCTIME(); "
            f"{field.name} is {field.type}"
        )
    return PenstockError("SQL-1701", message, span=span, hint=hint, sqlstate="42804")


def _partition(function: str, data: TableArgument, scope: Scope) -> tuple[int, ...]:
    columns = data.args.get("partition") or []
    # Only sessions depend on a key; other windows are the same for all rows.
    if columns and not WINDOW_FUNCTIONS[function].merging:
        hint = "name the columns in GROUP BY"
        raise PenstockError(
            "SQL-1601",
            f"PARTITION BY in {function} is not supported",
            span=span_of(columns[0]),
            hint=hint,
            sqlstate="0A000",
        )
    return tuple(dict.fromkeys(scope.resolve([column])[0].index for column in columns))


def windowing(arguments: WindowArguments, time: int, keys: Sequence[int], context: BindContext) -> Windowing:
    """Return the windowing of the arguments over a time column. Raises SQL-1704 for lengths that do not
    divide, SQL-1705 for an invalid length, SQL-1715 for too many windows per row.
    """
    kind = arguments.kind
    # the field of a length to its argument's name: size_us to SIZE
    fields = {field: name for name, field in kind.parameters.items()}
    # The step is bound last, so that an error in the size is reported first.
    names = sorted(fields.values(), key=lambda name: name == fields.get("step_us"))
    lengths: dict[str, Any] = {
        kind.parameters[name]: _length(arguments, name, context, signed=name == "OFFSET")
        for name in names
        if name != "OFFSET" or name in arguments.values
    }
    # HOP and CUMULATE
    if "step_us" in lengths:
        _check_step(arguments, fields["step_us"], lengths["size_us"], lengths["step_us"], context)
    return kind(time, **lengths, partition_keys=tuple(keys))


def _check_step(arguments: WindowArguments, name: str, size: int, step: int, context: BindContext) -> None:
    # Windows are assembled from slices of one step, so the size is a whole number of steps.
    if size % step:
        span = span_of(arguments.need(name))
        message = (
            f"the size of {arguments.function}, {_shown(size)}, is no multiple of its {name.lower()}, "
            f"{_shown(step)}"
        )
        hint = f"{arguments.function} takes the {name.lower()} first, then the size" if step > size else None
        raise PenstockError("SQL-1704", message, span=span, hint=hint, sqlstate="22023")
    most = int(str(context.settings.get(WINDOWS_PER_ROW)))
    # HOP with a short slide replicates each row into every window that contains it.
    if size // step > most:
        span = span_of(arguments.need(name))
        message = (
            f"a row would fall into {size // step:,} windows of {arguments.function}, at most {most:,} "
            "are allowed"
        )
        hint = (
            f"take a longer {name.lower()} or a shorter size, or SET '{WINDOWS_PER_ROW}' = '{size // step}'"
        )
        raise PenstockError("SQL-1715", message, span=span, hint=hint, sqlstate="54000")


def _length(arguments: WindowArguments, name: str, context: BindContext, *, signed: bool = False) -> int:
    tree = arguments.need(name)
    bound = ExpressionBinder(Scope(), context, f"{arguments.function}'s {name}").bind(tree)
    value = bound.value if isinstance(bound, Literal) else None
    if not isinstance(value, timedelta):
        hint = "write INTERVAL '10' MINUTE; months and years have no fixed length"
        raise PenstockError(
            "SQL-1705",
            f"the {name.lower()} of a window is an interval of days or less",
            span=span_of(tree),
            hint=hint,
        )
    length = value // timedelta(microseconds=1)
    # Only OFFSET may be zero or negative.
    if length <= 0 and not signed:
        message = f"the {name.lower()} of a window is longer than nothing"
        raise PenstockError(
            "SQL-1705", message, span=span_of(tree), hint="write INTERVAL '10' MINUTE", sqlstate="22023"
        )
    return length


def _shown(length_us: int) -> str:
    return str(timedelta(microseconds=length_us))
