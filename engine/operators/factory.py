"""The one table from operator spec to operator class. Classes are imported when a plan first needs them,
so that starting up stays quick.
"""

from __future__ import annotations

from collections.abc import Callable

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
    """Return a new operator for one subtask of a spec."""
    maker = _MAKERS.get(type(spec))
    if maker is None:
        raise PenstockError(
            "INT-9017", f"no operator for {type(spec).__name__}", kind=Kind.INTERNAL, sqlstate="XX000"
        )
    return maker(spec, options)


def _source(spec: SourceSpec, options: JobOptions) -> Operator:
    if spec.table.connector == "materialized" and option(spec.table, "follow"):
        from penstock.engine.operators.source.materialized_view_source import FollowOperator

        return FollowOperator(spec, options)
    from penstock.engine.operators.source.source import SourceOperator

    return SourceOperator(spec, options)


def _history(spec: HistorySpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.source.history_source import HistoryOperator

    return HistoryOperator(spec, options)


def _read_splits(spec: ReadSplitsSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.source.finished_splits import ReadSplitsOperator

    return ReadSplitsOperator(spec, options)


def _values(spec: ValuesSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.source.values import ValuesOperator

    return ValuesOperator(spec, options)


def _bounded_source(spec: BoundedSourceSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.source.bounded_source import BoundedSourceOperator

    return BoundedSourceOperator(spec, options)


def _calc(spec: CalcSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.calc import CalcOperator

    return CalcOperator(spec, options)


def _runtime_filter(spec: RuntimeFilterSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.source.runtime_filter import RuntimeFilterOperator

    return RuntimeFilterOperator(spec, options)


def _watermark(spec: WatermarkSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.source.watermark_generator import WatermarkOperator

    return WatermarkOperator(spec, options)


def _processing_time(spec: ProcessingTimeSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.source.processing_time import ProcessingTimeOperator

    return ProcessingTimeOperator(spec, options)


def _late_mark(spec: LateMarkSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.window.late_row_marker import LateMarkOperator, SessionLateMarkOperator

    by_session = spec.window.merging and spec.insert_only
    return SessionLateMarkOperator(spec, options) if by_session else LateMarkOperator(spec, options)


def _window_table(spec: WindowTableSpec, options: JobOptions) -> Operator:
    if spec.window.merging:
        if not spec.insert_only:
            from penstock.engine.operators.window.session_function_retract import SessionTableUpdatesOperator

            return SessionTableUpdatesOperator(spec, options)
        from penstock.engine.operators.window.session_function import SessionTableOperator

        return SessionTableOperator(spec, options)
    from penstock.engine.operators.window.window_function import WindowTableOperator

    return WindowTableOperator(spec, options)


def _window_aggregate(spec: WindowAggregateSpec, options: JobOptions) -> Operator:
    if spec.phase is Phase.LOCAL:
        from penstock.engine.operators.window.local_window_aggregate import LocalWindowAggregateOperator

        return LocalWindowAggregateOperator(spec, options)
    if isinstance(spec.window, Windowing) and spec.window.merging:
        if not spec.insert_only:
            from penstock.engine.operators.window.session_aggregate_retract import SessionUpdatesOperator

            return SessionUpdatesOperator(spec, options)
        if spec.emission.corrects:
            from penstock.engine.operators.window.session_aggregate_early_fire import SessionChangesOperator

            return SessionChangesOperator(spec, options)
        from penstock.engine.operators.window.session_aggregate import SessionAggregateOperator

        return SessionAggregateOperator(spec, options)
    if spec.emission.corrects:
        from penstock.engine.operators.window.window_aggregate_early_fire import WindowChangesOperator

        return WindowChangesOperator(spec, options)
    from penstock.engine.operators.window.window_aggregate import WindowAggregateOperator

    return WindowAggregateOperator(spec, options)


def _group_aggregate(spec: GroupAggregateSpec, options: JobOptions) -> Operator:
    if spec.phase is Phase.LOCAL:
        from penstock.engine.operators.aggregate.local_aggregate import LocalAggregateOperator

        return LocalAggregateOperator(spec, options)
    from penstock.engine.operators.aggregate.group_aggregate import GroupAggregateOperator

    return GroupAggregateOperator(spec, options)


def _join(spec: JoinSpec, options: JobOptions) -> Operator:
    if spec.time is not None:
        from penstock.engine.operators.join.interval_join import TimedJoinOperator

        return TimedJoinOperator(spec, options)
    from penstock.engine.operators.join.regular_join import JoinOperator

    return JoinOperator(spec, options)


def _snapshot_join(spec: SnapshotJoinSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.join.snapshot_join import SnapshotJoinOperator

    return SnapshotJoinOperator(spec, options)


def _temporal_join(spec: TemporalJoinSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.join.temporal_join import TemporalJoinOperator

    return TemporalJoinOperator(spec, options)


def _lookup_join(spec: LookupJoinSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.join.lookup_join import LookupJoinOperator

    return LookupJoinOperator(spec, options)


def _union(spec: UnionSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.union import UnionOperator

    return UnionOperator(spec, options)


def _unnest(spec: UnnestSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.unnest import UnnestOperator

    return UnnestOperator(spec, options)


def _repeat(spec: RepeatSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.replicate_rows import RepeatOperator

    return RepeatOperator(spec, options)


def _limit(spec: LimitSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.limit import LimitOfChangesOperator, LimitOperator

    return LimitOperator(spec, options) if spec.insert_only else LimitOfChangesOperator(spec, options)


def _top_n(spec: TopNSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.rank.top_n import TopNOperator

    return TopNOperator(spec, options)


def _over(spec: OverSpec, options: JobOptions) -> Operator:
    if spec.in_time:
        from penstock.engine.operators.over.over_event_time import OverInTimeOperator

        return OverInTimeOperator(spec, options)
    from penstock.engine.operators.over.over_retract import OverChangesOperator

    return OverChangesOperator(spec, options)


def _partition_top(spec: PartitionTopSpec, options: JobOptions) -> Operator:
    if not spec.insert_only:
        from penstock.engine.operators.rank.partition_top_n_retract import PartitionTopOperator

        return PartitionTopOperator(spec, options)
    if spec.window is not None:
        from penstock.engine.operators.window.window_top_n import WindowTopOperator

        return WindowTopOperator(spec, options)
    from penstock.engine.operators.rank.partition_top_n_append import FirstRowsOperator

    return FirstRowsOperator(spec, options)


def _temporal_sort(spec: TemporalSortSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.temporal_sort import TemporalSortOperator

    return TemporalSortOperator(spec, options)


def _final_rows(spec: FinalRowsSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.emit_final import FinalRowsOperator

    return FinalRowsOperator(spec, options)


def _thinned_rows(spec: ThinnedRowsSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.emit_changes import ThinnedRowsOperator

    return ThinnedRowsOperator(spec, options)


def _match(spec: MatchSpec, options: JobOptions) -> Operator:
    from penstock.engine.operators.match.match_recognize import MatchRecognizeOperator

    return MatchRecognizeOperator(spec, options)


def _sink(spec: SinkSpec, options: JobOptions) -> Operator:
    if spec.table is not None and spec.table.connector == "materialized":
        from penstock.engine.operators.materialized_view_sink import MaterializeOperator

        return MaterializeOperator(spec, options)
    from penstock.engine.operators.sink import SinkOperator

    return SinkOperator(spec, options)


_MAKERS: dict[type, Callable[..., Operator]] = {
    SourceSpec: _source,
    HistorySpec: _history,
    ReadSplitsSpec: _read_splits,
    ValuesSpec: _values,
    BoundedSourceSpec: _bounded_source,
    CalcSpec: _calc,
    RuntimeFilterSpec: _runtime_filter,
    WatermarkSpec: _watermark,
    ProcessingTimeSpec: _processing_time,
    LateMarkSpec: _late_mark,
    WindowTableSpec: _window_table,
    WindowAggregateSpec: _window_aggregate,
    GroupAggregateSpec: _group_aggregate,
    JoinSpec: _join,
    SnapshotJoinSpec: _snapshot_join,
    TemporalJoinSpec: _temporal_join,
    LookupJoinSpec: _lookup_join,
    UnionSpec: _union,
    LimitSpec: _limit,
    RepeatSpec: _repeat,
    UnnestSpec: _unnest,
    TopNSpec: _top_n,
    OverSpec: _over,
    PartitionTopSpec: _partition_top,
    TemporalSortSpec: _temporal_sort,
    FinalRowsSpec: _final_rows,
    ThinnedRowsSpec: _thinned_rows,
    MatchSpec: _match,
    SinkSpec: _sink,
}
