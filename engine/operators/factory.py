"""The one table from node to operator class. A class is imported by the first plan that needs it, so
that starting up stays quick.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.module_loading import collection_paused
from penstock.engine.api.operator import Operator
from penstock.planner.logical.aggregate import Aggregate, CountWindowAggregate, Phase, WindowAggregate
from penstock.planner.logical.changelog_normalize import ChangelogNormalize
from penstock.planner.logical.emit import Emit, EmitKind
from penstock.planner.logical.joins.interval_join import IntervalJoin
from penstock.planner.logical.joins.join import Join
from penstock.planner.logical.joins.lookup_join import LookupJoin
from penstock.planner.logical.joins.nearest_join import NearestJoin
from penstock.planner.logical.joins.snapshot_join import SnapshotJoin
from penstock.planner.logical.joins.temporal_join import TemporalJoin
from penstock.planner.logical.match_recognize import MatchRecognize
from penstock.planner.logical.over import Over, PartitionTop
from penstock.planner.logical.plan import LogicalPlan
from penstock.planner.logical.process_table import ProcessTable
from penstock.planner.logical.scan import BoundedInput, Scan, Values
from penstock.planner.logical.set_operations import Repeat, Union
from penstock.planner.logical.sink import Sink
from penstock.planner.logical.sort import Limit, TemporalSort, TopN
from penstock.planner.logical.time_attributes import CurrentWatermark, ProcessingTime, WatermarkAssign
from penstock.planner.logical.unnest import Unnest
from penstock.planner.logical.window_table import LateMark, WindowTable
from penstock.planner.logical.windows import Windowing
from penstock.planner.physical.operator_specs import (
    AnyOperatorSpec,
    Calc,
    FinishedSplits,
    HistorySource,
    Recursion,
)
from penstock.planner.physical.runtime_filter import RuntimeFilter
from penstock.planner.physical.window_best_filter import WindowBestFilter


def build_operator(spec: AnyOperatorSpec, options: JobOptions) -> Operator:
    """Return a new operator for one subtask of a spec. INT-9017 for a node that is not in the table."""
    entry = OPERATOR_CLASSES.get(type(spec.node))
    if entry is None:
        raise PenstockError(
            "INT-9017", f"no operator for {type(spec.node).__name__}", kind=Kind.INTERNAL, sqlstate="XX000"
        )
    # names come from this table only, never from a plan or a checkpoint
    module, _, name = (entry if isinstance(entry, str) else entry(spec)).partition(":")
    with collection_paused():
        operator_class = getattr(import_module(module), name)
    # these run operators inside themselves: this function is injected, so their files do not import the
    # factory
    made: Operator = (
        operator_class(spec, options, build_operator)
        if isinstance(spec.node, HistorySource | Recursion)
        else operator_class(spec, options)
    )
    return made


def _source(spec: AnyOperatorSpec) -> str:
    # a view that is followed; read once, it is a table like any other
    if spec.node.table.connector == "materialized" and option(spec.node.table, "follow"):
        return "penstock.engine.operators.source.source:MaterializedViewSourceOperator"
    return "penstock.engine.operators.source.source:SourceOperator"


def _late_mark(spec: AnyOperatorSpec) -> str:
    # whether a row is late for its session depends on other rows; with retractions on its own watermark alone
    by_session = spec.node.window.merging and spec.facts.insert_only
    return (
        "penstock.engine.operators.window.late_row_marker:SessionLateRowMarkerOperator"
        if by_session
        else "penstock.engine.operators.window.late_row_marker:LateRowMarkerOperator"
    )


def _window_table(spec: AnyOperatorSpec) -> str:
    if spec.node.window.merging:
        if not spec.node.closes:
            return "penstock.engine.operators.window.session_updates:UpdatingSessionFunctionOperator"
        if not spec.facts.insert_only:
            return "penstock.engine.operators.window.window_function:RetractSessionFunctionOperator"
        return "penstock.engine.operators.window.window_function:SessionFunctionOperator"
    return "penstock.engine.operators.window.window_function:WindowFunctionOperator"


def _window_aggregate(spec: AnyOperatorSpec) -> str:
    # before the exchange: partial aggregates
    if spec.node.phase is Phase.LOCAL:
        return "penstock.engine.operators.window.local_window_aggregate:LocalWindowAggregateOperator"
    if isinstance(spec.node.window, Windowing) and spec.node.window.merging:
        if not spec.facts.insert_only:
            return "penstock.engine.operators.window.session_aggregate:RetractSessionOperator"
        # early results, or late rows that change a result: rows are retracted
        if spec.node.emission.corrects:
            return "penstock.engine.operators.window.session_aggregate:EarlyFireSessionOperator"
        return "penstock.engine.operators.window.session_aggregate:SessionAggregateOperator"
    # TUMBLE, HOP, CUMULATE and attached windows; their accumulators can retract, so the input may too
    if spec.node.emission.corrects:
        return "penstock.engine.operators.window.window_aggregate:EarlyFireWindowOperator"
    return "penstock.engine.operators.window.window_aggregate:WindowAggregateOperator"


def _group_aggregate(spec: AnyOperatorSpec) -> str:
    if spec.node.phase is Phase.LOCAL:
        return "penstock.engine.operators.aggregate.local_aggregate:LocalAggregateOperator"
    return "penstock.engine.operators.aggregate.group_aggregate:GroupAggregateOperator"


def _interval_join(spec: AnyOperatorSpec) -> str:
    if spec.facts.time is None:  # a side is loaded first: nothing waits for time
        return "penstock.engine.operators.join.regular_join:RegularJoinOperator"
    return "penstock.engine.operators.join.interval_join:IntervalJoinOperator"


def _limit(spec: AnyOperatorSpec) -> str:
    return (
        "penstock.engine.operators.limit:LimitOperator"
        if spec.facts.insert_only
        else "penstock.engine.operators.limit:RetractLimitOperator"
    )


def _over(spec: AnyOperatorSpec) -> str:
    # ORDER BY the event time of an append-only input: each row gets its values once
    if spec.facts.in_time:
        return "penstock.engine.operators.over.over:EventTimeOverOperator"
    return "penstock.engine.operators.over.over:RetractOverOperator"


def _partition_top(spec: AnyOperatorSpec) -> str:
    # a retraction lets a row in that was not among the first: all rows must be stored
    if not spec.facts.insert_only:
        return "penstock.engine.operators.rank.partition_top_n:RetractTopNOperator"
    if spec.node.window is not None:
        return "penstock.engine.operators.rank.partition_top_n:WindowTopNOperator"
    return "penstock.engine.operators.rank.partition_top_n:AppendTopNOperator"


def _sink(spec: AnyOperatorSpec) -> str:
    if spec.node.table is not None and spec.node.table.connector == "materialized":
        return "penstock.engine.operators.sink:MaterializedViewSinkOperator"
    return "penstock.engine.operators.sink:SinkOperator"


def _recursion(spec: AnyOperatorSpec) -> str:
    return (
        "penstock.engine.operators.recursion.recursive_query:RecursiveUnionOperator"
        if spec.node.distinct
        else "penstock.engine.operators.recursion.recursive_query:RecursiveUnionAllOperator"
    )


def _emit(spec: AnyOperatorSpec) -> str:
    if spec.node.kind is EmitKind.FINAL:
        return "penstock.engine.operators.emit_final:EmitFinalOperator"
    return "penstock.engine.operators.emit_changes:EmitChangesOperator"


OPERATOR_CLASSES: dict[type[LogicalPlan], str | Callable[[AnyOperatorSpec], str]] = {
    Scan: _source,
    HistorySource: "penstock.engine.operators.source.history_source:HistorySourceOperator",
    FinishedSplits: "penstock.engine.operators.source.history_source:FinishedSplitsOperator",
    Values: "penstock.engine.operators.source.values:ValuesOperator",
    BoundedInput: "penstock.engine.operators.source.bounded_source:BoundedSourceOperator",
    Calc: "penstock.engine.operators.calc:CalcOperator",
    WindowBestFilter: "penstock.engine.operators.join.window_best_filter:WindowBestFilterOperator",
    RuntimeFilter: "penstock.engine.operators.join.runtime_filter:RuntimeFilterOperator",
    WatermarkAssign: "penstock.engine.operators.source.watermark_generator:WatermarkGeneratorOperator",
    CurrentWatermark: "penstock.engine.operators.source.watermark_generator:CurrentWatermarkOperator",
    ProcessingTime: "penstock.engine.operators.source.processing_time:ProcessingTimeOperator",
    LateMark: _late_mark,
    WindowTable: _window_table,
    WindowAggregate: _window_aggregate,
    Aggregate: _group_aggregate,
    CountWindowAggregate: (
        "penstock.engine.operators.aggregate.count_window_aggregate:CountWindowAggregateOperator"
    ),
    Join: "penstock.engine.operators.join.regular_join:RegularJoinOperator",
    IntervalJoin: _interval_join,
    NearestJoin: "penstock.engine.operators.join.nearest_join:NearestJoinOperator",
    SnapshotJoin: "penstock.engine.operators.join.snapshot_join:SnapshotJoinOperator",
    TemporalJoin: "penstock.engine.operators.join.temporal_join:TemporalJoinOperator",
    LookupJoin: "penstock.engine.operators.join.lookup_join:LookupJoinOperator",
    Union: "penstock.engine.operators.union:UnionOperator",
    Limit: _limit,
    Repeat: "penstock.engine.operators.replicate_rows:ReplicateRowsOperator",
    Unnest: "penstock.engine.operators.unnest:UnnestOperator",
    ChangelogNormalize: "penstock.engine.operators.changelog_normalize:ChangelogNormalizeOperator",
    TopN: "penstock.engine.operators.rank.top_n:TopNOperator",
    Over: _over,
    PartitionTop: _partition_top,
    Recursion: _recursion,
    TemporalSort: "penstock.engine.operators.temporal_sort:TemporalSortOperator",
    Emit: _emit,
    MatchRecognize: "penstock.engine.operators.match.match_recognize:MatchRecognizeOperator",
    ProcessTable: "penstock.engine.operators.process.process_table:ProcessTableOperator",
    Sink: _sink,
}
"""By class of the node: ``module:class``, or the function that chooses one."""
