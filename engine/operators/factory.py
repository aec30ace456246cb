"""The table from operator spec to operator class. A class is imported by the first plan that needs it, which
keeps the start fast.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from penstock.catalog.connectors.registry import option
from penstock.catalog.errors import Kind, PenstockError
from penstock.engine.api.job_options import JobOptions
from penstock.engine.api.operator import Operator
from penstock.planner.logical.aggregate import Phase
from penstock.planner.logical.windows import Windowing
from penstock.planner.physical.operator_specs import (
    BoundedSourceSpec,
    CalcSpec,
    FinalRowsSpec,
    GroupAggregateSpec,
    HistorySpec,
    JoinSpec,
    LateMarkSpec,
    LimitSpec,
    LookupJoinSpec,
    MatchSpec,
    OperatorSpec,
    OverSpec,
    PartitionTopSpec,
    ProcessingTimeSpec,
    ReadSplitsSpec,
    RepeatSpec,
    SinkSpec,
    SnapshotJoinSpec,
    SourceSpec,
    TemporalJoinSpec,
    TemporalSortSpec,
    ThinnedRowsSpec,
    TopNSpec,
    UnionSpec,
    UnnestSpec,
    ValuesSpec,
    WatermarkSpec,
    WindowAggregateSpec,
    WindowTableSpec,
)
from penstock.planner.physical.runtime_filter import RuntimeFilterSpec


def build_operator(spec: OperatorSpec, options: JobOptions) -> Operator:
    """Return a new operator for one subtask of a spec. INT-9017 for a spec that is not in the table."""
    entry = _OPERATOR_CLASSES.get(type(spec))
    if entry is None:
        raise PenstockError(
            "INT-9017", f"no operator for {type(spec).__name__}", kind=Kind.INTERNAL, sqlstate="XX000"
        )
    module, _, name = (entry if isinstance(entry, str) else entry(spec)).partition(":")
    operator_class = getattr(import_module(module), name)
    # a history runs operators inside itself: this function is injected, so its file does not import the
    # factory
    made: Operator = (
        operator_class(spec, options, build_operator)
        if isinstance(spec, HistorySpec)
        else operator_class(spec, options)
    )
    return made


def _source(spec: SourceSpec) -> str:
    if spec.table.connector == "materialized" and option(spec.table, "follow"):
        return "penstock.engine.operators.source.source:MaterializedViewSourceOperator"
    return "penstock.engine.operators.source.source:SourceOperator"


def _late_mark(spec: LateMarkSpec) -> str:
    by_session = spec.window.merging and spec.insert_only
    return (
        "penstock.engine.operators.window.late_row_marker:SessionLateRowMarkerOperator"
        if by_session
        else "penstock.engine.operators.window.late_row_marker:LateRowMarkerOperator"
    )


def _window_table(spec: WindowTableSpec) -> str:
    if spec.window.merging:
        if not spec.insert_only:
            return "penstock.engine.operators.window.window_function:RetractSessionFunctionOperator"
        return "penstock.engine.operators.window.window_function:SessionFunctionOperator"
    return "penstock.engine.operators.window.window_function:WindowFunctionOperator"


def _window_aggregate(spec: WindowAggregateSpec) -> str:
    if spec.phase is Phase.LOCAL:
        return "penstock.engine.operators.window.local_window_aggregate:LocalWindowAggregateOperator"
    if isinstance(spec.window, Windowing) and spec.window.merging:
        if not spec.insert_only:
            return "penstock.engine.operators.window.session_aggregate:RetractSessionOperator"
        if spec.emission.corrects:
            return "penstock.engine.operators.window.session_aggregate:EarlyFireSessionOperator"
        return "penstock.engine.operators.window.session_aggregate:SessionAggregateOperator"
    if spec.emission.corrects:
        return "penstock.engine.operators.window.window_aggregate:EarlyFireWindowOperator"
    return "penstock.engine.operators.window.window_aggregate:WindowAggregateOperator"


def _group_aggregate(spec: GroupAggregateSpec) -> str:
    if spec.phase is Phase.LOCAL:
        return "penstock.engine.operators.aggregate.local_aggregate:LocalAggregateOperator"
    return "penstock.engine.operators.aggregate.group_aggregate:GroupAggregateOperator"


def _join(spec: JoinSpec) -> str:
    if spec.time is not None:
        return "penstock.engine.operators.join.interval_join:IntervalJoinOperator"
    return "penstock.engine.operators.join.regular_join:RegularJoinOperator"


def _limit(spec: LimitSpec) -> str:
    return (
        "penstock.engine.operators.limit:LimitOperator"
        if spec.insert_only
        else "penstock.engine.operators.limit:RetractLimitOperator"
    )


def _over(spec: OverSpec) -> str:
    if spec.in_time:
        return "penstock.engine.operators.over.over:EventTimeOverOperator"
    return "penstock.engine.operators.over.over:RetractOverOperator"


def _partition_top(spec: PartitionTopSpec) -> str:
    if not spec.insert_only:
        return "penstock.engine.operators.rank.partition_top_n:RetractTopNOperator"
    if spec.window is not None:
        return "penstock.engine.operators.rank.partition_top_n:WindowTopNOperator"
    return "penstock.engine.operators.rank.partition_top_n:AppendTopNOperator"


def _sink(spec: SinkSpec) -> str:
    if spec.table is not None and spec.table.connector == "materialized":
        return "penstock.engine.operators.sink:MaterializedViewSinkOperator"
    return "penstock.engine.operators.sink:SinkOperator"


_OPERATOR_CLASSES: dict[type[OperatorSpec], str | Callable[[Any], str]] = {
    SourceSpec: _source,
    HistorySpec: "penstock.engine.operators.source.history_source:HistorySourceOperator",
    ReadSplitsSpec: "penstock.engine.operators.source.history_source:FinishedSplitsOperator",
    ValuesSpec: "penstock.engine.operators.source.values:ValuesOperator",
    BoundedSourceSpec: "penstock.engine.operators.source.bounded_source:BoundedSourceOperator",
    CalcSpec: "penstock.engine.operators.calc:CalcOperator",
    RuntimeFilterSpec: "penstock.engine.operators.join.runtime_filter:RuntimeFilterOperator",
    WatermarkSpec: "penstock.engine.operators.source.watermark_generator:WatermarkGeneratorOperator",
    ProcessingTimeSpec: "penstock.engine.operators.source.processing_time:ProcessingTimeOperator",
    LateMarkSpec: _late_mark,
    WindowTableSpec: _window_table,
    WindowAggregateSpec: _window_aggregate,
    GroupAggregateSpec: _group_aggregate,
    JoinSpec: _join,
    SnapshotJoinSpec: "penstock.engine.operators.join.snapshot_join:SnapshotJoinOperator",
    TemporalJoinSpec: "penstock.engine.operators.join.temporal_join:TemporalJoinOperator",
    LookupJoinSpec: "penstock.engine.operators.join.lookup_join:LookupJoinOperator",
    UnionSpec: "penstock.engine.operators.union:UnionOperator",
    LimitSpec: _limit,
    RepeatSpec: "penstock.engine.operators.replicate_rows:ReplicateRowsOperator",
    UnnestSpec: "penstock.engine.operators.unnest:UnnestOperator",
    TopNSpec: "penstock.engine.operators.rank.top_n:TopNOperator",
    OverSpec: _over,
    PartitionTopSpec: _partition_top,
    TemporalSortSpec: "penstock.engine.operators.temporal_sort:TemporalSortOperator",
    FinalRowsSpec: "penstock.engine.operators.emit_final:EmitFinalOperator",
    ThinnedRowsSpec: "penstock.engine.operators.emit_changes:EmitChangesOperator",
    MatchSpec: "penstock.engine.operators.match.match_recognize:MatchRecognizeOperator",
    SinkSpec: _sink,
}
"""By class of the spec: ``module:class``, or the function that chooses one."""
