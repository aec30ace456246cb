"""Time attributes in the logical plan: watermarks of event time, and processing time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property

from penstock.catalog.errors import PenstockError, Span
from penstock.catalog.frozen_dataclass import dataclass
from penstock.catalog.schema import Field, Role, Schema, without_event_time
from penstock.catalog.types import BOOLEAN, STRING, TimestampLtz
from penstock.planner.expressions.expression_properties import select_in_turn, without
from penstock.planner.expressions.nodes import (
    Call,
    Cast,
    Column,
    Expression,
    Literal,
    SortKey,
)
from penstock.planner.logical.distribution import (
    Partitioning,
)
from penstock.planner.logical.exchange import Exchange
from penstock.planner.logical.joins.join import BinaryJoin
from penstock.planner.logical.node_digest import Digest, ExactTexts, hash_parts
from penstock.planner.logical.node_text import expression_text
from penstock.planner.logical.operator_facts import DerivedFacts, OperatorFacts, SettingReader
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import (
    ColumnPruner,
    Conditions,
    Keys,
    LogicalPlan,
    Needed,
    PassThroughNode,
    Pruned,
    StateBound,
    StateFacts,
    UnaryNode,
)
from penstock.planner.logical.projection import Filter, Project, clock_over_updates
from penstock.planner.logical.set_operations import Union
from penstock.planner.logical.sort import TopN
from penstock.planner.logical.window_table import WindowTable
from penstock.planner.logical.windows import (
    demand,
)


@dataclass(frozen=True)
class WatermarkFacts(OperatorFacts):
    """``idle_timeout_ms``: milliseconds without rows after which a split no longer holds the
    watermark back. ``marks_rows``: every row carries its split's watermark, and not late rows only.
    """

    idle_timeout_ms: int = 0
    marks_rows: bool = False


@dataclass(frozen=True)
class WatermarkAssign(PassThroughNode):
    """The watermark assigner: it makes ``time_column`` the event-time attribute. A row's ``watermark``
    expression, of the same type, is a lower bound of its split's watermark.
    """

    no_history = None

    time_column: int
    watermark: Expression

    @cached_property
    def schema(self) -> Schema:
        fields = list(self.input.schema.fields)
        fields[self.time_column] = replace(fields[self.time_column], role=Role.EVENT_TIME)
        return Schema(tuple(fields))

    def text(self) -> str:
        source = self.input.schema
        value = (
            ", at the end of the rows"
            if self.comes_at_end
            else f" AS {expression_text(self.watermark, source)}"
        )
        return f"WatermarkAssign {source[self.time_column].name}{value}"

    @property
    def comes_at_end(self) -> bool:
        """Whether the watermark is NULL for all rows, and so comes where they end."""
        return isinstance(self.watermark, Literal) and self.watermark.value is None

    def operator_name(self) -> str:
        return f"watermark {self.input.schema[self.time_column].name}"

    def operator_facts(self, derived: DerivedFacts, settings: SettingReader) -> WatermarkFacts:
        return WatermarkFacts(
            (derived.insert_only(self.input),), int(settings.get("table.exec.source.idle-timeout"))
        )

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below = inputs[0]
        watermark = texts.expression(self.watermark, below.columns)
        # another watermark drops other late rows
        rows = hash_parts("watermark", below.rows, below.columns[self.time_column], watermark)
        return Digest(rows, below.columns)

    def map_expressions(self, rewrite: Callable[[Expression], Expression]) -> LogicalPlan:
        return self._changed(watermark=rewrite(self.watermark))

    def pass_filters(self, parts: Conditions) -> tuple[Conditions, tuple[Conditions, ...]]:
        return (), (parts,)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        if self.time_column not in needed and not pruner.keeps_watermarks:
            return pruner.prune(self.input, needed)
        reads = needed | {self.time_column} | self.watermark.columns()
        child, positions = pruner.prune(self.input, reads)
        pruned = WatermarkAssign(child, positions[self.time_column], self.watermark.remap(positions))
        return pruned, positions

    def state_bound(self, facts: StateFacts) -> StateBound:
        return StateBound("one watermark per split")

    @property
    def is_row_wise(self) -> bool:
        return True


@dataclass(frozen=True)
class CurrentWatermark(PassThroughNode):
    """Append the watermark of a row's split as it was just before the row; NULL before the first one.

    It depends on the split's content alone, so it is the same in every run. The node stands above its
    WatermarkAssign, with row-wise nodes between them at most.
    """

    no_history = "CURRENT_WATERMARK"

    time_column: int

    def __post_init__(self) -> None:
        demand(
            self.input.schema[self.time_column].is_event_time,
            "the watermark of a column that is no time attribute",
        )

    @property
    def only_ours(self) -> bool:
        return True

    @property
    def goes_by_time(self) -> bool:
        return True

    @cached_property
    def schema(self) -> Schema:
        fields = self.input.schema.fields
        return Schema((*fields, Field("$watermark", fields[self.time_column].type)))

    def text(self) -> str:
        return f"CurrentWatermark {self.input.schema[self.time_column].name}"

    def operator_name(self) -> str:
        return f"current watermark of {self.input.schema[self.time_column].name}"

    @property
    def keeps_state(self) -> bool:
        return False

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        below = inputs[0]
        mark = hash_parts("current watermark", below.rows, below.columns[self.time_column])
        return Digest(below.rows, (*below.columns, mark))

    def pass_filters(self, parts: Conditions) -> tuple[Conditions, tuple[Conditions, ...]]:
        return parts, ((),)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        width = len(self.input.schema)
        if width not in needed:
            return pruner.prune(self.input, needed)
        child, positions = pruner.prune(self.input, (needed - {width}) | {self.time_column})
        pruned = CurrentWatermark(child, positions[self.time_column])
        return pruned, positions | {width: len(child.schema)}

    def refuse_updates(self, port: int) -> PenstockError | None:
        return PenstockError(
            "SQL-1316",
            "CURRENT_WATERMARK of rows that are updated would differ between a row and its retraction",
            hint="call it in a query that reads a table whose rows are only inserted",
            sqlstate="0A000",
        )

    @property
    def is_row_wise(self) -> bool:
        return True


@dataclass(frozen=True)
class ProcessingTime(UnaryNode):
    """Set ``time_column`` to the clock as rows pass; above the node the clock is the watermark.

    Windows and OVER by processing time therefore are those by an event time without late rows. Event-time
    attributes of the input end here.
    """

    no_history = "PROCTIME()"

    time_column: int

    def __post_init__(self) -> None:
        demand(
            isinstance(self.input.schema[self.time_column].type, TimestampLtz),
            "processing time in a column that is no TIMESTAMP_LTZ",
        )

    @property
    def only_ours(self) -> bool:
        return True

    @cached_property
    def schema(self) -> Schema:
        # one watermark drives the rows: above the node it is the clock
        fields = list(without_event_time(self.input.schema.fields))
        fields[self.time_column] = replace(fields[self.time_column], role=Role.EVENT_TIME, nullable=False)
        return Schema(tuple(fields))

    def text(self) -> str:
        return f"ProcessingTime {self.input.schema[self.time_column].name}"

    def operator_name(self) -> str:
        return f"processing time {self.input.schema[self.time_column].name}"

    def digest(self, inputs: tuple[Digest, ...], texts: ExactTexts) -> Digest:
        columns, time = inputs[0].columns, self.time_column
        rows = hash_parts("processing time", inputs[0].rows, columns[time])
        # the stamp is a new value: it is not the column it replaces
        return Digest(rows, (*columns[:time], hash_parts("stamp", rows), *columns[time + 1 :]))

    def unique_keys(self, inputs: tuple[Keys, ...]) -> Keys:
        # many rows have one stamp
        return frozenset(key for key in inputs[0] if self.time_column not in key)

    def partitioning(self, inputs: tuple[Partitioning, ...]) -> Partitioning:
        return frozenset(keys for keys in inputs[0] if self.time_column not in keys)

    def pass_filters(self, parts: Conditions) -> tuple[Conditions, tuple[Conditions, ...]]:
        # a filter on the stamp needs the stamp
        passed = select_in_turn(parts, set(range(len(self.input.schema))) - {self.time_column})
        return without(parts, passed), (passed,)

    def prune_columns(self, needed: Needed, pruner: ColumnPruner) -> Pruned:
        child, positions = pruner.prune(self.input, needed | {self.time_column})
        return ProcessingTime(child, positions[self.time_column]), positions

    def state_bound(self, facts: StateFacts) -> StateBound:
        return StateBound("the last time emitted")

    def refuse_updates(self, port: int) -> PenstockError | None:
        return clock_over_updates("windows and OVER by processing time need an append-only input")


_KEEPS_COLUMNS = (Filter, Exchange, WatermarkAssign, WindowTable, TopN, Over, PartitionTop, ProcessingTime)


def is_by_clock(plan: LogicalPlan, column: int) -> bool:
    """Return whether a column of a plan is a processing time, materialized or not."""
    # PROCTIME() that no ProcessingTime node has stamped
    if plan.schema[column].role is Role.PROCESSING_TIME:
        return True
    match plan:
        # stamped below
        case ProcessingTime(time_column=time) if time == column:
            return True
        # follow a bare column through projections
        case Project(input=inner, expressions=expressions):
            expression = expressions[column]
            return isinstance(expression, Column) and is_by_clock(inner, expression.index)
        # left columns, then right columns
        case BinaryJoin(left=left, right=right):
            width = len(left.schema)
            return (
                is_by_clock(left, column)
                if column < width
                else column - width < len(right.schema) and is_by_clock(right, column - width)
            )
        case Union(branches=branches):
            return any(is_by_clock(branch, column) for branch in branches)
    return (
        isinstance(plan, _KEEPS_COLUMNS)
        and column < len(plan.inputs[0].schema)
        and is_by_clock(plan.inputs[0], column)
    )


def arrival_order(plan: LogicalPlan, order: Sequence[SortKey]) -> int:
    """Return how ties of an order over a plan are broken: 1 by arrival, -1 by reverse arrival, 0 by all
    columns.

    A clock gives many rows the same time. An order by it therefore means the order of arrival, or its reverse
    when descending.
    """
    # the first key that is a clock decides
    for key in order:
        if isinstance(key.expression, Column) and is_by_clock(plan, key.expression.index):
            return -1 if key.descending else 1
    return 0


def up_to(plan: LogicalPlan, moment: str, span: Span) -> LogicalPlan:
    """Return a plan that reads only rows whose event time is at most ``moment``; tables without a watermark
    are read whole.

    Raise VER-7004 for a text that is not a timestamp, VER-7003 when no table of the plan has a watermark.
    """
    try:
        datetime.fromisoformat(moment.strip())
    except ValueError:
        hint = "write UP TO TIMESTAMP '2026-01-01 00:00:00'"
        raise PenstockError(
            "VER-7004", f"'{moment[:60]}' is no timestamp", span=span, hint=hint, sqlstate="22007"
        ) from None
    if not any(isinstance(node, WatermarkAssign) for node in plan.walk()):
        hint = "declare WATERMARK FOR in a table of the query, or leave UP TO out"
        raise PenstockError(
            "VER-7003",
            "no table of the query has a watermark, so no point in time bounds its rows",
            span=span,
            hint=hint,
        )
    return _cut(plan, moment.strip())


def _cut(plan: LogicalPlan, moment: str) -> LogicalPlan:
    inputs = tuple(_cut(child, moment) for child in plan.inputs)
    if isinstance(plan, WatermarkAssign):
        field = inputs[0].schema[plan.time_column]
        time = Column(field.type, field.nullable, index=plan.time_column, name=field.name)
        # of the column's own type: TIMESTAMP_LTZ reads the text in the session's zone
        last = Cast(field.type, False, arg=Literal(STRING, False, value=moment))
        # WHERE ts <= moment, below each watermark assigner
        inputs = (Filter(inputs[0], Call(BOOLEAN, field.nullable, function="less_equal", args=(time, last))),)
    return plan.with_inputs(inputs) if inputs else plan
